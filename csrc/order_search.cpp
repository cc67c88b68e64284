#include "order_search.hpp"

#include <limits>
#include <utility>

namespace opgym {
namespace {

// Evaluations, or draws that come to nothing, between two looks at the clock.
constexpr int64_t kBetweenLooks = 64;

}  // namespace

OrderSearch::OrderSearch(const Graph& graph, uint64_t seed, int64_t target)
    : AnytimeSearch(target, std::numeric_limits<int64_t>::max(), kBetweenLooks), graph_(graph), random_(seed) {}

RandomOrders::RandomOrders(const Graph& graph, uint64_t seed, int64_t target)
    : OrderSearch(graph, seed, target), evaluator_(graph), ready_(graph) {}

bool RandomOrders::spend_one() {
    ready_.draw(random_, order_);
    found(evaluator_.peak(order_), order_);
    return true;
}

KeyDescent::KeyDescent(const Graph& graph, std::span<const int32_t> order, uint64_t seed, int64_t target)
    : OrderSearch(graph, seed, target), evaluator_(graph), ready_(graph), order_(order.begin(), order.end()),
      key_(graph.num_ops, 0.0) {
    peak_ = evaluator_.peak(order_);
    for (size_t p = 0; p < order_.size(); ++p)
        key_[order_[p]] = 1.0 - (static_cast<double>(p) + 0.5) / static_cast<double>(order_.size());
    found(peak_, order_);
}

bool KeyDescent::spend_one() {
    // Positions of the last order name the ops that have keys to change; the order is listed anew below.
    const double kind = random_.unit();
    const int changes = 1 + (kind < 0.3) + (kind < 0.1);
    std::pair<int32_t, double> old[3];
    for (int i = 0; i < changes; ++i) {
        const int32_t op = order_[random_.below(static_cast<int64_t>(order_.size()))];
        old[i] = {op, key_[op]};
        key_[op] = random_.chance(0.5) ? random_.unit() : key_[op] + 0.1 * (random_.unit() - 0.5);
    }
    ready_.by_keys(key_, order_);
    const int64_t peak = evaluator_.peak(order_);
    if (peak <= peak_) {
        peak_ = peak;
        found(peak, order_);
    } else {
        for (int i = changes; i-- > 0;) key_[old[i].first] = old[i].second;
    }
    return true;
}

}  // namespace opgym
