// The least peak over all orders of a graph's ops on one device, proven; or bounds that meet as far as limits allow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph.hpp"
#include "order_program_decision.hpp"
#include "order_program_model.hpp"
#include "order_program_precedence.hpp"

namespace opgym {

// Asks whether an order is within a limit of memory, for limits between the bounds known so far. A question that takes
// too long is put off, and comes back with more effort in the next round. Goes on where the last call left it.
class OrderProgram {
   public:
    // order: a legal one, best so far. lower: a peak that no order can beat. max_bytes: of the sets that are kept.
    OrderProgram(const Graph& graph, std::span<const int32_t> order, int64_t lower, int64_t max_bytes);

    // Goes on for about `seconds`, or until a better order is found.
    void run(double seconds);

    bool proven() const { return lower_ >= upper_; }
    // Whether there is nothing left to do, or no memory to do it with.
    bool over() const { return full_ || proven(); }
    int64_t lower() const { return lower_; }
    int64_t upper() const { return upper_; }
    const std::vector<int32_t>& best_order() const { return best_; }
    // Sets that were looked at.
    int64_t sets() const { return sets_; }

   private:
    enum class Answer { kGoing, kYes, kNo, kUnknown };

    // One question.
    class Question {
       public:
        Question(const OrderModel& model, int64_t limit, bool infer, int64_t effort, int64_t max_bytes);

        Answer step();
        std::vector<int32_t> order() const;  // after kYes: items
        int64_t holds_below() const { return holds_below_; }
        int64_t limit() const { return limit_; }
        int64_t sets() const;
        bool full() const { return full_; }

       private:
        OrderModel model_;
        const int64_t limit_, effort_, max_bytes_;
        std::unique_ptr<PrecedenceInference> inference_;
        OrderModel backwards_model_;
        std::optional<OrderDecision> backwards_, forwards_;
        bool found_forwards_ = false, full_ = false;
        int64_t holds_below_, turn_ = 0;
    };

    void step();
    void ask();
    void take_answer(Answer answer);

    const Graph& graph_;
    const OrderModel model_;
    const int64_t max_bytes_;
    int64_t lower_, upper_;
    std::vector<int32_t> best_;
    std::unique_ptr<LeastBytes> least_;
    std::unique_ptr<Question> question_;
    int64_t effort_;
    int64_t ceiling_;  // limits from here on have been put off in this round
    bool may_infer_ = false, full_ = false;
    int64_t sets_ = 0;
};

}  // namespace opgym
