#include "incremental_peak.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace opgym {

IncrementalPeak::IncrementalPeak(const Graph& graph, std::span<const int32_t> order) : graph_(graph), full_(graph) {
    build_tables();
    position_.assign(graph.num_ops, -1);
    drop_.assign(graph.num_ops, 0);
    in_set_.assign(graph.num_ops, 0);
    seen_.assign(graph.num_tensors, 0);
    changed_.assign(graph.num_tensors, 0);
    new_last_.assign(graph.num_tensors, -1);
    reached_.assign(order.size() / 64 + 1, 0);
    change_at_.assign(order.size(), 0);
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
    const auto end_row = [](std::vector<int32_t>& ptr, std::vector<int32_t>& row) {
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
        end_row(before_ptr_, before_);
        end_row(after_ptr_, after_);
        if (!g.is_variable[op]) workspace_[op] = g.workspace_bytes[op];
    }
}

void IncrementalPeak::assign(std::span<const int32_t> order) {
    peak_ = full_.peak(order);
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
    position_of_peak_ = -1;
}

bool IncrementalPeak::is_only_order() const {
    for (int64_t p = 0; p + 1 < size(); ++p) {
        const auto begin = after_.begin() + after_ptr_[order_[p]], end = after_.begin() + after_ptr_[order_[p] + 1];
        if (!std::binary_search(begin, end, order_[p + 1])) return false;
    }
    return true;
}

int64_t IncrementalPeak::last_read(int64_t position) const {
    const int32_t op = order_[position];
    int64_t last = -1;
    for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t)
        if (last_[t] != op && graph_.tensor_bytes[t] > 0 && graph_.is_dynamic_at_home(t) && !graph_.is_output[t])
            last = std::max<int64_t>(last, position_[last_[t]]);
    return last;
}

void IncrementalPeak::start_round() {
    if (++round_ == 0) {  // the marks of 2^32 rounds ago would count again
        for (std::vector<uint32_t>* marks : {&in_set_, &seen_, &changed_}) std::fill(marks->begin(), marks->end(), 0);
        round_ = 1;
    }
    for (int64_t position : changes_) change_at_[position] = 0;
    changes_.clear();
    set_.clear();
    moved_.clear();
    changed_tensors_.clear();
    changed_readers_.clear();
    area_change_ = 0;
}

// Puts the op at a position into the set, and what is reached from it inside the window, by ascending or descending
// position. Where that would be more than `most` ops, the window ends before the next one.
template <bool Later>
void IncrementalPeak::gather(int64_t position, int64_t most) {
    const std::vector<int32_t>& neighbour_ptr = Later ? after_ptr_ : before_ptr_;
    const std::vector<int32_t>& neighbours = Later ? after_ : before_;
    constexpr int64_t step = Later ? 1 : -1;
    int64_t word = position / 64, last_word = word;
    reached_[word] = uint64_t{1} << (position % 64);
    while (true) {
        while (reached_[word] == 0 && word != last_word) word += step;
        if (reached_[word] == 0) break;
        const int bit = Later ? std::countr_zero(reached_[word]) : 63 - std::countl_zero(reached_[word]);
        const int64_t at = 64 * word + bit;
        if (static_cast<int64_t>(set_.size()) == most) {
            (Later ? window_end_ : window_begin_) = Later ? at : at + 1;
            for (; word != last_word; word += step) reached_[word] = 0;
            reached_[word] = 0;
            break;
        }
        reached_[word] ^= uint64_t{1} << bit;
        const int32_t op = order_[at];
        in_set_[op] = round_;
        set_.push_back(static_cast<int32_t>(at));
        for (int32_t i = neighbour_ptr[op]; i < neighbour_ptr[op + 1]; ++i) {
            const int64_t next = position_[neighbours[i]];
            if (next < window_begin_ || next >= window_end_) continue;
            reached_[next / 64] |= uint64_t{1} << (next % 64);
            last_word = Later ? std::max(last_word, next / 64) : std::min(last_word, next / 64);
        }
    }
    if (!Later) std::reverse(set_.begin(), set_.end());
}

int64_t IncrementalPeak::peak_if_later(int64_t position, int64_t end, int64_t most) {
    start_round();
    later_ = true;
    window_begin_ = position;
    window_end_ = end;
    gather<true>(position, most);
    return peak_if_moved();
}

int64_t IncrementalPeak::peak_if_earlier(int64_t position, int64_t begin, int64_t most) {
    start_round();
    later_ = false;
    window_begin_ = begin;
    window_end_ = position + 1;
    gather<false>(position, most);
    return peak_if_moved();
}

