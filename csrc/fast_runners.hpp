// Makes the fastest simulator that a graph and a platform allow.
#pragma once

#include <memory>

#include "candidate_runner.hpp"
#include "compiled_graph.hpp"

namespace opgym {

template <class Id>
std::unique_ptr<CandidateRunner> make_one_device_runner(const CompiledGraph<Id>& graph, const Platform& platform);

// For up to D devices: 2, 4 and 8, each in a file of its own, which keeps compile times bearable.
template <int D, class Id>
std::unique_ptr<CandidateRunner> make_fast_runner(const CompiledGraph<Id>& graph, const Platform& platform);

// The graph laid out for the fast simulators, if one of them can take it.
class RunnerFactory {
   public:
    RunnerFactory(const Graph& graph, const Platform& platform);

    // A new runner with its own scratch; graph and platform must outlive it, as must this factory.
    std::unique_ptr<CandidateRunner> make_runner() const;
    // The same for candidates with explicit priorities of transfers.
    std::unique_ptr<CandidateRunner> make_wide_runner() const;

   private:
    const Graph& graph_;
    const Platform& platform_;
    std::unique_ptr<CompiledGraph<uint16_t>> small_;
    std::unique_ptr<CompiledGraph<uint32_t>> large_;
};

}  // namespace opgym
