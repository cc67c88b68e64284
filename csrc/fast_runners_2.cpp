#include "fast_runners_impl.hpp"

namespace opgym {

template std::unique_ptr<CandidateRunner> make_fast_runner<2>(const CompiledGraph<uint16_t>&, const Platform&);
template std::unique_ptr<CandidateRunner> make_fast_runner<2>(const CompiledGraph<uint32_t>&, const Platform&);

}  // namespace opgym
