#include "fast_runners.hpp"

#include <algorithm>
#include <limits>

#include "wide_simulator.hpp"

namespace opgym {
namespace {

constexpr int64_t kExactInDouble = int64_t{1} << 53;
constexpr int64_t kExactInWord = std::numeric_limits<uint32_t>::max();

bool times_are_small(const Graph& graph, const Platform& platform) {
    if (platform.longest_run_ns >= kExactInDouble) return false;
    if (!platform.class_cost_ns.empty() && *std::ranges::max_element(platform.class_cost_ns) > kExactInWord) return false;
    if (platform.channel == Channel::free) return true;
    int64_t largest = 0;
    for (int32_t t = graph.num_sources; t < graph.num_tensors; ++t) largest = std::max(largest, graph.tensor_bytes[t]);
    for (int s = 0; s < platform.num_devices; ++s)
        for (int d = 0; d < platform.num_devices; ++d)
            if (s != d && platform.transfer_ns(largest, s, d) > kExactInWord) return false;
    return true;
}

template <class Id>
std::unique_ptr<CandidateRunner> make_fast(const CompiledGraph<Id>& graph, const Platform& platform) {
    if (platform.num_devices == 1) return make_one_device_runner(graph, platform);
    if (platform.num_devices == 2) return make_fast_runner<2>(graph, platform);
    if (platform.num_devices <= 4) return make_fast_runner<4>(graph, platform);
    return make_fast_runner<8>(graph, platform);
}

}  // namespace

RunnerFactory::RunnerFactory(const Graph& graph, const Platform& platform) : graph_(graph), platform_(platform) {
    constexpr int kMost = 8;
    if (platform.num_devices > kMost || !times_are_small(graph, platform)) return;
    const int devices = platform.num_devices > 4 ? kMost : 4;
    if (CompiledGraph<uint16_t>::fits(graph, devices))
        small_ = std::make_unique<CompiledGraph<uint16_t>>(graph, platform);
    else if (CompiledGraph<uint32_t>::fits(graph, devices))
        large_ = std::make_unique<CompiledGraph<uint32_t>>(graph, platform);
}

std::unique_ptr<CandidateRunner> RunnerFactory::make_runner() const {
    if (small_) return make_fast(*small_, platform_);
    if (large_) return make_fast(*large_, platform_);
    return make_wide_runner();
}

std::unique_ptr<CandidateRunner> RunnerFactory::make_wide_runner() const {
    return opgym::make_wide_runner(graph_, platform_);
}

}  // namespace opgym
