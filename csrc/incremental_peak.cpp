#include "incremental_peak.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "order_peak.hpp"

namespace opgym {

IncrementalPeak::IncrementalPeak(const Graph& graph, std::span<const int32_t> order) : graph_(graph) {
    build_tables();
    position_.assign(graph.num_ops, -1);
    drop_.assign(graph.num_ops, 0);
    seen_.assign(graph.num_tensors, 0);
    changed_.assign(graph.num_tensors, 0);
    new_last_.assign(graph.num_tensors, -1);
    assign(order);
}

void IncrementalPeak::build_tables() {
    const Graph& g = graph_;
    input_ptr_.assign(1, 0);
    before_ptr_.assign(1, 0);
    after_ptr_.assign(1, 0);
    written_.assign(g.num_ops, 0);
    unread_.assign(g.num_ops, 0);
    workspace_.assign(g.num_ops, 0);
    const auto add_sorted = [](std::vector<int32_t>& ptr, std::vector<int32_t>& row) {
        std::sort(row.begin() + ptr.back(), row.end());
        row.erase(std::unique(row.begin() + ptr.back(), row.end()), row.end());
        ptr.push_back(static_cast<int32_t>(row.size()));
    };
    for (int32_t op = 0; op < g.num_ops; ++op) {
        for (int32_t t : g.inputs(op)) {
            if (g.is_dynamic_at_home(t) && !g.is_output[t]) input_.push_back(t);
            if (!g.is_source(t) && !g.is_variable[g.producer[t]]) before_.push_back(g.producer[t]);
        }
        input_ptr_.push_back(static_cast<int32_t>(input_.size()));
        for (int32_t t = g.output_ptr[op]; t < g.output_ptr[op + 1] && !g.is_variable[op]; ++t) {
            after_.insert(after_.end(), g.consumers(t).begin(), g.consumers(t).end());
            if (!g.is_dynamic_at_home(t)) continue;
            written_[op] += g.tensor_bytes[t];
            if (g.consumers(t).empty() && !g.is_output[t]) unread_[op] += g.tensor_bytes[t];
        }
        add_sorted(before_ptr_, before_);
        add_sorted(after_ptr_, after_);
        if (!g.is_variable[op]) workspace_[op] = g.workspace_bytes[op];
    }
}

void IncrementalPeak::assign(std::span<const int32_t> order) {
    peak_ = OrderPeak(graph_).peak(order);
    order_.assign(order.begin(), order.end());
    std::fill(position_.begin(), position_.end(), -1);
    last_ = graph_.producer;
    for (int64_t p = 0; p < size(); ++p) {
        position_[order_[p]] = static_cast<int32_t>(p);
        for (int32_t t : graph_.inputs(order_[p])) last_[t] = order_[p];
    }
    std::vector<int64_t> memory(size());
    int64_t live = 0;
    for (int64_t p = 0; p < size(); ++p) {
        const int32_t op = order_[p];
        const auto [freed, saved] = release<false>(op);
        memory[p] = live + written_[op] + workspace_[op] - saved;
        drop_[op] = workspace_[op] - saved + freed;
        live += written_[op] - freed;
    }
    memory_.assign(std::move(memory));
    changed_tensors_.clear();
}

int64_t IncrementalPeak::earliest_begin(int64_t begin, int64_t end) const {
    int32_t latest = -1;
    for (int64_t p = begin; p < end; ++p)
        for (int32_t i = before_ptr_[order_[p]]; i < before_ptr_[order_[p] + 1]; ++i) {
            const int32_t at = position_[before_[i]];
            if (at < begin) latest = std::max(latest, at);
        }
    return latest + 1;
}

int64_t IncrementalPeak::latest_end(int64_t begin, int64_t end) const {
    auto earliest = static_cast<int32_t>(size());
    for (int64_t p = begin; p < end; ++p)
        for (int32_t i = after_ptr_[order_[p]]; i < after_ptr_[order_[p] + 1]; ++i) {
            const int32_t at = position_[after_[i]];
            if (at >= end) earliest = std::min(earliest, at);
        }
    return earliest;
}

bool IncrementalPeak::move(int64_t i, int64_t j, int64_t length) {
    if (length < 1 || i < 0 || i + length > size() || j < 0 || j + length > size())
        throw std::invalid_argument("a position lies outside the order");
    if (i == j) return true;
    if (j < earliest_begin(i, i + length) || j + length > latest_end(i, i + length)) return false;
    peak_after(i, i + length, j);
    apply();
    return true;
}

int64_t IncrementalPeak::peak_after(int64_t begin, int64_t end, int64_t to) {
    forward_ = to > begin;
    window_begin_ = std::min(begin, to);
    window_end_ = std::max(end, to + end - begin);
    begin_ = begin;
    end_ = end;
    if (2 * (end - begin) > window_end_ - window_begin_) {  // cheaper to move the others past the block
        begin_ = forward_ ? end : window_begin_;
        end_ = forward_ ? window_end_ : begin;
        forward_ = !forward_;
    }
    if (++round_ == 0) {  // the marks of 2^32 rounds ago would count again
        std::fill(seen_.begin(), seen_.end(), 0);
        std::fill(changed_.begin(), changed_.end(), 0);
        round_ = 1;
    }
    change_ = 0;
    moved_.clear();
    steps_.clear();
    stretches_.clear();
    changed_tensors_.clear();
    for (int64_t p = end_; p-- > begin_;) {
        meet_outputs(order_[p]);
        meet_inputs(order_[p]);
    }
    const int64_t inside = place_block();
    const int64_t outside = std::max(memory_.maximum(0, window_begin_), memory_.maximum(window_end_, size()));
    new_peak_ = std::max({inside, pass_others(), outside, int64_t{0}});
    return new_peak_;
}

// What an op of the block leaves behind is live at the ops that the block passes only while it stands before them.
void IncrementalPeak::meet_outputs(int32_t op) {
    int64_t kept = written_[op] - unread_[op];
    if (end_ - begin_ > 1)
        for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t)
            if (graph_.is_dynamic_at_home(t) && !graph_.is_output[t] && last_[t] != op && position_[last_[t]] < end_)
                kept -= graph_.tensor_bytes[t];
    change_ += forward_ ? -kept : kept;
}

