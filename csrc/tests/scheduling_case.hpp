// Batches of orders against brute force on the sets of nodes that have run, on small random layouts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../scheduling_batch.hpp"
#include "random_case.hpp"

namespace opgym::testing {

// Few sizes, so that ties and equal buffers are common; many nodes that read the same.
inline SchedulingArrays random_scheduling_arrays(Dice& dice, int32_t nodes) {
    std::vector<std::vector<int32_t>> children(nodes), reads(nodes);
    SchedulingArrays a;
    for (int32_t node = 0; node < nodes; ++node) {
        int64_t allocated = 0;
        const int64_t tensors = dice.below(3);
        for (int64_t t = 0; t < tensors && node + 1 < nodes; ++t) {
            const int64_t bytes = 1 + dice.below(4);
            std::vector<int32_t> readers;
            for (int64_t i = 1 + dice.below(3); i > 0; --i)
                readers.push_back(static_cast<int32_t>(node + 1 + dice.below(nodes - node - 1)));
            std::sort(readers.begin(), readers.end());
            readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
            for (const int32_t reader : readers) {
                reads[reader].push_back(static_cast<int32_t>(a.held_bytes.size()));
                children[node].push_back(reader);
            }
            a.held_bytes.push_back(bytes);
            allocated += bytes;
        }
        const int64_t unread = dice.one_in(4) ? dice.below(5) : 0;
        allocated += unread;
        a.unread_bytes.push_back(unread);
        a.allocated_bytes.push_back(allocated);
        a.needed_bytes.push_back(allocated + dice.below(3));
        a.takeover_bytes.push_back(dice.one_in(2) ? allocated : -1);
    }
    a.child_ptr = a.read_ptr = {0};
    for (int32_t node = 0; node < nodes; ++node) {
        std::sort(children[node].begin(), children[node].end());
        children[node].erase(std::unique(children[node].begin(), children[node].end()), children[node].end());
        a.child.insert(a.child.end(), children[node].begin(), children[node].end());
        a.child_ptr.push_back(static_cast<int32_t>(a.child.size()));
        a.read.insert(a.read.end(), reads[node].begin(), reads[node].end());
        a.read_ptr.push_back(static_cast<int32_t>(a.read.size()));
    }
    return a;
}

// A beginning of an order, everything anew from which nodes have run.
class PlainOrder {
   public:
    explicit PlainOrder(const SchedulingLayout& layout) : layout_(layout), done_(layout.num_nodes()) {}

    int64_t live = 0, peak = 0;

    void run(int32_t node) {
        peak = std::max(peak, live + needed(node));
        live -= net(node);
        done_[node] = true;
    }
    std::vector<int32_t> ready() const {
        std::vector<int32_t> nodes;
        for (int32_t node = 0; node < layout_.num_nodes(); ++node)
            if (!done_[node] && missing(node) == 0) nodes.push_back(node);
        return nodes;
    }
    int64_t net(int32_t node) const {
        int64_t bytes = layout_.arrays().unread_bytes[node] - layout_.arrays().allocated_bytes[node];
        for (const int32_t tensor : layout_.reads(node))
            if (reads_last(node, tensor)) bytes += layout_.arrays().held_bytes[tensor];
        return bytes;
    }
    int64_t needed(int32_t node) const {
        const SchedulingArrays& a = layout_.arrays();
        for (const int32_t tensor : layout_.reads(node))
            if (a.takeover_bytes[node] == a.held_bytes[tensor] && reads_last(node, tensor))
                return a.needed_bytes[node] - a.allocated_bytes[node];
        return a.needed_bytes[node];
    }
    int32_t unlocks(int32_t node) const {
        const auto children = layout_.children(node);
        return static_cast<int32_t>(
            std::count_if(children.begin(), children.end(), [&](int32_t child) { return missing(child) == 1; }));
    }
    std::vector<int32_t> ranked() const {
        std::vector<int32_t> nodes = ready();
        std::stable_sort(nodes.begin(), nodes.end(), [&](int32_t a, int32_t b) { return net(a) > net(b); });
        return nodes;
    }
    // By the rule, step by step.
    std::vector<int32_t> best(size_t count) const {
        const std::vector<int32_t> by_rank = ranked();
        if (by_rank.size() <= count) return by_rank;
        std::vector<int32_t> chosen;
        auto choose = [&](const std::vector<int32_t>& nodes, size_t most, auto wanted) {
            for (const int32_t node : nodes) {
                if (most == 0) return;
                if (!wanted(node) || std::find(chosen.begin(), chosen.end(), node) != chosen.end()) continue;
                chosen.push_back(node);
                --most;
            }
        };
        auto any = [](int32_t) { return true; };
        choose(by_rank, (count - 1) / 2, [&](int32_t node) { return unlocks(node) > 0; });
        choose(ready(), (count + 2) / 4, any);
        choose(by_rank, count - chosen.size(), any);
        std::vector<int32_t> in_order;
        for (const int32_t node : by_rank)
            if (std::find(chosen.begin(), chosen.end(), node) != chosen.end()) in_order.push_back(node);
        return in_order;
    }

