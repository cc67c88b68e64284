#include "order_program_model.hpp"

#include <algorithm>

namespace opgym {

Lists Lists::inverse(int32_t size) const {
    Lists out;
    out.begin.assign(size + 1, 0);
    for (int32_t i : item) ++out.begin[i + 1];
    for (int32_t i = 0; i < size; ++i) out.begin[i + 1] += out.begin[i];
    out.item.resize(item.size());
    std::vector<int32_t> at(out.begin.begin(), out.begin.end() - 1);
    for (int32_t list = 0; list + 1 < static_cast<int32_t>(begin.size()); ++list)
        for (int32_t i : (*this)[list]) out.item[at[i]++] = list;
    return out;
}

OrderModel::OrderModel(const Graph& g) {
    std::vector<int32_t> item_of(g.num_ops, -1), tensor_of(g.num_tensors, -1);
    for (int32_t v = 0; v < g.num_ops; ++v) {
        if (g.is_variable[v]) continue;
        item_of[v] = size++;
        op.push_back(v);
    }
    before = after = BitRows(size);
    passing_bytes.assign(size, 0);
    for (int32_t i = 0; i < size; ++i) {
        const int32_t v = op[i];
        passing_bytes[i] = g.workspace_bytes[v];
        for (int32_t t = g.output_ptr[v]; t < g.output_ptr[v + 1]; ++t) {
            if (!g.is_dynamic_at_home(t) || g.tensor_bytes[t] == 0) continue;
            if (g.consumers(t).empty() && !g.is_output[t]) {
                passing_bytes[i] += g.tensor_bytes[t];
                continue;
            }
            tensor_of[t] = static_cast<int32_t>(bytes.size());
            bytes.push_back(g.tensor_bytes[t]);
            starters.item.push_back(i);
            starters.close();
            if (!g.is_output[t])
                for (int32_t reader : g.consumers(t)) enders.item.push_back(item_of[reader]);
            enders.close();
        }
        for (int32_t t : g.inputs(v)) {
            if (g.is_source(t) || item_of[g.producer[t]] < 0) continue;
            const int32_t producer = item_of[g.producer[t]];
            precedences_.emplace_back(producer, i);
            before.set(i, producer);
            before.merge(i, producer);
        }
        for_each_bit(before.row(i), before.words(), [&](int32_t j) { after.set(j, i); });
    }
    started_by = starters.inverse(size);
    ended_by = enders.inverse(size);

    take_over_bytes.assign(size, 0);
    for (int32_t i = 0; i < size; ++i) {
        const int32_t v = op[i];
        if (g.may_run_in_place(v) && g.tensor_bytes[g.output_ptr[v]] > 0) {
            take_over_bytes[i] = g.tensor_bytes[g.output_ptr[v]];
            for (int32_t t : g.inputs(v))
                if (g.may_take_over(v, t, /*at_home=*/true)) may_take_over.item.push_back(tensor_of[t]);
        }
        may_take_over.close();
    }
}

OrderModel OrderModel::backwards() const {
    OrderModel out = *this;
    std::swap(out.starters, out.enders);
    std::swap(out.started_by, out.ended_by);
    std::swap(out.before, out.after);
    for (auto& [first, second] : out.precedences_) std::swap(first, second);
    out.is_backwards = !is_backwards;
    return out;
}

bool OrderModel::add_precedences(std::span<const std::pair<int32_t, int32_t>> pairs) {
    for (const auto& [first, second] : pairs) {
        if (first == second || before.has(first, second)) return false;
        if (before.has(second, first)) continue;
        precedences_.emplace_back(first, second);
        // All up to the first come before all from the second on.
        const auto join = [&](int32_t late) {
            before.set(late, first);
            before.merge(late, first);
        };
        const auto join_back = [&](int32_t early) {
            after.set(early, second);
            after.merge(early, second);
        };
        join(second);
        for_each_bit(after.row(second), after.words(), join);
        join_back(first);
        for_each_bit(before.row(first), before.words(), join_back);
    }
    return true;
}

Lists OrderModel::direct_before() const {
    std::vector<std::vector<int32_t>> earlier(size);
    for (const auto& [first, second] : precedences_) earlier[second].push_back(first);
    Lists out;
    for (std::vector<int32_t>& items : earlier) {
        std::sort(items.begin(), items.end());
        items.erase(std::unique(items.begin(), items.end()), items.end());
        for (int32_t j : items) {
            const auto between = [&](int32_t k) { return before.has(k, j); };
            if (std::none_of(items.begin(), items.end(), between)) out.item.push_back(j);
        }
        out.close();
    }
    return out;
}

}  // namespace opgym
