// Makes the fastest simulator that a graph and a platform allow.
#pragma once

#include <memory>

#include "candidate_runner.hpp"
#include "compiled_graph.hpp"

namespace opgym {

// For up to 2, 4 and 8 devices; each in a file of its own, which keeps compile times bearable.
template <int D, class Id>
std::unique_ptr<CandidateRunner> make_fast_runner(const CompiledGraph<Id>& graph, const Platform& platform);

}  // namespace opgym
