#include "order_beam.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace opgym {
namespace {

bool has(const uint64_t* bits, int32_t op) { return bits[op / 64] >> (op % 64) & 1; }
void add(uint64_t* bits, int32_t op) { bits[op / 64] |= uint64_t{1} << (op % 64); }

}  // namespace

OrderBeam::OrderBeam(const Graph& graph, std::span<const int32_t> order, int64_t target, std::vector<int64_t> widths)
    : OrderSearch(graph, 0, target), widths_(std::move(widths)), length_(static_cast<int64_t>(order.size())),
      words_((graph.num_ops + 63) / 64), written_(graph.num_ops, 0), unread_(graph.num_ops, 0), workspace_(graph.num_ops) {
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        hash_of_.push_back(random_.bits());
        workspace_[op] = graph.workspace_bytes[op];
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) {
            if (!graph.is_dynamic_at_home(t)) continue;
            written_[op] += graph.tensor_bytes[t];
            if (graph.consumers(t).empty() && !graph.is_output[t]) unread_[op] += graph.tensor_bytes[t];
        }
    }
    if (widths_.empty() || *std::min_element(widths_.begin(), widths_.end()) < 1)
        throw std::invalid_argument("a beam is at least 1 wide");
    const std::vector<int32_t> start(order.begin(), order.end());
    found(OrderPeak(graph).peak(start), start);
    start_beam();
}

void OrderBeam::start_beam() {
    truncated_ = false;
    history_.clear();
    layer_.clear();
    next_state_ = 0;
    candidates_.clear();
    layer_.done.assign(words_, 0);
    for (int32_t op = 0; op < graph_.num_ops; ++op)
        if (graph_.is_variable[op]) add(layer_.done.data(), op);
    for (int32_t op = 0; op < graph_.num_ops; ++op)
        if (!graph_.is_variable[op] && is_ready(op, layer_.done.data()))
            layer_.ready.push_back(ready_entry(op, layer_.done.data()));
    layer_.states.push_back({0, 0, 0, -1, 0, static_cast<int32_t>(layer_.ready.size())});
}

bool OrderBeam::is_ready(int32_t op, const uint64_t* done) const {
    const auto inputs = graph_.inputs(op);
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](int32_t t) { return graph_.is_source(t) || has(done, graph_.producer[t]); });
}

OrderBeam::Ready OrderBeam::ready_entry(int32_t op, const uint64_t* done) const {
    int64_t freed = unread_[op], saved = 0;
    for (int32_t t : graph_.inputs(op)) {
        if (!graph_.is_dynamic_at_home(t) || graph_.is_output[t]) continue;
        const auto readers = graph_.consumers(t);
        if (!std::all_of(readers.begin(), readers.end(), [&](int32_t r) { return r == op || has(done, r); })) continue;
        freed += graph_.tensor_bytes[t];
        if (graph_.may_run_in_place(op) && graph_.may_take_over(op, t, /*at_home=*/true)) saved = graph_.tensor_bytes[t];
    }
    return {op, written_[op] + workspace_[op] - saved, written_[op] - freed};
}

// Looks at pairs until an evaluation's worth is done, or the last beam ends; what is left over counts as one.
bool OrderBeam::spend_one() {
    while (!over() && pairs_ < pairs_paid_ + length_) {
        if (next_state_ < static_cast<int32_t>(layer_.states.size())) {
            expand(next_state_++);
            continue;
        }
        next_layer();
        // A layer after as many ops as there are ends with one set: all of them.
        if (layer_.states.empty() || layer_.states[0].ready_begin == layer_.states[0].ready_end) end_beam();
    }
    pairs_paid_ += length_;
    return true;
}

void OrderBeam::expand(int32_t index) {
    const State& state = layer_.states[index];
    const int64_t allowed = std::max(state.peak, target());
    pairs_ += state.ready_end - state.ready_begin;
    const auto candidate_of = [&](int32_t entry) {
        const Ready& ready = layer_.ready[entry];
        return Candidate{std::max(allowed, state.live + ready.need), state.live + ready.net,
                         state.hash ^ hash_of_[ready.op], index, entry};
    };
    // An op that neither raises the peak nor leaves more behind than it found does no harm before all others.
    for (int32_t entry = state.ready_begin; entry < state.ready_end; ++entry) {
        const Ready& ready = layer_.ready[entry];
        if (ready.net <= 0 && state.live + ready.need <= allowed) return add_candidate(candidate_of(entry));
    }
    for (int32_t entry = state.ready_begin; entry < state.ready_end; ++entry) {
        const Candidate candidate = candidate_of(entry);
        if (candidate.peak < best_peak()) add_candidate(candidate);
    }
}