int64_t IncrementalPeak::peak_if_block(int64_t begin, int64_t end, int64_t to) {
    start_round();
    later_ = to > begin;
    window_begin_ = std::min(begin, to);
    window_end_ = std::max(end, to + end - begin);
    for (int64_t p = begin; p < end; ++p) {
        set_.push_back(static_cast<int32_t>(p));
        in_set_[order_[p]] = round_;
    }
    return peak_if_moved();
}

// The others of the window past the set, instead of the set past them: the same order.
void IncrementalPeak::take_complement() {
    std::vector<int32_t> others;
    for (int64_t p = window_begin_; p < window_end_; ++p)
        if (!moves(order_[p])) others.push_back(static_cast<int32_t>(p));
    for (int32_t p : set_) in_set_[order_[p]] = 0;
    for (int32_t p : others) in_set_[order_[p]] = round_;
    set_ = std::move(others);
    later_ = !later_;
}

int64_t IncrementalPeak::peak_if_moved() {
    const int64_t passed = window_end_ - window_begin_ - static_cast<int64_t>(set_.size());
    if (passed == 0) return kNothing;
    if (2 * passed < static_cast<int64_t>(set_.size())) take_complement();
    live_ = 0;
    for (size_t i = set_.size(); i-- > 0;) {
        meet_outputs(order_[set_[i]]);
        meet_inputs(order_[set_[i]]);
    }
    const int64_t outside = std::max(memory_.maximum(0, window_begin_), memory_.maximum(window_end_, size()));
    const int64_t inside = place_set();
    new_peak_ = std::max({inside, pass_others(), outside, int64_t{0}});
    return new_peak_;
}

void IncrementalPeak::change_range(int64_t begin, int64_t end, int64_t bytes) {
    if (begin >= end) return;
    change_at_[begin] += bytes;
    changes_.push_back(begin);
    if (end == window_end_) return;
    change_at_[end] -= bytes;
    changes_.push_back(end);
}

void IncrementalPeak::change_last(int32_t tensor, int32_t op) {
    changed_[tensor] = round_;
    new_last_[tensor] = op;
    changed_tensors_.push_back(tensor);
    changed_readers_.push_back(later_ ? last_[tensor] : op);
}

int64_t IncrementalPeak::last_reader_outside(int32_t tensor, int64_t before) const {
    int32_t last = -1;
    for (int32_t reader : graph_.consumers(tensor))
        if (position_[reader] < before && !moves(reader)) last = std::max(last, position_[reader]);
    return last;
}

// What a moved op writes. Going later, it takes all readers in the window along: the ops that it passes lose the tensor.
// Going earlier, they gain it, and lose it where only moved ops read it after them.
void IncrementalPeak::meet_outputs(int32_t op) {
    if (written_[op] == unread_[op]) return;
    const int64_t at = position_[op];
    for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t) {
        const int64_t bytes = graph_.tensor_bytes[t];
        if (bytes == 0 || (last_[t] == op && !graph_.is_output[t])) continue;
        const int64_t end = graph_.is_output[t] ? window_end_ : std::min<int64_t>(position_[last_[t]] + 1, window_end_);
        if (later_) {
            change_range(at + 1, end, -bytes);
            continue;
        }
        if (graph_.is_output[t] || !moves(last_[t])) {
            change_range(window_begin_, at, bytes);
            continue;
        }
        const int64_t reader = last_reader_outside(t, end);
        if (reader < 0) {
            change_range(at + 1, end, -bytes);
        } else {
            change_range(window_begin_, at, bytes);
            change_range(reader + 1, end, -bytes);
            change_last(t, order_[reader]);
        }
    }
}

