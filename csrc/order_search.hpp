// Searches over orders of ops on one device. Every search goes on where the last call left it: two calls for a and b
// evaluations do what one for a + b does.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "graph.hpp"
#include "order_peak.hpp"
#include "random_stream.hpp"
#include "ready_order.hpp"

namespace opgym {

// A new best peak, and what the search had spent since the call began.
struct Improvement {
    int64_t evaluations;
    double seconds;
    int64_t peak;
};

// What all searches share: the limits of a call, the best order so far.
class OrderSearch {
   public:
    virtual ~OrderSearch() = default;

    // Spends up to `evaluations` within `seconds`. Returns how many it spent: fewer if time runs out or it is over.
    int64_t run(int64_t evaluations, double seconds);

    // Whether nothing better can exist.
    bool proven() const { return proven_ || best_peak_ <= target_; }
    // Whether there is nothing left to do.
    bool over() const { return finished_ || proven(); }
    int64_t best_peak() const { return best_peak_; }
    const std::vector<int32_t>& best_order() const { return best_; }
    // Of the last call.
    const std::vector<Improvement>& improvements() const { return improvements_; }

   protected:
    // target: a peak that no order can beat.
    OrderSearch(const Graph& graph, uint64_t seed, int64_t target);

    // Spends exactly one evaluation if it returns true, none if it returns false.
    virtual bool step() = 0;
    // Tells of an order that was just evaluated.
    void found(int64_t peak, const std::vector<int32_t>& order);

    int64_t target() const { return target_; }

    const Graph& graph_;
    RandomStream random_;
    bool proven_ = false, finished_ = false;

   private:
    double seconds_since_began() const;

    int64_t target_, best_peak_;
    std::vector<int32_t> best_;
    std::vector<Improvement> improvements_;
    int64_t spent_ = 0;
    std::chrono::steady_clock::time_point began_;
};

// Independent random orders.
class RandomOrders : public OrderSearch {
   public:
    RandomOrders(const Graph& graph, uint64_t seed, int64_t target);

   private:
    bool step() override;

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
    bool step() override;

    OrderPeak evaluator_;
    ReadyOrder ready_;
    std::vector<int32_t> order_;
    std::vector<double> key_;  // [ops]
    int64_t peak_;
};

}  // namespace opgym