   private:
    template <class Of>
    std::vector<int32_t> owners(int32_t item, Of of) const {
        std::vector<int32_t> nodes;
        for (int32_t node = 0; node < layout_.num_nodes(); ++node) {
            const auto row = of(node);
            if (!done_[node] && std::find(row.begin(), row.end(), item) != row.end()) nodes.push_back(node);
        }
        return nodes;
    }
    size_t missing(int32_t node) const {
        return owners(node, [&](int32_t parent) { return layout_.children(parent); }).size();
    }
    bool reads_last(int32_t node, int32_t tensor) const {
        return owners(tensor, [&](int32_t reader) { return layout_.reads(reader); }) == std::vector<int32_t>{node};
    }

    const SchedulingLayout& layout_;
    std::vector<bool> done_;
};

// What is wrong, or nothing. Memory for rows is exact, so that a sanitizer sees what is written beside it.
inline std::string wrong_with_scheduling_batches(uint64_t seed) {
    Dice dice(seed);
    const auto num_slots = static_cast<int32_t>(dice.below(7));  // 0: actions are nodes
    const bool as_vectors = num_slots > 0 && dice.one_in(2);
    const int64_t size = 1 + dice.below(5);
    std::vector<std::shared_ptr<const SchedulingView>> views;
    std::vector<std::shared_ptr<const SchedulingLayout>> layouts;
    int32_t padded = 1;
    for (int64_t graph = 1 + dice.below(2); graph > 0; --graph) {
        const auto nodes = static_cast<int32_t>(1 + dice.below(30));
        padded = std::max<int32_t>(padded, nodes + static_cast<int32_t>(dice.below(3)));
        layouts.push_back(std::make_shared<const SchedulingLayout>(random_scheduling_arrays(dice, nodes)));
        views.push_back(std::make_shared<const SchedulingView>(
            layouts.back(), std::vector<float>(nodes * SchedulingView::kFixedFields, 0.5F),
            SchedulingScales{8, 1, 2, 3}, num_slots));
    }
    const auto graphs = static_cast<int64_t>(views.size());
    SchedulingBatch batch(views, size, padded, true, 1 + static_cast<int>(dice.below(2)));
    SchedulingBatch twin(views, size, padded, true, 1);

    const int64_t actions_of_one = num_slots ? num_slots : padded;
    std::vector<float> vectors(size * batch.vector_length()), figures(size * padded * SchedulingView::kChangingFields),
        globals(size * SchedulingView::kGlobalFields);
    std::vector<int8_t> status(size * padded), mask(size * actions_of_one);
    std::vector<int32_t> slots(size * num_slots);
    std::vector<int64_t> illegal(size), actions(size), all(size), graph(size);
    std::vector<double> reward(size);
    const std::unique_ptr<bool[]> terminated(new bool[size]), skip(new bool[size]());
    SchedulingRows rows;
    rows.action_mask = mask.data();
    rows.illegal_actions = illegal.data();
    if (as_vectors) {
        rows.vectors = vectors.data();
    } else {
        rows.status = status.data();
        rows.figures = figures.data();
        rows.globals = globals.data();
        if (num_slots) rows.slots = slots.data();
    }

    std::vector<PlainOrder> plain;
    for (int64_t i = 0; i < size; ++i) {
        all[i] = i;
        graph[i] = i % graphs;
        plain.emplace_back(*layouts[graph[i]]);
    }
    batch.reset(all, graph);
    batch.observe(all, rows);
    std::vector<int64_t> expected_illegal(size);
    for (bool going = true; going;) {
        std::vector<std::vector<int32_t>> legal(size);
        std::vector<int32_t> runs(size, -1);
        for (int64_t i = 0; i < size; ++i) {
            const PartialOrder& partial = batch.partial(i);
            const std::vector<int32_t> ready = plain[i].ready(), ranked = plain[i].ranked();
            if (partial.num_ready() != static_cast<int32_t>(ready.size())) return "the number of ready nodes";
            for (size_t rank = 0; rank < ranked.size(); ++rank) {
                const int32_t node = partial.by_rank()[rank].node;
                const NodeRecord& record = partial.record(node);
                if (node != ranked[rank]) return "the rank of nodes";
                if (record.net_bytes != plain[i].net(node) || record.needed_bytes != plain[i].needed(node) ||
                    record.unlocks != plain[i].unlocks(node))
                    return "figures of a ready node";
            }
            if (partial.live_bytes() != plain[i].live || partial.peak_bytes() != plain[i].peak) return "live or peak bytes";
            legal[i] = num_slots ? plain[i].best(num_slots) : ready;
            const auto ones = std::count(mask.begin() + i * actions_of_one, mask.begin() + (i + 1) * actions_of_one, 1);
            if (ones != (ready.empty() ? actions_of_one : static_cast<int64_t>(legal[i].size()))) return "a mask";
            if (illegal[i] != expected_illegal[i]) return "the count of illegal actions";
            skip[i] = ready.empty();
            if (skip[i]) continue;
            const int64_t choice = dice.below(static_cast<int64_t>(legal[i].size()) + 2) - 1;
            const bool is_legal = choice >= 0 && choice < static_cast<int64_t>(legal[i].size());
            runs[i] = legal[i][is_legal ? choice : 0];
            actions[i] = !is_legal ? (choice < 0 ? -1 : actions_of_one) : num_slots ? choice : runs[i];
            expected_illegal[i] += !is_legal;
        }
        const int64_t ended = batch.step(actions, skip.get(), reward.data(), terminated.get(), rows);
        int64_t expected = 0;
        going = false;
        for (int64_t i = 0; i < size; ++i) {
            if (skip[i] && (terminated[i] || reward[i] != 0)) return "a skipped episode";
            if (skip[i]) continue;
            if (batch.partial(i).order().back() != runs[i]) return "the node that an action runs";
            const int64_t before = plain[i].peak;
            plain[i].run(runs[i]);
            if (terminated[i] != plain[i].ready().empty()) return "the end of an episode";
            expected += terminated[i];
            going = going || !terminated[i];
            const double rise = static_cast<double>(plain[i].peak - before);
            if (reward[i] != (terminated[i] ? static_cast<double>(before) / 8 : -rise / 8)) return "a reward";
        }
        if (ended != expected) return "the number of episodes that ended";
    }
    // The same by replay.
    for (int64_t i = 0; i < size; ++i) {
        const std::vector<int32_t>& order = batch.partial(i).order();
        twin.replay(i, graph[i], std::vector<int64_t>(order.begin(), order.end()), expected_illegal[i]);
        if (twin.partial(i).used_bytes() != batch.partial(i).used_bytes()) return "a replay";
    }
    // One that fails half-way leaves what has just begun, which can be played.
    for (int64_t i = 0; i < size; ++i) {
        const std::vector<int32_t>& order = batch.partial(i).order();
        std::vector<int64_t> nodes(order.begin(), order.end());
        nodes.back() = dice.one_in(2) ? nodes.front() : padded;
        if (nodes.size() == 1) nodes.back() = padded;
        bool refused = false;
        try {
            twin.replay(i, graph[i], nodes, 0);
        } catch (const std::invalid_argument&) {
            refused = true;
        }
        if (!refused || twin.partial(i).num_done() != 0) return "a replay that fails";
    }
    for (int32_t turn = 0; turn < padded; ++turn) {
        for (int64_t i = 0; i < size; ++i) skip[i] = twin.partial(i).over();
        std::fill(actions.begin(), actions.end(), actions_of_one - 1);
        twin.step(actions, skip.get(), reward.data(), terminated.get(), rows);
    }
    for (int64_t i = 0; i < size; ++i)
        if (!twin.partial(i).over()) return "playing after a replay that fails";
    return "";
}

}  // namespace opgym::testing
