#pragma once

#include "fast_runners.hpp"
#include "fast_simulator.hpp"

namespace opgym {

template <int D, Channel channel, class Id>
class FastRunner final : public CandidateRunner {
   public:
    FastRunner(const CompiledGraph<Id>& graph, const Platform& platform) : first_(graph, platform), second_(graph, platform) {}

    void run(const Candidate& candidate) override {
        first_.begin(candidate);
        while (first_.step()) {
        }
        first_.finish(candidate);
    }

    void run_two(const Candidate& first, const Candidate& second) override {
        first_.begin(first);
        second_.begin(second);
        bool more_first = true, more_second = true;
        while (more_first && more_second) {
            more_first = first_.step();
            more_second = second_.step();
        }
        while (more_first) more_first = first_.step();
        while (more_second) more_second = second_.step();
        first_.finish(first);
        second_.finish(second);
    }

   private:
    FastRun<D, channel, Id> first_, second_;
};

template <int D, class Id>
std::unique_ptr<CandidateRunner> make_fast_runner(const CompiledGraph<Id>& graph, const Platform& platform) {
    switch (platform.channel) {
        case Channel::port:
            return std::make_unique<FastRunner<D, Channel::port, Id>>(graph, platform);
        case Channel::send:
            return std::make_unique<FastRunner<D, Channel::send, Id>>(graph, platform);
        case Channel::link:
            return std::make_unique<FastRunner<D, Channel::link, Id>>(graph, platform);
        default:
            return std::make_unique<FastRunner<D, Channel::free, Id>>(graph, platform);
    }
}

}  // namespace opgym