// What a moved op reads, and what is freed when it ends. Of several moved readers of a tensor the last is met first,
// and decides. Live bytes count from the end of the set, backwards.
void IncrementalPeak::meet_inputs(int32_t op) {
    int64_t freed = unread_[op], saved = 0;
    for (int32_t i = input_ptr_[op]; i < input_ptr_[op + 1]; ++i) {
        const int32_t t = input_[i];
        if (seen_[t] == round_) continue;
        seen_[t] = round_;
        const int64_t end = position_[last_[t]] + 1, bytes = graph_.tensor_bytes[t];
        if (end > window_end_) continue;
        const bool within = moves(graph_.producer[t]);  // of no concern to the ops that are passed
        if (later_) {
            if (!within) change_range(end, window_end_, bytes);
            if (last_[t] != op) change_last(t, op);
        } else {
            if (!moves(last_[t])) continue;
            const int64_t reader = last_reader_outside(t, end);
            if (!within) change_range(std::max(reader + 1, window_begin_), end, -bytes);
            if (reader >= window_begin_) {
                if (!within) change_last(t, order_[reader]);
                continue;
            }
        }
        freed += bytes;
        if (graph_.may_run_in_place(op) && graph_.may_take_over(op, t, /*at_home=*/true)) saved = bytes;
    }
    const int64_t drop = workspace_[op] - saved + freed;
    moved_.push_back({op, live_ + drop, drop});
    live_ += freed - written_[op];
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

// The memory of the moved ops at their new place; returns the largest.
int64_t IncrementalPeak::place_set() {
    const int64_t base = later_ ? live_after(window_end_ - 1) : live_after(window_begin_ - 1) - live_;
    int64_t highest = RangeMaximum::kNone;
    for (Moved& moved : moved_) {
        highest = std::max(highest, moved.memory += base);
        area_change_ += moved.memory - memory_[position_[moved.op]];
    }
    return highest;
}

// The memory of the ops that are passed; returns the largest.
int64_t IncrementalPeak::pass_others() {
    if (graph_.in_place) {  // a reader of several tensors that change hands is corrected once
        std::sort(changed_readers_.begin(), changed_readers_.end());
        changed_readers_.erase(std::unique(changed_readers_.begin(), changed_readers_.end()), changed_readers_.end());
    }
    for (int32_t reader : changed_readers_)
        if (graph_.may_run_in_place(reader)) {
            const int64_t more = release<false>(reader).saved_bytes - release<true>(reader).saved_bytes;
            if (more != 0) change_range(position_[reader], position_[reader] + 1, more);
        }
    int64_t highest = RangeMaximum::kNone, change = 0, position = window_begin_;
    for (size_t i = 0; i <= set_.size(); ++i) {
        const int64_t next = i < set_.size() ? set_[i] : window_end_;
        for (; position < next; ++position) {
            change += change_at_[position];
            area_change_ += change;
            highest = std::max(highest, memory_[position] + change);
        }
        if (position < window_end_) change += change_at_[position++];
    }
    last_change_ = change;
    return highest;
}

void IncrementalPeak::apply() {
    for (int32_t t : changed_tensors_) last_[t] = new_last_[t];
    for (int32_t reader : changed_readers_) {
        const auto [freed, saved] = release<false>(reader);
        drop_[reader] = workspace_[reader] - saved + freed;
    }
    const auto shift = [&](int64_t from, int64_t to, int64_t change) {
        order_[to] = order_[from];
        position_[order_[to]] = static_cast<int32_t>(to);
        memory_.set(to, memory_[from] + change);
    };
    const auto moved = static_cast<int64_t>(set_.size());
    if (later_) {
        int64_t change = 0, passed = 0;  // moved ops that stood before
        for (int64_t from = window_begin_; from < window_end_; ++from) {
            change += change_at_[from];
            if (passed < moved && set_[passed] == from)
                ++passed;
            else
                shift(from, from - passed, change);
        }
    } else {
        int64_t change = last_change_, passed = 0;  // moved ops that stood behind
        for (int64_t from = window_end_; from-- > window_begin_;) {
            if (passed < moved && set_[moved - 1 - passed] == from)
                ++passed;
            else
                shift(from, from + passed, change);
            change -= change_at_[from];
        }
    }
    int64_t p = later_ ? window_end_ : window_begin_ + moved;
    for (const Moved& op : moved_) {
        --p;
        order_[p] = op.op;
        position_[op.op] = static_cast<int32_t>(p);
        drop_[op.op] = op.drop;
        memory_.set(p, op.memory);
    }
    memory_.refresh(window_begin_, window_end_);
    peak_ = new_peak_;
    position_of_peak_ = -1;
}

bool IncrementalPeak::move(int64_t i, int64_t j, int64_t length) {
    if (length < 1 || i < 0 || i + length > size() || j < 0 || j + length > size())
        throw std::invalid_argument("a position lies outside the order");
    if (i == j) return true;
    const bool later = j > i;
    const int64_t passed_begin = later ? i + length : j, passed_end = later ? j + length : i;
    for (int64_t p = i; p < i + length; ++p) {
        const std::vector<int32_t>& ptr = later ? after_ptr_ : before_ptr_;
        const std::vector<int32_t>& neighbours = later ? after_ : before_;
        for (int32_t k = ptr[order_[p]]; k < ptr[order_[p] + 1]; ++k) {
            const int64_t at = position_[neighbours[k]];
            if (passed_begin <= at && at < passed_end) return false;
        }
    }
    peak_if_block(i, i + length, j);
    apply();
    return true;
}

bool IncrementalPeak::move_later(int64_t position, int64_t end) {
    if (position < 0 || position >= end || end > size()) throw std::invalid_argument("a position lies outside the order");
    if (peak_if_later(position, end, size()) == kNothing) return false;
    apply();
    return true;
}

bool IncrementalPeak::move_earlier(int64_t position, int64_t begin) {
    if (begin < 0 || position < begin || position >= size())
        throw std::invalid_argument("a position lies outside the order");
    if (peak_if_earlier(position, begin, size()) == kNothing) return false;
    apply();
    return true;
}

}  // namespace opgym
