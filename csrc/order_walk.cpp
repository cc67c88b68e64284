#include "order_walk.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

namespace opgym {
namespace {

// Shares of moves and their sizes; found by trial on synthetic graphs of 60 to 200 ops and on training graphs.
constexpr double kAtPeak = 0.7;       // aim at what is live at the peak
constexpr int64_t kAround = 16;       // ops by which such a move goes farther than it must
constexpr int64_t kMostAlong = 64;    // ops that go along
constexpr double kAreaWeight = 0.1;   // of the mean memory beside the peak
constexpr int kDrawsAtPeak = 8;

std::span<const int32_t> first_start(const Graph& graph, std::span<const int32_t> starts) {
    const auto length = static_cast<size_t>(std::count(graph.is_variable.begin(), graph.is_variable.end(), 0));
    if (starts.empty() || starts.size() % length != 0)
        throw std::invalid_argument("starts are orders of " + std::to_string(length) + " ops");
    return starts.first(length);
}

}  // namespace

OrderWalk::OrderWalk(const Graph& graph, std::span<const int32_t> starts, uint64_t seed, int64_t target)
    : OrderSearch(graph, seed, target),
      state_(graph, first_start(graph, starts)),
      ready_(graph) {
    const auto length = static_cast<size_t>(state_.size());
    for (size_t from = 0; from + length <= starts.size(); from += length)
        starts_.emplace_back(starts.begin() + from, starts.begin() + from + length);
    proven_ = state_.is_only_order();
    found(state_.peak(), state_.order());
}

bool OrderWalk::restart() {
    if (next_start_ < starts_.size()) {
        state_.assign(starts_[next_start_++]);
        return false;
    }
    ready_.draw(random_, random_order_);
    state_.assign(random_order_);
    found(state_.peak(), state_.order());
    return true;
}

double OrderWalk::loss(int64_t peak) const {
    return static_cast<double>(peak - state_.peak()) +
           kAreaWeight * static_cast<double>(state_.area_change()) / static_cast<double>(state_.size());
}

void OrderWalk::accept(int64_t peak) {
    state_.apply();
    found(peak, state_.order());
}

int64_t OrderWalk::draw() {
    // Distances and numbers of ops are as likely to lie between 1 and 2 as between 16 and 32.
    const auto log_uniform = [&](int64_t limit) {
        const int64_t low = int64_t{1} << random_.below(std::bit_width(static_cast<uint64_t>(limit)));
        return std::min(limit, low + random_.below(low));
    };
    const int64_t size = state_.size();
    const bool later = random_.chance(0.5);
    const int64_t most = log_uniform(std::min(size, kMostAlong));
    if (random_.chance(kAtPeak)) return draw_at_peak(later, most);
    const int64_t distance = log_uniform(size), at = random_.below(size);
    return later ? state_.peak_if_later(at, std::min(size, at + distance + 1), most)
                 : state_.peak_if_earlier(at, std::max<int64_t>(0, at - distance), most);
}

// Something is live at the peak that need not be: its producer goes behind the peak, or its last reader before it.
int64_t OrderWalk::draw_at_peak(bool later, int64_t most) {
    const int64_t peak = state_.position_of_peak(), size = state_.size();
    const int64_t farther = random_.chance(0.5) ? 0 : random_.below(kAround);
    for (int i = 0; i < kDrawsAtPeak && peak > 0; ++i) {
        const int64_t producer = random_.below(peak), reader = state_.last_read(producer);
        if (reader < peak) continue;
        if (reader == peak) return state_.peak_if_later(peak, std::min(size, peak + 2 + farther), most);
        return later ? state_.peak_if_later(producer, std::min(size, peak + 1 + farther), most)
                     : state_.peak_if_earlier(reader, std::max<int64_t>(0, peak - farther), most);
    }
    return IncrementalPeak::kNothing;
}

OrderAnnealing::OrderAnnealing(const Graph& graph, std::span<const int32_t> starts, uint64_t seed, int64_t target,
                               double temperature, int64_t round_length)
    : OrderWalk(graph, starts, seed, target), temperature_(temperature) {
    set_round_length(round_length);
}

void OrderAnnealing::set_round_length(int64_t length) {
    if (length < 1) throw std::invalid_argument("a round has at least one evaluation");
    round_length_ = length;
}

bool OrderAnnealing::spend_one() {
    if (in_round_ >= round_length_) {
        in_round_ = 0;
        if (restart()) {
            ++in_round_;
            return true;
        }
    }
    const int64_t peak = draw();
    if (peak == IncrementalPeak::kNothing) return false;
    const double left = 1.0 - static_cast<double>(in_round_++) / static_cast<double>(round_length_);
    const double heat = temperature_ * left * left * static_cast<double>(state_.peak()), worse = loss(peak);
    if (worse <= 0 || (heat > 0 && random_.unit() < std::exp(-worse / heat))) accept(peak);
    return true;
}

OrderDescent::OrderDescent(const Graph& graph, std::span<const int32_t> order, uint64_t seed, int64_t target,
                           int64_t patience, int64_t kick)
    : OrderWalk(graph, order, seed, target), patience_(patience), kick_(kick), round_best_(state_.peak()) {}

bool OrderDescent::spend_one() {
    const int64_t peak = draw();
    if (peak == IncrementalPeak::kNothing) return false;
    if (kicks_left_ > 0) {
        accept(peak);
        if (--kicks_left_ == 0) round_best_ = peak;
        return true;
    }
    if (loss(peak) <= 0) accept(peak);
    if (state_.peak() < round_best_) {
        round_best_ = state_.peak();
        waited_ = 0;
    } else if (++waited_ >= patience_) {
        waited_ = 0;
        if (round_best_ > best_peak()) state_.assign(best_order());
        kicks_left_ = kick_;
    }
    return true;
}

}  // namespace opgym
