#include "order_peak.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "parallel.hpp"

namespace opgym {
namespace {

template <int N>
OrderTables::Lifetime<N> lifetime(int32_t producer, std::span<const int32_t> consumers, int64_t freed_bytes) {
    OrderTables::Lifetime<N> out{freed_bytes, producer, {}};
    for (size_t i = 0; i < N; ++i) out.consumers[i] = consumers[std::min(i, consumers.size() - 1)];
    return out;
}

}  // namespace

OrderTables::OrderTables(const Graph& graph) : schedulable(graph.num_ops, 0), bytes(graph.num_ops, Bytes{0, 0}) {
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        if (graph.is_variable[op]) continue;
        schedulable[op] = -1;
        ++num_schedulable;
        in_place = in_place || graph.may_run_in_place(op);
        bytes[op].passing = graph.workspace_bytes[op];
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) {
            const auto consumers = graph.consumers(t);
            const int64_t size = graph.is_update(op) ? 0 : graph.tensor_bytes[t];
            (consumers.empty() && !graph.is_output[t] ? bytes[op].passing : bytes[op].kept) += size;
            if (consumers.empty()) continue;
            const int64_t freed = graph.is_output[t] ? 0 : size;
            if (consumers.size() <= 2)
                pairs.push_back(lifetime<2>(op, consumers, freed));
            else if (consumers.size() <= 4)
                quads.push_back(lifetime<4>(op, consumers, freed));
            else
                long_lifetimes.push_back({op, graph.consumer_ptr[t], graph.consumer_ptr[t + 1], freed});
        }
    }
}

int64_t OrderPeak::peak(std::span<const int32_t> order) {
    int64_t peak;
    return fast_peak(order, peak) ? peak : checked_peak(order);
}

void OrderPeak::peaks(std::span<const int32_t> orders, int64_t* peaks) {
    const size_t length = orders.size() / kLanes;
    if (fast_peaks(orders, length, peaks)) return;
    for (int lane = 0; lane < kLanes; ++lane) peaks[lane] = peak(orders.subspan(lane * length, length));
}

// Live bytes along an order, when what each position frees is known.
int64_t OrderPeak::walk(const int32_t* order, const int64_t* freed_bytes) const {
    int64_t live = 0, peak = 0;
    for (int32_t i = 0; i < tables_.num_schedulable; ++i) {
        const OrderTables::Bytes bytes = tables_.bytes[order[i]];
        live += bytes.kept;
        peak = std::max(peak, live + bytes.passing);
        live -= freed_bytes[i];
    }
    return peak;
}

// Books what each position frees; negative if an op runs before its input exists.
template <int N>
int32_t OrderPeak::end_lifetimes(const std::vector<OrderTables::Lifetime<N>>& lifetimes) {
    const int32_t* const position = position_.data();
    int64_t* const freed_bytes = freed_bytes_.data();
    int32_t wrong = 0;
    for (const auto& t : lifetimes) {
        int32_t first = position[t.consumers[0]], last = first;
        for (int i = 1; i < N; ++i) {
            // min and max without a branch that half of all orders guess wrong (compilers make one of std::min here)
            const int32_t p = position[t.consumers[i]], below = p - first, above = last - p;
            first += below & (below >> 31);
            last -= above & (above >> 31);
        }
        wrong |= first - position[t.producer] - 1;
        freed_bytes[last & ~(last >> 31)] += t.freed_bytes;
    }
    return wrong;
}