// What the inputs of an op of the block mean for the ops that the block passes. Of several readers in the block the
// last one is met first, and decides.
void IncrementalPeak::meet_inputs(int32_t op) {
    for (int32_t i = input_ptr_[op]; i < input_ptr_[op + 1]; ++i) {
        const int32_t t = input_[i];
        if (end_ - begin_ > 1) {
            if (seen_[t] == round_) continue;
            seen_[t] = round_;
            if (position_[graph_.producer[t]] >= begin_) continue;  // of no concern outside the block
        }
        const int64_t last = position_[last_[t]], bytes = graph_.tensor_bytes[t];
        if (last >= window_end_) continue;
        if (forward_) {
            if (last < end_) {
                change_ += bytes;
            } else {
                steps_.push_back({last, bytes});
                change_last(t, op);
            }
        } else if (last < end_) {
            const int64_t before = last_reader_before_block(t);
            if (before < window_begin_) {
                change_ -= bytes;
            } else {
                steps_.push_back({before, -bytes});
                change_last(t, order_[before]);
            }
        }
    }
}

int64_t IncrementalPeak::last_reader_before_block(int32_t tensor) const {
    int32_t before = -1;
    for (int32_t reader : graph_.consumers(tensor))
        if (position_[reader] < begin_) before = std::max(before, position_[reader]);
    return before;
}

void IncrementalPeak::change_last(int32_t tensor, int32_t op) {
    changed_[tensor] = round_;
    new_last_[tensor] = op;
    changed_tensors_.push_back(tensor);
}

