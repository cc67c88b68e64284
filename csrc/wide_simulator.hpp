// The event simulator for what the fast ones leave out: more than 8 devices, very large graphs, times beyond 2^32 ns,
// explicit priorities of transfers. Heaps instead of vectors, 64-bit times; still several times as fast as the plain
// simulator, which it equals.
#pragma once

#include <memory>

#include "candidate_runner.hpp"
#include "graph.hpp"
#include "platform.hpp"

namespace opgym {

std::unique_ptr<CandidateRunner> make_wide_runner(const Graph& graph, const Platform& platform);

}  // namespace opgym
