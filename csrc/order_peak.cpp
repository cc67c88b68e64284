#include "order_peak.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "parallel.hpp"

namespace opgym {

int64_t OrderPeak::peak(std::span<const int32_t> order) {
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
    run_parallel(static_cast<int64_t>(peaks.size()), threads, [&] {
        return [&, evaluator = OrderPeak(graph)](int64_t i) mutable {
            peaks[i] = evaluator.peak(orders.subspan(i * length, length));
        };
    });
}

}  // namespace opgym
