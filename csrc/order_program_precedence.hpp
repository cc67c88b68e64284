// What every order within a limit of memory has in common: who must come before whom.
#pragma once

#include <cstdint>
#include <vector>

#include "order_program_cut.hpp"
#include "order_program_model.hpp"

namespace opgym {

// While an item runs, some set lies between what must and what may have run before it, and the least that is live after
// such a set is a bound on its memory. If that passes the limit for all sets with (or without) another item, that one
// must come after (or before) it in every order within the limit. What is found adds to what can be found.
class PrecedenceInference {
   public:
    enum class Answer { kGoing, kDone, kNone };  // kNone: no order is within the limit

    // model: time runs forwards (each tensor has one starter or none); what is found is added to it.
    PrecedenceInference(OrderModel& model, int64_t limit);

    // Compares one more item with up to 64 others.
    Answer step();
    // Goes on with a lower limit: what was found still holds.
    void tighten(int64_t limit) { limit_ = limit; }
    // Some limit up to which the same would be found; above the limit.
    int64_t holds_below() const { return holds_below_; }
    bool found_any() const { return found_any_; }
    // In units of what a decision takes for a set, about.
    int64_t work() const { return cut_.work() / kEdgesPerSet; }

   private:
    static constexpr int64_t kEdgesPerSet = 128;

    bool start_item();
    void compare(int32_t item, int32_t word);
    void learn();
    void note(int64_t change);

    OrderModel& model_;
    int64_t limit_;
    Lists direct_;
    LeastLive cut_;
    int32_t item_ = 0, word_ = -1;  // what is next; word_ -1: nothing of the item has been looked at
    bool changed_ = false, found_any_ = false;
    int64_t base_ = 0, holds_below_;
    std::vector<uint64_t> lower_, upper_, set_, may_be_in_, may_be_out_;
    std::vector<std::pair<int32_t, int32_t>> found_;
};

// Memory while each item runs, at the least, whatever the order.
class LeastBytes {
   public:
    // model: time runs forwards.
    explicit LeastBytes(const OrderModel& model);
    bool over() const { return item_ == model_.size; }
    // Of the next item.
    int64_t next();

   private:
    const OrderModel& model_;
    const Lists direct_;
    LeastLive cut_;
    int32_t item_ = 0;
    std::vector<uint64_t> upper_;
};

}  // namespace opgym