// False, without a word, for anything but a legal order of exactly the ops to schedule: checked_peak says what is wrong.
bool OrderPeak::fast_peak(std::span<const int32_t> order, int64_t& peak) {
    const OrderTables& tables = tables_;
    if (tables.in_place || order.size() != static_cast<size_t>(tables.num_schedulable)) return false;
    const auto ops = static_cast<uint32_t>(graph_.num_ops);
    position_.assign(ops, -1);
    int32_t* const position = position_.data();
    bool outside = false;
    for (int32_t op : order) outside |= static_cast<uint32_t>(op) >= ops;
    if (outside) return false;
    for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int32_t>(i);
    int32_t wrong = 0;  // negative: an op is missing, or one runs before its input exists
    for (uint32_t op = 0; op < ops; ++op) wrong |= position[op] & tables.schedulable[op];

    freed_bytes_.assign(order.size(), 0);
    wrong |= end_lifetimes(tables.pairs) | end_lifetimes(tables.quads);
    for (const OrderTables::LongLifetime& t : tables.long_lifetimes) {
        int32_t first = std::numeric_limits<int32_t>::max(), last = 0;
        for (int32_t k = t.first_consumer; k < t.last_consumer; ++k) {
            first = std::min(first, position[graph_.consumer_op[k]]);
            last = std::max(last, position[graph_.consumer_op[k]]);
        }
        wrong |= first - position[t.producer] - 1;
        freed_bytes_[last] += t.freed_bytes;
    }
    if (wrong < 0) return false;
    peak = walk(order.data(), freed_bytes_.data());
    return true;
}

// As fast_peak, the positions of kLanes orders side by side, so that one comparison serves all of them.
bool OrderPeak::fast_peaks(std::span<const int32_t> orders, size_t length, int64_t* peaks) {
    const OrderTables& tables = tables_;
    if (tables.in_place || length != static_cast<size_t>(tables.num_schedulable) ||
        length > std::numeric_limits<int16_t>::max())
        return false;
    const auto ops = static_cast<uint32_t>(graph_.num_ops);
    lane_positions_.assign(ops, Lanes{} - 1);
    auto* flat = reinterpret_cast<int16_t*>(lane_positions_.data());
    for (int lane = 0; lane < kLanes; ++lane) {
        const int32_t* order = orders.data() + lane * length;
        for (size_t i = 0; i < length; ++i) {
            if (static_cast<uint32_t>(order[i]) >= ops) return false;
            flat[static_cast<size_t>(order[i]) * kLanes + lane] = static_cast<int16_t>(i);
        }
    }
    const Lanes* position = lane_positions_.data();
    Lanes wrong{};
    for (uint32_t op = 0; op < ops; ++op) wrong |= position[op] & static_cast<int16_t>(tables.schedulable[op]);

    auto later = [](Lanes a, Lanes b) { return a > b ? a : b; };
    auto earlier = [](Lanes a, Lanes b) { return a < b ? a : b; };
    freed_bytes_.assign(length * kLanes, 0);
    auto free_at = [&](Lanes last, int64_t bytes) {
        for (int lane = 0; lane < kLanes; ++lane)
            freed_bytes_[lane * length + static_cast<size_t>(std::max<int16_t>(last[lane], 0))] += bytes;
    };
    for (const auto& t : tables.pairs) {
        const Lanes a = position[t.consumers[0]], b = position[t.consumers[1]];
        wrong |= earlier(a, b) <= position[t.producer];
        free_at(later(a, b), t.freed_bytes);
    }
    for (const auto& t : tables.quads) {
        const Lanes a = position[t.consumers[0]], b = position[t.consumers[1]];
        const Lanes c = position[t.consumers[2]], d = position[t.consumers[3]];
        wrong |= earlier(earlier(a, b), earlier(c, d)) <= position[t.producer];
        free_at(later(later(a, b), later(c, d)), t.freed_bytes);
    }
    for (const OrderTables::LongLifetime& t : tables.long_lifetimes) {
        Lanes first = position[graph_.consumer_op[t.first_consumer]], last = first;
        for (int32_t k = t.first_consumer + 1; k < t.last_consumer; ++k) {
            first = earlier(first, position[graph_.consumer_op[k]]);
            last = later(last, position[graph_.consumer_op[k]]);
        }
        wrong |= first <= position[t.producer];
        free_at(last, t.freed_bytes);
    }
    for (int lane = 0; lane < kLanes; ++lane)
        if (wrong[lane] < 0) return false;
    for (int lane = 0; lane < kLanes; ++lane)
        peaks[lane] = walk(orders.data() + lane * length, freed_bytes_.data() + lane * length);
    return true;
}

