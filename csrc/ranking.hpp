// From priorities to the total order (rank) that the event simulator uses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph.hpp"
#include "platform.hpp"

namespace opgym {

// rank[op]: position of op when sorted by descending priority, then ascending index; order is its inverse.
struct Ranking {
    std::vector<int32_t> rank;
    std::vector<int32_t> order;
};

// Whether any priority is NaN; such priorities have no rank.
bool has_nan(std::span<const float> priority);
bool has_nan(std::span<const double> priority);

// Upward rank under a placement, in ns; see SIMULATOR semantics in docs/simulator.md. out: [ops].
void upward_rank(const Graph& graph, const Platform& platform, const uint8_t* device, int64_t* out);

// Sorts; scratch is reused between calls, so that nothing is allocated after the first.
class Ranker {
   public:
    void rank(std::span<const float> priority, Ranking& out);
    void rank(std::span<const double> priority, Ranking& out);
    void rank(std::span<const int64_t> priority, Ranking& out);

   private:
    template <class Key, class Priority>
    void sort(std::span<const Priority> priority, Ranking& out);
};

}  // namespace opgym
