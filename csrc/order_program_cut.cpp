#include "order_program_cut.hpp"

#include <algorithm>
#include <limits>

namespace opgym {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;
constexpr int32_t kSource = 0, kSink = 1;

}  // namespace

LeastLive::LeastLive(const OrderModel& model, const Lists& direct)
    : model_(model), direct_(direct), node_of_(model.size, -1), lower_(model.before.words()), gain_(model.size, 0),
      is_touched_(model.bytes.size(), 0) {}

int32_t LeastLive::add_node() {
    first_.push_back(-1);
    return static_cast<int32_t>(first_.size()) - 1;
}

void LeastLive::add_edge(int32_t from, int32_t to, int64_t room) {
    edges_.push_back({to, first_[from], room});
    first_[from] = static_cast<int32_t>(edges_.size()) - 1;
    edges_.push_back({from, first_[to], 0});
    first_[to] = static_cast<int32_t>(edges_.size()) - 1;
}

// Nodes are items and tensors; the source's side of a cut is the set. A tensor that ends: source -> tensor -> enders.
// One that starts: starters -> tensor -> sink. Where one item decides alone, its own edge takes the bytes.
void LeastLive::pose(const uint64_t* lower, const uint64_t* upper) {
    for (int32_t i : between_) node_of_[i] = -1;
    between_.clear();
    edges_.clear();
    first_.assign(2, -1);
    offset_ = flow_ = 0;
    const int32_t words = model_.before.words();
    std::copy(lower, lower + words, lower_.begin());
    for (int32_t w = 0; w < words; ++w)
        for (uint64_t left = upper[w] & ~lower[w]; left; left &= left - 1) {
            const int32_t i = 64 * w + std::countr_zero(left);
            node_of_[i] = add_node();
            gain_[i] = 0;
            between_.push_back(i);
        }
    const auto in = [](const uint64_t* bits, int32_t i) { return bits[i / 64] >> (i % 64) & 1; };
    touched_.clear();
    for (int32_t i : between_) {
        for (int32_t p : direct_[i])
            if (node_of_[p] >= 0) add_edge(node_of_[i], node_of_[p], kUnlimited);
        for (const Lists* lists : {&model_.started_by, &model_.ended_by})
            for (int32_t t : (*lists)[i]) {
                if (is_touched_[t]) continue;
                is_touched_[t] = 1;
                touched_.push_back(t);
            }
    }
    for (int32_t t : touched_) {
        is_touched_[t] = 0;
        const int64_t bytes = model_.bytes[t];
        int32_t count = 0, last = -1;
        bool decided = model_.starters[t].empty();
        for (int32_t i : model_.starters[t]) {
            decided = decided || in(lower, i);
            if (node_of_[i] >= 0) ++count, last = i;
        }
        if (!decided && count == 1) gain_[last] -= bytes;
        if (!decided && count > 1) {
            const int32_t node = add_node();
            add_edge(node, kSink, bytes);
            for (int32_t i : model_.starters[t])
                if (node_of_[i] >= 0) add_edge(node_of_[i], node, kUnlimited);
        }
        count = 0;
        bool never = model_.enders[t].empty();
        for (int32_t i : model_.enders[t]) {
            never = never || !in(upper, i);
            if (node_of_[i] >= 0) ++count, last = i;
        }
        if (never || count == 0) continue;
        if (count == 1) {
            gain_[last] += bytes;
            continue;
        }
        const int32_t node = add_node();
        add_edge(kSource, node, bytes);
        offset_ -= bytes;
        for (int32_t i : model_.enders[t])
            if (node_of_[i] >= 0) add_edge(node, node_of_[i], kUnlimited);
    }
    work_ += static_cast<int64_t>(edges_.size());
    for (int32_t i : between_) {
        if (gain_[i] > 0) {
            add_edge(kSource, node_of_[i], gain_[i]);
            offset_ -= gain_[i];
        } else if (gain_[i] < 0) {
            add_edge(node_of_[i], kSink, -gain_[i]);
        }
    }
}

void LeastLive::force(int32_t item, bool inside) {
    if (inside)
        add_edge(kSource, node_of_[item], kUnlimited);
    else
        add_edge(node_of_[item], kSink, kUnlimited);
}

int64_t LeastLive::solve(int64_t enough) {
    while (offset_ + flow_ <= enough && find_levels()) {
        at_ = first_;
        while (offset_ + flow_ <= enough) {
            const int64_t pushed = push(kSource, kUnlimited);
            if (pushed == 0) break;
            flow_ += pushed;
        }
    }
    return offset_ + flow_;
}

bool LeastLive::find_levels() {
    level_.assign(first_.size(), -1);
    level_[kSource] = 0;
    queue_.assign(1, kSource);
    for (size_t head = 0; head < queue_.size(); ++head) {
        const int32_t node = queue_[head];
        for (int32_t e = first_[node]; e >= 0; e = edges_[e].next) {
            ++work_;
            if (edges_[e].room == 0 || level_[edges_[e].to] >= 0) continue;
            level_[edges_[e].to] = level_[node] + 1;
            if (edges_[e].to == kSink) return true;
            queue_.push_back(edges_[e].to);
        }
    }
    return false;
}

int64_t LeastLive::push(int32_t node, int64_t most) {
    if (node == kSink) return most;
    for (int32_t& e = at_[node]; e >= 0; e = edges_[e].next) {
        Edge& edge = edges_[e];
        if (edge.room == 0 || level_[edge.to] != level_[node] + 1) continue;
        const int64_t pushed = push(edge.to, std::min(most, edge.room));
        if (pushed == 0) continue;
        edge.room -= pushed;
        edges_[e ^ 1].room += pushed;
        return pushed;
    }
    return 0;
}

// level_ becomes 0 for what the root reaches, or what reaches the root, along edges with room; -1 for the rest.
void LeastLive::mark(int32_t root, bool backwards) {
    level_.assign(first_.size(), -1);
    level_[root] = 0;
    queue_.assign(1, root);
    for (size_t head = 0; head < queue_.size(); ++head)
        for (int32_t e = first_[queue_[head]]; e >= 0; e = edges_[e].next) {
            if (edges_[backwards ? e ^ 1 : e].room == 0 || level_[edges_[e].to] >= 0) continue;
            level_[edges_[e].to] = 0;
            queue_.push_back(edges_[e].to);
        }
}

void LeastLive::largest(uint64_t* bits) {
    mark(kSink, /*backwards=*/true);
    std::copy(lower_.begin(), lower_.end(), bits);
    for (int32_t i : between_)
        if (level_[node_of_[i]] < 0) bits[i / 64] |= uint64_t{1} << (i % 64);
}

void LeastLive::smallest(uint64_t* bits) {
    mark(kSource, /*backwards=*/false);
    std::copy(lower_.begin(), lower_.end(), bits);
    for (int32_t i : between_)
        if (level_[node_of_[i]] == 0) bits[i / 64] |= uint64_t{1} << (i % 64);
}

void LeastLive::save() {
    saved_edges_ = edges_;
    saved_flow_ = flow_;
}

// Edges that force were added last and start lists at source or sink; first_ follows the edges.
void LeastLive::restore() {
    for (size_t e = edges_.size(); e > saved_edges_.size(); e -= 2) {
        first_[edges_[e - 1].to] = edges_[e - 2].next;
        first_[edges_[e - 2].to] = edges_[e - 1].next;
    }
    edges_ = saved_edges_;
    flow_ = saved_flow_;
    work_ += static_cast<int64_t>(edges_.size());
}

}  // namespace opgym