// The readable version: any order, in-place graphs, and every complaint.
int64_t OrderPeak::checked_peak(std::span<const int32_t> order) {
    const Graph& g = graph_;
    uses_.assign(g.num_tensors, -1);
    for (int32_t t = 0; t < g.num_sources; ++t) uses_[t] = static_cast<int32_t>(g.consumers(t).size());
    int64_t scheduled = 0;
    std::vector<uint8_t> seen(g.num_ops, 0);
    for (int32_t op = 0; op < g.num_ops; ++op) {
        if (!g.is_variable[op]) continue;
        for (int32_t t = g.output_ptr[op]; t < g.output_ptr[op + 1]; ++t)
            uses_[t] = static_cast<int32_t>(g.consumers(t).size());
    }
    int64_t live = 0, peak = 0;
    for (int32_t op : order) {
        if (op < 0 || op >= g.num_ops) throw std::invalid_argument("the order names op " + std::to_string(op));
        if (seen[op]) throw std::invalid_argument("the order names op " + std::to_string(op) + " twice");
        seen[op] = 1;
        if (g.is_variable[op]) continue;
        ++scheduled;
        int32_t taken = -1;
        for (int32_t t : g.inputs(op)) {
            if (uses_[t] < 0)
                throw std::invalid_argument("the order runs op " + std::to_string(op) + " before op " +
                                            std::to_string(g.producer[t]) + ", whose output it reads");
            if (taken < 0 && g.may_run_in_place(op) && uses_[t] == 1 && g.may_take_over(op, t, /*at_home=*/true)) taken = t;
        }
        if (taken < 0 && !g.is_update(op))
            for (int32_t t = g.output_ptr[op]; t < g.output_ptr[op + 1]; ++t) live += g.tensor_bytes[t];
        peak = std::max(peak, live + g.workspace_bytes[op]);
        for (int32_t t : g.inputs(op))
            if (--uses_[t] == 0 && t != taken && !g.is_output[t] && g.is_dynamic_at_home(t)) live -= g.tensor_bytes[t];
        for (int32_t t = g.output_ptr[op]; t < g.output_ptr[op + 1]; ++t) {
            uses_[t] = static_cast<int32_t>(g.consumers(t).size());
            if (uses_[t] == 0 && !g.is_output[t] && g.is_dynamic_at_home(t)) live -= g.tensor_bytes[t];
        }
    }
    const int64_t variables = std::count(g.is_variable.begin(), g.is_variable.end(), 1);
    if (scheduled != g.num_ops - variables)
        throw std::invalid_argument("the order names " + std::to_string(scheduled) + " ops; expected each of the " +
                                    std::to_string(g.num_ops - variables) + " ops that are no variables once");
    return peak;
}

void peaks_of_orders(const Graph& graph, std::span<const int32_t> orders, size_t length, std::span<int64_t> peaks,
                     int threads) {
    const auto size = static_cast<int64_t>(peaks.size());
    constexpr int64_t lanes = OrderPeak::kLanes;
    run_parallel((size + lanes - 1) / lanes, threads, [&] {
        return [&, evaluator = OrderPeak(graph)](int64_t block) mutable {
            const int64_t begin = block * lanes, end = std::min(size, begin + lanes);
            if (end - begin == lanes) return evaluator.peaks(orders.subspan(begin * length, lanes * length), &peaks[begin]);
            for (int64_t i = begin; i < end; ++i) peaks[i] = evaluator.peak(orders.subspan(i * length, length));
        };
    });
}

}  // namespace opgym
