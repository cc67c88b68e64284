// The least peak over all orders of a graph's ops on one device, proven; or bounds that meet as far as limits allow.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph.hpp"
#include "order_program_decision.hpp"
#include "order_program_model.hpp"
#include "order_program_precedence.hpp"

namespace opgym {

// Whether some order is within a limit, asked in up to three ways side by side: backwards in time, forwards, and
// backwards with what can be inferred first. Each gets a share of the work; the first answer counts.
class OrderQuestion {
   public:
    enum class Answer { kGoing, kYes, kNo };

    enum class Ways { kAll, kInferred, kNotInferred };

    OrderQuestion(const OrderModel& model, int64_t limit, Ways ways, int64_t max_bytes);

    // Does a little work.
    Answer step();
    // Asks anew, with a lower limit; what was found out still holds.
    void tighten(int64_t limit);
    int64_t limit() const { return limit_; }
    // In sets looked at, or as much. Inference takes what it takes: its part is told apart.
    int64_t work() const;
    int64_t inference_work() const;
    // Whether no way has memory to go on.
    bool stuck() const;
    // After kYes: items in order.
    const std::vector<int32_t>& order() const { return order_; }
    // After kNo: limits below have the same answer.
    int64_t holds_below() const { return holds_below_; }

   private:
    struct Way {
        OrderModel model;
        bool is_backwards;
        int64_t share, max_bytes;
        std::unique_ptr<PrecedenceInference> inference;
        std::unique_ptr<OrderDecision> decision;  // after the inference, if there is one
        int64_t holds_below, inference_work = 0;
        bool stuck = false;

        int64_t work() const;
    };

    Answer infer(Way& way);
    Answer decide(Way& way);

    int64_t limit_;
    std::vector<Way> ways_;
    std::vector<int32_t> order_;
    int64_t holds_below_ = 0;
};

// Asks for limits between the bounds known so far; below the best peak first, as that may end everything. Raises the
// lower bound in between, with less effort. Goes on where the last call left it.
class OrderProgram {
   public:
    // order: a legal one, best so far. lower: a peak that no order can beat. max_bytes: of the sets that are kept.
    OrderProgram(const Graph& graph, std::span<const int32_t> order, int64_t lower, int64_t max_bytes);

    // Goes on for about as much work, or as long, or until a better order is found.
    void run(int64_t work, double seconds);
    // Tells of an order from somewhere else.
    void offer(std::span<const int32_t> order);

    bool proven() const { return lower_ >= upper_; }
    // Whether there is nothing left to do, or no memory to do it with.
    bool over() const { return stuck_ || proven(); }
    int64_t lower() const { return lower_; }
    int64_t upper() const { return upper_; }
    const std::vector<int32_t>& best_order() const { return best_; }
    // Sets that were looked at, or as much work.
    int64_t work() const { return work_ + last_.work() + (middle_ ? middle_->work() : 0); }

   private:
    void step();
    void step_last();
    void step_middle();
    void start_middle();
    std::vector<int32_t> ops_of(const std::vector<int32_t>& items) const;

    const Graph& graph_;
    const OrderModel model_;
    const int64_t max_bytes_;
    int64_t lower_, upper_;
    std::vector<int32_t> best_;
    std::unique_ptr<LeastBytes> least_;
    OrderQuestion last_;                     // just below the best peak
    std::unique_ptr<OrderQuestion> middle_;  // of this round, between the bounds
    int64_t effort_;                         // work of last_ by the end of the round
    int64_t middle_effort_ = 0;              // work left for other questions; below 0: they took more than was left
    int64_t ceiling_;                        // limits from here on have been put off in this round
    bool stuck_ = false;
    int64_t work_ = 0;  // of questions that are done with
};

}  // namespace opgym
