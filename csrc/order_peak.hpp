// Peak memory of a given order of ops on one device: the special case "order in, peak memory out".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph.hpp"

namespace opgym {

// Evaluates orders of one graph; scratch is reused, so that nothing is allocated after the first call.
// The peak is dynamic: resident bytes (sources, variables) are apart.
class OrderPeak {
   public:
    explicit OrderPeak(const Graph& graph) : graph_(graph) {}

    // order: every op that is no variable once (or every op once; variables are then skipped), topological.
    // Throws std::invalid_argument if it is not.
    int64_t peak(std::span<const int32_t> order);

   private:
    const Graph& graph_;
    std::vector<int32_t> uses_;  // [tensors] consumers that have not run; -1: not yet written
};

// The peak of each order; orders: peaks.size() rows of `length` ops.
void peaks_of_orders(const Graph& graph, std::span<const int32_t> orders, size_t length, std::span<int64_t> peaks,
                     int threads);

}  // namespace opgym
