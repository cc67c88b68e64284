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

// Upward rank under a placement, in ns; docs/simulator.md defines it. out: [ops].
void upward_rank(const Graph& graph, const Platform& platform, const uint8_t* device, int64_t* out);

// Sorts by radix in two passes; scratch is reused between calls, so that nothing is allocated after the first.
class Ranker {
   public:
    // No priority may be NaN. -0 equals 0.
    void rank(std::span<const float> priority, Ranking& out);
    void rank(std::span<const double> priority, Ranking& out);
    void rank(std::span<const int64_t> priority, Ranking& out);

   private:
    template <class Key>
    void sort(const std::vector<Key>& key, Key least, Key most, Ranking& out);

    std::vector<int32_t> key32_;
    std::vector<int64_t> key64_;
    std::vector<uint32_t> digits_, half_sorted_;
    std::vector<uint32_t> low_, high_;  // by value of a digit: its next position
};

}  // namespace opgym
