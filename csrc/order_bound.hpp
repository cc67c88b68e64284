// Bytes that are live at certain moments of every order of a graph's ops on one device.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace opgym {

// While an op runs, beside its inputs, outputs and workspace: every tensor whose producer is an ancestor, if a
// descendant reads it or it is kept to the end. [ops], 0 for variables. Takes (ops + edges) x ops / 64 steps.
std::vector<int64_t> cut_bytes(const Graph& graph);

// While the last op runs, whichever that is: all tensors that are kept to the end, and what that op needs beside them.
int64_t end_bytes(const Graph& graph);

}  // namespace opgym
