#include "order_program_precedence.hpp"

#include <algorithm>
#include <limits>

namespace opgym {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 8;

bool has(const uint64_t* bits, int32_t i) { return bits[i / 64] >> (i % 64) & 1; }

// All that may run before an item.
void unless_after(const OrderModel& model, int32_t item, std::vector<uint64_t>& bits) {
    const uint64_t* after = model.after.row(item);
    for (size_t w = 0; w < bits.size(); ++w) bits[w] = ~after[w];
    if (model.size % 64) bits.back() &= (uint64_t{1} << (model.size % 64)) - 1;
    bits[item / 64] &= ~(uint64_t{1} << (item % 64));
}

// Memory while an item runs, at the least, if exactly `lower` has run.
int64_t bytes_while(const OrderModel& model, int32_t item, const uint64_t* lower) {
    int64_t bytes = model.passing_bytes[item] - (model.may_take_over[item].empty() ? 0 : model.take_over_bytes[item]);
    for (int32_t t : model.started_by[item]) bytes += model.bytes[t];
    for_each_bit(lower, model.before.words(), [&](int32_t i) {
        for (int32_t t : model.started_by[i]) bytes += model.bytes[t];
        for (int32_t t : model.ended_by[i]) {
            // The last of the enders in the set answers for the tensor.
            const auto enders = model.enders[t];
            if (enders.back() != i) continue;
            if (std::all_of(enders.begin(), enders.end(), [&](int32_t e) { return has(lower, e); }))
                bytes -= model.bytes[t];
        }
    });
    return bytes;
}

}  // namespace

PrecedenceInference::PrecedenceInference(OrderModel& model, int64_t limit)
    : model_(model), limit_(limit), direct_(model.direct_before()), cut_(model, direct_), holds_below_(kNoLimit),
      lower_(model.before.words()), upper_(model.before.words()), set_(model.before.words()),
      may_be_in_(model.before.words()), may_be_out_(model.before.words()) {}

PrecedenceInference::Answer PrecedenceInference::step() {
    if (word_ < 0) {
        if (item_ == model_.size) {
            if (!changed_) return Answer::kDone;
            changed_ = false;
            item_ = 0;
            direct_ = model_.direct_before();
        }
        if (!start_item()) return Answer::kNone;
        word_ = 0;
    }
    const int32_t item = item_, word = word_;
    if (++word_ == model_.before.words()) {
        word_ = -1;
        ++item_;
    }
    found_.clear();
    compare(item, word);
    changed_ = changed_ || !found_.empty();
    found_any_ = found_any_ || changed_;
    return model_.add_precedences(found_) ? Answer::kGoing : Answer::kNone;
}

// False if the item passes the limit in every order.
bool PrecedenceInference::start_item() {
    lower_.assign(model_.before.row(item_), model_.before.row(item_) + model_.before.words());
    unless_after(model_, item_, upper_);
    base_ = bytes_while(model_, item_, lower_.data());
    cut_.pose(lower_.data(), upper_.data());
    if (const int64_t change = cut_.solve(limit_ - base_); base_ + change > limit_) {
        note(change);
        return false;
    }
    cut_.save();
    std::fill(may_be_in_.begin(), may_be_in_.end(), 0);
    std::fill(may_be_out_.begin(), may_be_out_.end(), 0);
    learn();
    return true;
}

// Fills found_ with what follows for a word of other items.
void PrecedenceInference::compare(int32_t item, int32_t word) {
    const int64_t enough = limit_ - base_;
    for (uint64_t left = upper_[word] & ~lower_[word]; left; left &= left - 1) {
        const uint64_t other = left & -left;
        const int32_t index = 64 * word + std::countr_zero(left);
        for (const bool inside : {true, false}) {
            if ((inside ? may_be_in_ : may_be_out_)[word] & other) continue;
            cut_.force(index, inside);
            if (const int64_t change = cut_.solve(enough); change > enough) {
                note(change);
                found_.push_back(inside ? std::pair(item, index) : std::pair(index, item));
            } else {
                learn();
            }
            cut_.restore();
        }
    }
}

// What is in one set within the limit may be in, and what is not may be out.
void PrecedenceInference::learn() {
    cut_.largest(set_.data());
    for (size_t w = 0; w < set_.size(); ++w) may_be_in_[w] |= set_[w];
    cut_.smallest(set_.data());
    for (size_t w = 0; w < set_.size(); ++w) may_be_out_[w] |= ~set_[w];
}

void PrecedenceInference::note(int64_t change) { holds_below_ = std::min(holds_below_, base_ + change); }

LeastBytes::LeastBytes(const OrderModel& model)
    : model_(model), direct_(model.direct_before()), cut_(model, direct_), upper_(model.before.words()) {}

int64_t LeastBytes::next() {
    unless_after(model_, item_, upper_);
    const uint64_t* lower = model_.before.row(item_);
    cut_.pose(lower, upper_.data());
    return bytes_while(model_, item_++, lower) + cut_.solve(kNoLimit);
}

}  // namespace opgym
