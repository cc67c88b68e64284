#include "order_program.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "order_peak.hpp"

namespace opgym {
namespace {

// Sets between two looks at the clock, and items times sets where there are many items.
constexpr int64_t kSlice = 64, kItemSlice = 65'536;
// Backwards the search is nearly always the faster one: most items there have one tensor to end and several to start.
constexpr int64_t kBackwardsShare = 8, kInferredShare = 4, kForwardsShare = 1;
constexpr int64_t kAllShares = kBackwardsShare + kInferredShare + kForwardsShare;
// Work on the question that decides in the first round, and by what factor that grows from round to round.
constexpr int64_t kFirstEffort = 20'000, kMoreEffort = 4;
// Part of it that other questions get, all together and each.
constexpr int64_t kMiddlePart = 2, kOneMiddlePart = 8;
// A round ends when what is open is this part of the peak.
constexpr int64_t kCloseEnough = 512;
// Larger graphs would take minutes for one pass of cuts.
constexpr int32_t kMostForCuts = 1000;
constexpr int64_t kAnyLimit = std::numeric_limits<int64_t>::max();

bool may_infer(const OrderModel& model) { return model.size <= kMostForCuts; }

}  // namespace

int64_t OrderQuestion::Way::work() const { return inference_work + (decision ? decision->steps() : 0); }

OrderQuestion::OrderQuestion(const OrderModel& model, int64_t limit, Ways ways, int64_t max_bytes) : limit_(limit) {
    const auto add = [&](bool backwards, int64_t share) -> Way& {
        const OrderModel& directed = backwards ? model.backwards() : model;
        ways_.push_back({directed, backwards, share, max_bytes / kAllShares * share, nullptr, nullptr, kAnyLimit});
        return ways_.back();
    };
    ways_.reserve(3);  // inferences and decisions keep a reference to their model
    if (ways != Ways::kInferred) {
        add(true, kBackwardsShare);
        add(false, kForwardsShare);
    }
    if (ways != Ways::kNotInferred) {
        Way& way = add(true, kInferredShare);
        way.model = model;
        way.inference = std::make_unique<PrecedenceInference>(way.model, limit);
    }
}

OrderQuestion::Answer OrderQuestion::step() {
    Way* next = nullptr;
    for (Way& way : ways_)
        if (!way.stuck && (!next || way.work() * next->share < next->work() * way.share)) next = &way;
    if (!next) return Answer::kGoing;
    return next->inference ? infer(*next) : decide(*next);
}

OrderQuestion::Answer OrderQuestion::infer(Way& way) {
    const PrecedenceInference::Answer answer = way.inference->step();
    way.inference_work = way.inference->work();
    if (answer == PrecedenceInference::Answer::kGoing) return Answer::kGoing;
    way.holds_below = way.inference->holds_below();
    if (answer == PrecedenceInference::Answer::kNone) {
        holds_below_ = way.holds_below;
        return Answer::kNo;
    }
    way.stuck = !way.inference->found_any() && ways_.size() > 1;  // the other ways know as much
    way.inference.reset();
    way.model = way.model.backwards();
    return Answer::kGoing;
}

OrderQuestion::Answer OrderQuestion::decide(Way& way) {
    if (!way.decision) way.decision = std::make_unique<OrderDecision>(way.model, limit_, way.max_bytes);
    switch (way.decision->run(std::clamp<int64_t>(kItemSlice / way.model.size, 1, kSlice))) {
        case OrderDecision::Answer::kGoing:
            return Answer::kGoing;
        case OrderDecision::Answer::kFull:
            way.stuck = true;
            return Answer::kGoing;
        case OrderDecision::Answer::kNo:
            holds_below_ = std::min(way.holds_below, way.decision->holds_below());
            return Answer::kNo;
        case OrderDecision::Answer::kYes:
            break;
    }
    order_ = way.decision->order();
    if (way.is_backwards) std::reverse(order_.begin(), order_.end());
    return Answer::kYes;
}

void OrderQuestion::tighten(int64_t limit) {
    limit_ = limit;
    for (Way& way : ways_) {
        if (way.inference) way.inference->tighten(limit);
        if (way.decision) way.decision->tighten(limit);
    }
}

int64_t OrderQuestion::work() const {
    int64_t sum = 0;
    for (const Way& way : ways_) sum += way.work();
    return sum;
}

int64_t OrderQuestion::inference_work() const {
    int64_t sum = 0;
    for (const Way& way : ways_) sum += way.inference_work;
    return sum;
}

bool OrderQuestion::stuck() const {
    return std::all_of(ways_.begin(), ways_.end(), [](const Way& way) { return way.stuck; });
}

OrderProgram::OrderProgram(const Graph& graph, std::span<const int32_t> order, int64_t lower, int64_t max_bytes)
    : graph_(graph), model_(graph), max_bytes_(max_bytes), lower_(lower), upper_(OrderPeak(graph).peak(order)),
      best_(order.begin(), order.end()),
      last_(model_, upper_ - 1, may_infer(model_) ? OrderQuestion::Ways::kAll : OrderQuestion::Ways::kNotInferred,
            max_bytes / 2),
      effort_(kFirstEffort), ceiling_(upper_) {
    if (may_infer(model_)) least_ = std::make_unique<LeastBytes>(model_);
}

void OrderProgram::run(int64_t work, double seconds) {
    const auto began = std::chrono::steady_clock::now();
    const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    const int64_t known = upper_, before = this->work();
    while (!over() && upper_ == known && this->work() - before < work && spent() < seconds) step();
}

void OrderProgram::step() {
    if (last_.work() < effort_ && !last_.stuck()) {
        step_last();
    } else if (least_ && !least_->over()) {
        lower_ = std::max(lower_, least_->next());
    } else if (middle_) {
        step_middle();
    } else if (middle_effort_ > 0 && ceiling_ - lower_ > upper_ / kCloseEnough) {
        start_middle();
    } else if (last_.stuck()) {
        stuck_ = true;
    } else {
        ceiling_ = last_.limit();
        effort_ *= kMoreEffort;
        middle_effort_ += effort_ / kMiddlePart;
    }
}

void OrderProgram::step_last() {
    switch (last_.step()) {
        case OrderQuestion::Answer::kGoing:
            break;
        case OrderQuestion::Answer::kNo:
            lower_ = upper_;
            break;
        case OrderQuestion::Answer::kYes:
            offer(ops_of(last_.order()));
    }
}

void OrderProgram::start_middle() {
    const int64_t limit = lower_ + (ceiling_ - lower_) / 2;
    const auto ways = may_infer(model_) ? OrderQuestion::Ways::kInferred : OrderQuestion::Ways::kNotInferred;
    middle_ = std::make_unique<OrderQuestion>(model_, limit, ways, max_bytes_ / 2);
}

// A question that takes long is put off, and so is every limit above.
void OrderProgram::step_middle() {
    const OrderQuestion::Answer answer = middle_->step();
    if (answer == OrderQuestion::Answer::kYes) {
        offer(ops_of(middle_->order()));
    } else if (answer == OrderQuestion::Answer::kNo) {
        lower_ = std::max(lower_, std::min(middle_->holds_below(), upper_));
    } else if (middle_->work() - middle_->inference_work() < effort_ / kOneMiddlePart && !middle_->stuck()) {
        return;
    } else {
        ceiling_ = middle_->limit();
    }
    work_ += middle_->work();
    middle_effort_ -= middle_->work();
    middle_.reset();
}

std::vector<int32_t> OrderProgram::ops_of(const std::vector<int32_t>& items) const {
    std::vector<int32_t> order;
    for (int32_t item : items) order.push_back(model_.op[item]);
    return order;
}

void OrderProgram::offer(std::span<const int32_t> order) {
    const int64_t peak = OrderPeak(graph_).peak(order);
    if (peak >= upper_) return;
    best_.assign(order.begin(), order.end());
    upper_ = peak;
    ceiling_ = std::min(ceiling_, upper_);
    if (!proven()) last_.tighten(upper_ - 1);
}

}  // namespace opgym
