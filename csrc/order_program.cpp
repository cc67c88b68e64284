#include "order_program.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "order_peak.hpp"

namespace opgym {
namespace {

constexpr int64_t kSlice = 64;  // sets between two looks at the clock
// Sets of one question in the first round, and by what factor that grows from round to round.
constexpr int64_t kFirstEffort = 20'000, kMoreEffort = 8;
// A question that only raises the lower bound gets this part of the effort.
constexpr int64_t kLessForBound = 8;
// A round ends when the bounds that it can reach are this part of the peak apart.
constexpr int64_t kCloseEnough = 512;
// Larger graphs would take minutes for one pass of cuts.
constexpr int32_t kMostForCuts = 1000;
// Backwards the search is nearly always the faster one: most items there have one tensor to start and several to end.
constexpr int64_t kTurnsBackwards = 4;

}  // namespace

OrderProgram::Question::Question(const OrderModel& model, int64_t limit, bool infer, int64_t effort, int64_t max_bytes)
    : model_(model), limit_(limit), effort_(effort), max_bytes_(max_bytes), backwards_model_(model.backwards()),
      holds_below_(std::numeric_limits<int64_t>::max()) {
    if (infer) inference_ = std::make_unique<PrecedenceInference>(model_, limit);
}

OrderProgram::Answer OrderProgram::Question::step() {
    if (inference_) {
        const PrecedenceInference::Answer answer = inference_->step();
        if (answer == PrecedenceInference::Answer::kGoing) return Answer::kGoing;
        holds_below_ = inference_->holds_below();
        inference_.reset();
        if (answer == PrecedenceInference::Answer::kNone) return Answer::kNo;
        backwards_model_ = model_.backwards();
        return Answer::kGoing;
    }
    if (!backwards_) {
        backwards_.emplace(backwards_model_, limit_, max_bytes_ / 2);
        forwards_.emplace(model_, limit_, max_bytes_ / 2);
    }
    using Found = OrderDecision::Answer;
    const bool forwards = turn_++ % (kTurnsBackwards + 1) == kTurnsBackwards;
    OrderDecision& decision = forwards ? *forwards_ : *backwards_;
    const Found found = decision.run(kSlice);
    if (found == Found::kNo) {
        holds_below_ = std::min(holds_below_, decision.holds_below());
        return Answer::kNo;
    }
    if (found == Found::kYes) {
        found_forwards_ = forwards;
        return Answer::kYes;
    }
    full_ = found == Found::kFull && (forwards ? *backwards_ : *forwards_).run(0) == Found::kFull;
    return full_ || sets() > effort_ ? Answer::kUnknown : Answer::kGoing;
}

std::vector<int32_t> OrderProgram::Question::order() const {
    std::vector<int32_t> order = found_forwards_ ? forwards_->order() : backwards_->order();
    if (!found_forwards_) std::reverse(order.begin(), order.end());
    return order;
}

int64_t OrderProgram::Question::sets() const { return backwards_ ? backwards_->steps() + forwards_->steps() : 0; }

OrderProgram::OrderProgram(const Graph& graph, std::span<const int32_t> order, int64_t lower, int64_t max_bytes)
    : graph_(graph), model_(graph), max_bytes_(max_bytes), lower_(lower), best_(order.begin(), order.end()),
      effort_(kFirstEffort) {
    upper_ = ceiling_ = OrderPeak(graph).peak(best_);
    if (model_.size <= kMostForCuts) least_ = std::make_unique<LeastBytes>(model_);
}

void OrderProgram::run(double seconds) {
    const auto began = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    const int64_t known = upper_;
    while (!over() && upper_ == known && spent() < seconds) step();
}

void OrderProgram::step() {
    if (question_) {
        const Answer answer = question_->step();
        if (answer != Answer::kGoing) take_answer(answer);
    } else if (least_ && !least_->over()) {
        lower_ = std::max(lower_, least_->next());
    } else {
        ask();
    }
}

// Just below the best peak first: the answer may end everything. Then in the middle of what is open.
void OrderProgram::ask() {
    if (ceiling_ < upper_ && ceiling_ - lower_ <= upper_ / kCloseEnough) {
        effort_ *= kMoreEffort;
        may_infer_ = model_.size <= kMostForCuts;
        ceiling_ = upper_;
    }
    const bool decides = ceiling_ == upper_;
    const int64_t limit = decides ? upper_ - 1 : lower_ + (ceiling_ - lower_) / 2;
    question_ = std::make_unique<Question>(model_, limit, may_infer_, decides ? effort_ : effort_ / kLessForBound, max_bytes_);
}

void OrderProgram::take_answer(Answer answer) {
    sets_ += question_->sets();
    if (answer == Answer::kYes) {
        best_.clear();
        for (int32_t item : question_->order()) best_.push_back(model_.op[item]);
        upper_ = ceiling_ = OrderPeak(graph_).peak(best_);
    } else if (answer == Answer::kNo) {
        lower_ = std::max(lower_, std::min(question_->holds_below(), upper_));
    } else {
        ceiling_ = question_->limit();
        full_ = question_->full();
    }
    question_.reset();
}

}  // namespace opgym
