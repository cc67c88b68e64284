#include "fast_runners.hpp"
#include "one_device.hpp"

namespace opgym {
namespace {

template <class Id>
class OneDeviceRunner final : public CandidateRunner {
   public:
    OneDeviceRunner(const CompiledGraph<Id>& graph, const Platform& platform)
        : first_(graph, platform), second_(graph, platform) {}

    void run(const Candidate& candidate) override {
        first_.begin(candidate);
        for (uint32_t i = 0; i < first_.steps(); ++i) first_.step();
        first_.finish(candidate);
    }

    void run_two(const Candidate& first, const Candidate& second) override {
        first_.begin(first);
        second_.begin(second);
        for (uint32_t i = 0; i < first_.steps(); ++i) {
            first_.step();
            second_.step();
        }
        first_.finish(first);
        second_.finish(second);
    }

   private:
    OneDeviceRun<Id> first_, second_;
};

}  // namespace

template <class Id>
std::unique_ptr<CandidateRunner> make_one_device_runner(const CompiledGraph<Id>& graph, const Platform& platform) {
    return std::make_unique<OneDeviceRunner<Id>>(graph, platform);
}

template std::unique_ptr<CandidateRunner> make_one_device_runner(const CompiledGraph<uint16_t>&, const Platform&);
template std::unique_ptr<CandidateRunner> make_one_device_runner(const CompiledGraph<uint32_t>&, const Platform&);

}  // namespace opgym
