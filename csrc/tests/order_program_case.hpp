// The exact order search against plain dynamic programming over all sets of ops, on small random graphs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "../order_peak.hpp"
#include "../order_program.hpp"
#include "random_case.hpp"

namespace opgym::testing {

// The least peak, from the definition of live bytes: a tensor lives from its producer to its last reader.
inline int64_t plain_least_peak(const Graph& g, const std::vector<int32_t>& ops) {
    const auto size = static_cast<int32_t>(ops.size());
    std::vector<int32_t> bit(g.num_ops, -1);
    for (int32_t i = 0; i < size; ++i) bit[ops[i]] = i;
    const auto ran = [&](uint32_t set, int32_t op) { return bit[op] < 0 || (set >> bit[op] & 1); };
    const auto all_read = [&](uint32_t set, int32_t t) {
        const auto readers = g.consumers(t);
        return std::all_of(readers.begin(), readers.end(), [&](int32_t reader) { return ran(set, reader); });
    };
    const auto live = [&](uint32_t set) {
        int64_t bytes = 0;
        for (int32_t t = g.num_sources; t < g.num_tensors; ++t)
            if (g.is_dynamic_at_home(t) && ran(set, g.producer[t]) && (g.is_output[t] || !all_read(set, t)))
                bytes += g.tensor_bytes[t];
        return bytes;
    };
    const auto memory = [&](uint32_t set, int32_t op) {
        int64_t bytes = live(set) + g.workspace_bytes[op];
        for (int32_t t = g.output_ptr[op]; t < g.output_ptr[op + 1]; ++t)
            if (g.is_dynamic_at_home(t)) bytes += g.tensor_bytes[t];
        if (!g.may_run_in_place(op)) return bytes;
        const uint32_t next = set | uint32_t{1} << bit[op];
        for (int32_t t : g.inputs(op))
            if (g.may_take_over(op, t, true) && all_read(next, t)) return bytes - g.tensor_bytes[t];
        return bytes;
    };
    constexpr int64_t none = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> peak(size_t{1} << size, none);
    peak[0] = 0;
    for (uint32_t set = 0; set < peak.size(); ++set) {
        if (peak[set] == none) continue;
        for (int32_t op : ops) {
            if (ran(set, op)) continue;
            const auto inputs = g.inputs(op);
            const auto exists = [&](int32_t t) { return g.is_source(t) || ran(set, g.producer[t]); };
            if (!std::all_of(inputs.begin(), inputs.end(), exists)) continue;
            int64_t& next = peak[set | uint32_t{1} << bit[op]];
            next = std::min(next, std::max(peak[set], memory(set, op)));
        }
    }
    return peak.back();
}

// What is wrong, or nothing.
inline std::string wrong_with_order_program(uint64_t seed) {
    Dice dice(seed);
    const Graph graph = random_graph(dice, static_cast<int32_t>(1 + dice.below(12)));
    std::vector<int32_t> ops;
    for (int32_t op = 0; op < graph.num_ops; ++op)
        if (!graph.is_variable[op]) ops.push_back(op);
    if (ops.empty()) return "";
    const int64_t best = plain_least_peak(graph, ops);
    const OrderModel model(graph);

    for (LeastBytes least(model); !least.over();)
        if (least.next() > best) return "a bound on an op's memory passes the optimum";
    for (const int64_t limit : {best, best - 1, best + 1 + dice.below(200), best - 1 - dice.below(1 + best / 2)}) {
        const bool within = limit >= best;
        for (const bool infer : {false, true}) {
            OrderModel inferred = model;
            int64_t holds_below = std::numeric_limits<int64_t>::max();
            if (infer) {
                PrecedenceInference inference(inferred, limit);
                auto answer = PrecedenceInference::Answer::kGoing;
                while (answer == PrecedenceInference::Answer::kGoing) answer = inference.step();
                holds_below = inference.holds_below();
                if (holds_below <= limit) return "inference holds only within its limit";
                if (answer == PrecedenceInference::Answer::kNone) {
                    if (within) return "inference excludes the optimum";
                    if (holds_below > best) return "inference claims a bound above the optimum";
                    continue;
                }
            }
            for (const bool backwards : {false, true}) {
                const OrderModel directed = backwards ? inferred.backwards() : inferred;
                OrderDecision decision(directed, limit, int64_t{1} << 24);
                auto answer = OrderDecision::Answer::kGoing;
                while (answer == OrderDecision::Answer::kGoing) answer = decision.run(1 + dice.below(5));
                if (answer != (within ? OrderDecision::Answer::kYes : OrderDecision::Answer::kNo)) return "decision";
                if (!within && std::min(holds_below, decision.holds_below()) > best)
                    return "decision claims a bound above the optimum";
                if (!within && decision.holds_below() <= limit) return "decision holds only within its limit";
                if (!within) continue;
                std::vector<int32_t> order;
                for (int32_t item : decision.order()) order.push_back(model.op[item]);
                if (backwards) std::reverse(order.begin(), order.end());
                if (OrderPeak(graph).peak(order) > limit) return "the order passes the limit";
            }
        }
    }
    OrderProgram program(graph, ops, 0, int64_t{1} << 24);
    while (!program.over()) program.run(1 + dice.below(1000), 1.0);
    if (!program.proven() || program.lower() != best || program.upper() != best) return "the program's bounds";
    return OrderPeak(graph).peak(program.best_order()) == best ? "" : "the program's order";
}

// A small tensor that is needed only at the end looks cheap early on, and is one byte too many later. What is wrong
// with the decision, or nothing.
inline std::string wrong_with_early_byte() {
    GraphArrays a;
    // first -> 10 bytes and a signal; after the signal early -> 1, second -> 5; both -> 1; wide -> 19; last.
    a.input_ptr = {0, 0, 1, 2, 4, 5, 7};
    a.input_tensor = {1, 1, 0, 3, 4, 2, 5};
    a.output_ptr = {0, 2, 3, 4, 5, 6, 6};
    a.tensor_bytes = {10, 0, 1, 5, 1, 19};
    a.workspace_bytes.assign(6, 0);
    a.is_variable.assign(6, 0);
    a.update_of.assign(6, -1);
    a.elementwise.assign(6, 0);
    a.is_output.assign(6, 0);
    const OrderModel forwards{Graph(a)};
    const OrderModel backwards = forwards.backwards();
    for (const OrderModel* model : {&forwards, &backwards})
        for (const int64_t limit : {19, 20}) {
            OrderDecision decision(*model, limit, int64_t{1} << 20);
            const auto answer = decision.run(1000);
            const auto right = limit == 20 ? OrderDecision::Answer::kYes : OrderDecision::Answer::kNo;
            if (answer != right) return "a byte too early";
            if (limit == 19 && decision.holds_below() != 20) return "the next limit worth asking for";
        }
    return "";
}

}  // namespace opgym::testing
