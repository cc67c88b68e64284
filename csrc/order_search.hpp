// Searches over orders of ops on one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "anytime_search.hpp"
#include "graph.hpp"
#include "order_peak.hpp"
#include "random_stream.hpp"
#include "ready_order.hpp"

namespace opgym {

// A search over orders; its score is their peak.
class OrderSearch : public AnytimeSearch<int64_t, std::vector<int32_t>> {
   public:
    int64_t best_peak() const { return best_score(); }
    const std::vector<int32_t>& best_order() const { return best(); }

   protected:
    // target: a peak that no order can beat.
    OrderSearch(const Graph& graph, uint64_t seed, int64_t target);

    // Spends exactly one evaluation if it returns true, none if it returns false.
    virtual bool spend_one() = 0;

    const Graph& graph_;
    RandomStream random_;

   private:
    int64_t step(int64_t) final { return spend_one(); }
};

// Independent random orders.
class RandomOrders : public OrderSearch {
   public:
    RandomOrders(const Graph& graph, uint64_t seed, int64_t target);

   private:
    bool spend_one() override;

    OrderPeak evaluator_;
    ReadyOrder ready_;
    std::vector<int32_t> order_;
};

// Local search on the keys from which a device lists its ops: one to three keys change, a change that does no harm
// stays.
class KeyDescent : public OrderSearch {
   public:
    // order: where the search starts; its peak is taken as known.
    KeyDescent(const Graph& graph, std::span<const int32_t> order, uint64_t seed, int64_t target);

   private:
    bool spend_one() override;

    OrderPeak evaluator_;
    ReadyOrder ready_;
    std::vector<int32_t> order_;
    std::vector<double> key_;  // [ops]
    int64_t peak_;
};

}  // namespace opgym
