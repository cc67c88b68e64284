// Random graphs and candidates for measuring and testing the core without Python.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "graph.hpp"
#include "platform.hpp"

namespace opgym {

// Layered: each op reads 1 to 4 tensors of the three layers before its own, mostly of the last (2.5 on average); one
// output per op, sizes and costs lognormal around 1.6 MB and 165 us. The width of a layer is about sqrt(ops) / 2.
struct GeneratedGraph {
    Graph graph;
    std::vector<int64_t> cost_ns;  // [ops]
};
GeneratedGraph layered_random_graph(int32_t ops, uint64_t seed);

// Equal devices, 10 us and 12 GB/s between any two.
Platform uniform_platform(const GeneratedGraph& generated, int devices, Channel channel);

enum class PlacementKind { random, clustered };

// Clustered: contiguous parts of equal length, 5 % of the ops moved to a random device.
std::vector<uint8_t> generated_placement(int32_t ops, int devices, PlacementKind kind, std::mt19937_64& random);

// Uniform in [0, 1).
std::vector<float> random_priorities(int32_t ops, std::mt19937_64& random);

}  // namespace opgym