bool OrderBeam::same_set(const Candidate& a, const Candidate& b) const {
    if (a.hash != b.hash || a.live != b.live) return false;
    const int32_t op_a = layer_.ready[a.entry].op, op_b = layer_.ready[b.entry].op;
    const uint64_t* done_a = layer_.done.data() + a.state * words_;
    const uint64_t* done_b = layer_.done.data() + b.state * words_;
    for (int64_t w = 0; w < words_; ++w) {
        const uint64_t added_a = op_a / 64 == w ? uint64_t{1} << (op_a % 64) : 0;
        const uint64_t added_b = op_b / 64 == w ? uint64_t{1} << (op_b % 64) : 0;
        if ((done_a[w] | added_a) != (done_b[w] | added_b)) return false;
    }
    return true;
}

void OrderBeam::add_candidate(const Candidate& candidate) {
    if (table_.size() < 2 * (candidates_.size() + 1)) {
        table_.assign(std::max<size_t>(1024, std::bit_ceil(4 * (candidates_.size() + 1))), -1);
        for (size_t i = 0; i < candidates_.size(); ++i) {
            size_t at = candidates_[i].hash & (table_.size() - 1);
            while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
            table_[at] = static_cast<int32_t>(i);
        }
    }
    size_t at = candidate.hash & (table_.size() - 1);
    for (; table_[at] >= 0; at = (at + 1) & (table_.size() - 1)) {
        Candidate& known = candidates_[table_[at]];
        if (!same_set(known, candidate)) continue;
        if (candidate.peak < known.peak) known = candidate;
        return;
    }
    table_[at] = static_cast<int32_t>(candidates_.size());
    candidates_.push_back(candidate);
}

void OrderBeam::next_layer() {
    for (const Candidate& c : candidates_) {
        size_t at = c.hash & (table_.size() - 1);
        for (; table_[at] >= 0; at = (at + 1) & (table_.size() - 1)) table_[at] = -1;
    }
    const auto width = static_cast<size_t>(widths_[beam_]);
    const auto before = [](const Candidate& a, const Candidate& b) {
        if (a.peak != b.peak) return a.peak < b.peak;
        if (a.live != b.live) return a.live < b.live;
        return a.hash < b.hash;
    };
    if (candidates_.size() > width) {
        truncated_ = true;
        std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<int64_t>(width), candidates_.end(), before);
        candidates_.resize(width);
    }
    std::sort(candidates_.begin(), candidates_.end(), before);
    next_.clear();
    for (const Candidate& candidate : candidates_) add_state(candidate);
    candidates_.clear();
    std::swap(layer_, next_);
    next_state_ = 0;
}

void OrderBeam::add_state(const Candidate& candidate) {
    const State& parent = layer_.states[candidate.state];
    const int32_t op = layer_.ready[candidate.entry].op;
    const auto begin = static_cast<int32_t>(next_.ready.size());
    const uint64_t* done_before = layer_.done.data() + candidate.state * words_;
    next_.done.insert(next_.done.end(), done_before, done_before + words_);
    uint64_t* done = next_.done.data() + static_cast<int64_t>(next_.states.size()) * words_;
    add(done, op);
    for (int32_t entry = parent.ready_begin; entry < parent.ready_end; ++entry)
        if (entry != candidate.entry) next_.ready.push_back(layer_.ready[entry]);
    const auto known_end = static_cast<int32_t>(next_.ready.size());
    // Ready ops that share an input may now be its last readers.
    for (int32_t t : graph_.inputs(op)) {
        if (!graph_.is_dynamic_at_home(t) || graph_.is_output[t]) continue;
        int32_t left = 0, last = -1;
        for (int32_t reader : graph_.consumers(t)) {
            if (has(done, reader)) continue;
            last = reader;
            if (++left > 1) break;
        }
        if (left != 1) continue;
        for (int32_t i = begin; i < known_end; ++i)
            if (next_.ready[i].op == last) next_.ready[i] = ready_entry(last, done);
    }
    for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t)
        for (int32_t reader : graph_.consumers(t)) {
            if (!is_ready(reader, done)) continue;
            const auto same = [reader](const Ready& ready) { return ready.op == reader; };
            if (std::none_of(next_.ready.begin() + known_end, next_.ready.end(), same))
                next_.ready.push_back(ready_entry(reader, done));
        }
    history_.push_back({parent.node, op});
    next_.states.push_back({candidate.peak, candidate.live, candidate.hash, static_cast<int32_t>(history_.size()) - 1,
                            begin, static_cast<int32_t>(next_.ready.size())});
}

void OrderBeam::end_beam() {
    if (!layer_.states.empty()) {
        std::vector<int32_t> order;
        for (int32_t node = layer_.states[0].node; node >= 0; node = history_[node].before)
            order.push_back(history_[node].op);
        std::reverse(order.begin(), order.end());
        found(OrderPeak(graph_).peak(order), order);
    }
    if (!truncated_)
        proven_ = true;
    else if (++beam_ == widths_.size())
        finished_ = true;
    else
        start_beam();
}

}  // namespace opgym
