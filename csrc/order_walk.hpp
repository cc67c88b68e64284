// Searches that move ops within an order: simulated annealing, and local search with kicks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "incremental_peak.hpp"
#include "order_search.hpp"

namespace opgym {

// A walk over orders from several starts. A move takes an op, and what depends on it or what it depends on, to a later
// or earlier place.
class OrderWalk : public OrderSearch {
   protected:
    // starts: rows of as many ops as the graph has to order; the peaks of these orders are taken as known.
    OrderWalk(const Graph& graph, std::span<const int32_t> starts, uint64_t seed, int64_t target);

    // Goes to the next start; to a random order after the last one. Returns whether that cost an evaluation.
    bool restart();
    // Draws a move; its peak, or IncrementalPeak::kNothing.
    int64_t draw();
    // By how much the move is worse: in peak, and a little in the memory at all other ops.
    double loss(int64_t peak) const;
    void accept(int64_t peak);

    IncrementalPeak state_;

   private:
    int64_t draw_at_peak(bool later, int64_t most);

    std::vector<std::vector<int32_t>> starts_;
    size_t next_start_ = 1;
    ReadyOrder ready_;
    std::vector<int32_t> random_order_;
};

// Simulated annealing: rounds of a fixed length, each from another start.
class OrderAnnealing : public OrderWalk {
   public:
    // The temperature is a share of the peak and falls from `temperature` to 0 with the square of what is left of a
    // round.
    OrderAnnealing(const Graph& graph, std::span<const int32_t> starts, uint64_t seed, int64_t target,
                   double temperature, int64_t round_length);

    void set_round_length(int64_t length);

   private:
    bool spend_one() override;

    double temperature_;
    int64_t round_length_, in_round_ = 0;
};

// Local search: a move that does no harm stays. After `patience` moves without a better peak, a few random moves from
// the best order lead somewhere else.
class OrderDescent : public OrderWalk {
   public:
    OrderDescent(const Graph& graph, std::span<const int32_t> order, uint64_t seed, int64_t target, int64_t patience,
                 int64_t kick);

   private:
    bool spend_one() override;

    int64_t patience_, kick_, waited_ = 0, kicks_left_ = 0, round_best_;
};

}  // namespace opgym