template <bool AfterMove>
IncrementalPeak::Release IncrementalPeak::release(int32_t op) const {
    Release result{unread_[op], 0};
    const bool in_place = graph_.may_run_in_place(op);
    for (int32_t i = input_ptr_[op]; i < input_ptr_[op + 1]; ++i) {
        const int32_t t = input_[i];
        const int32_t last = AfterMove && changed_[t] == round_ ? new_last_[t] : last_[t];
        if (last != op) continue;
        result.freed_bytes += graph_.tensor_bytes[t];
        if (in_place && graph_.may_take_over(op, t, /*at_home=*/true)) result.saved_bytes = graph_.tensor_bytes[t];
    }
    return result;
}

// The memory of the block's ops at their new place; returns the largest.
int64_t IncrementalPeak::place_block() {
    int64_t live = 0;  // after the op at hand, relative to the end of the block
    for (int64_t p = end_; p-- > begin_;) {
        const int32_t op = order_[p];
        const auto [freed, saved] = release<true>(op);
        const int64_t drop = workspace_[op] - saved + freed;
        moved_.push_back({op, live + drop, drop});
        live += freed - written_[op];
    }
    const int64_t base = forward_ ? live_after(window_end_ - 1) : live_after(window_begin_ - 1) - live;
    int64_t highest = RangeMaximum::kNone;
    for (Moved& moved : moved_) highest = std::max(highest, moved.memory += base);
    return highest;
}

// The memory of the ops that the block passes; returns the largest.
int64_t IncrementalPeak::pass_others() {
    int64_t from = forward_ ? end_ : window_begin_;
    const int64_t to = forward_ ? window_end_ : begin_;
    int64_t highest = RangeMaximum::kNone, change = change_;
    const auto add = [&](int64_t begin, int64_t end, int64_t by) {
        if (begin >= end) return;
        stretches_.push_back({begin, end, by});
        highest = std::max(highest, memory_.maximum(begin, end) + by);
    };
    if (steps_.size() > 1)
        std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.position < b.position; });
    for (const Step& step : steps_) {
        if (step.position >= from) {
            const int32_t reader = order_[step.position];
            int64_t in_place = 0;
            if (graph_.may_run_in_place(reader))
                in_place = release<false>(reader).saved_bytes - release<true>(reader).saved_bytes;
            if (in_place == 0) {
                add(from, step.position + 1, change);
            } else {
                add(from, step.position, change);
                add(step.position, step.position + 1, change + in_place);
            }
            from = step.position + 1;
        }
        change += step.change;
    }
    add(from, to, change);
    return highest;
}

void IncrementalPeak::apply() {
    for (int32_t t : changed_tensors_) last_[t] = new_last_[t];
    for (const Step& step : steps_) {
        const int32_t reader = order_[step.position];
        const auto [freed, saved] = release<false>(reader);
        drop_[reader] = workspace_[reader] - saved + freed;
    }
    shift_others();
    int64_t p = forward_ ? window_end_ : window_begin_ + static_cast<int64_t>(moved_.size());
    for (const Moved& moved : moved_) {
        --p;
        order_[p] = moved.op;
        position_[moved.op] = static_cast<int32_t>(p);
        drop_[moved.op] = moved.drop;
        memory_.set(p, moved.memory);
    }
    memory_.refresh(window_begin_, window_end_);
    peak_ = new_peak_;
}

void IncrementalPeak::shift_others() {
    const auto shift = [&](int64_t from, int64_t to, int64_t change) {
        order_[to] = order_[from];
        position_[order_[to]] = static_cast<int32_t>(to);
        memory_.set(to, memory_[from] + change);
    };
    const int64_t by = end_ - begin_;
    if (forward_) {
        for (const Stretch& s : stretches_)
            for (int64_t p = s.begin; p < s.end; ++p) shift(p, p - by, s.change);
    } else {
        for (auto s = stretches_.rbegin(); s != stretches_.rend(); ++s)
            for (int64_t p = s->end; p-- > s->begin;) shift(p, p + by, s->change);
    }
}

}  // namespace opgym
