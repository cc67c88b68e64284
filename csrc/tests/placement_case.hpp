// Batches of placement games on random cases: previews come true, and threads, replays and copies change nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../placement_batch.hpp"
#include "random_case.hpp"

namespace opgym::testing {

// Lists as one array, and where each begins in it.
inline void to_csr(const std::vector<std::vector<int32_t>>& lists, std::vector<int32_t>& ptr, std::vector<int32_t>& items) {
    ptr.assign(1, 0);
    for (const auto& list : lists) {
        items.insert(items.end(), list.begin(), list.end());
        ptr.push_back(static_cast<int32_t>(items.size()));
    }
}

// Any groups may read from any others, so that some are decided before what they read from.
inline std::shared_ptr<const PlacementTables> random_tables(Dice& dice, int devices, Channel channel) {
    PlacementArrays a;
    const auto groups = static_cast<int32_t>(1 + dice.below(40));
    const auto tensors = static_cast<int32_t>(groups > 1 ? dice.below(80) : 0);
    const size_t cells = static_cast<size_t>(groups) * devices;
    auto numbers = [&](size_t count, int64_t end) {
        std::vector<int64_t> values(count);
        for (int64_t& v : values) v = dice.below(end);
        return values;
    };
    a.num_devices = devices;
    a.allowed.resize(cells);
    for (uint8_t& may : a.allowed) may = !dice.one_in(4);
    for (int32_t g = 0; g < groups; ++g) a.allowed[static_cast<size_t>(g) * devices + dice.below(devices)] = 1;
    a.cost_ns = numbers(cells, dice.one_in(4) ? int64_t{1} << 40 : 5);
    for (int32_t g = 0; g < groups; ++g) a.scheduled.push_back(!dice.one_in(6));
    a.private_bytes = numbers(groups, 100);
    a.inner_peak_bytes = numbers(groups, 100);

    std::vector<std::vector<int32_t>> inputs(groups), outputs(groups), parents(groups), children(groups), sources(groups);
    for (int32_t t = 0; t < tensors; ++t) {
        const auto source = static_cast<int32_t>(dice.below(groups));
        outputs[source].push_back(t);
        const auto first = static_cast<int32_t>((source + 1 + dice.below(groups - 1)) % groups);
        int32_t readers = 0;
        for (int32_t g = 0; g < groups; ++g) {
            if (g == source || (g != first && !dice.one_in(20))) continue;
            inputs[g].push_back(t);
            parents[g].push_back(source);
            children[source].push_back(g);
            ++readers;
        }
        a.tensor_readers.push_back(readers);
        a.tensor_offset.push_back(dice.one_in(5) ? -1 : 0);
        a.tensor_duration.push_back(static_cast<int32_t>(dice.below(2)));
    }
    for (auto* lists : {&parents, &children})
        for (auto& list : *lists) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
    a.num_sources = 3;
    for (auto& list : sources)
        for (int32_t s = 0; s < a.num_sources; ++s)
            if (dice.one_in(3)) list.push_back(s);
    to_csr(inputs, a.input_ptr, a.input_tensor);
    to_csr(outputs, a.output_ptr, a.output_tensor);
    to_csr(parents, a.parent_ptr, a.parent);
    to_csr(children, a.child_ptr, a.child);
    to_csr(sources, a.source_ptr, a.source);
    for (int32_t s : a.source) a.source_bytes.push_back(10 * (s + 1));
    for (size_t i = 0; i < a.input_tensor.size(); ++i) a.input_lead.push_back(dice.one_in(3) ? 0 : -1);
    a.lead_ns = numbers(devices, 4);
    a.offset_ns = numbers(devices, 4);
    a.tensor_bytes = numbers(tensors, 50);
    a.tensor_held_bytes = a.tensor_bytes;

    const size_t pairs = static_cast<size_t>(devices) * devices;
    const int32_t n = devices;
    a.num_link_kinds = 2;
    a.duration_ns = channel == Channel::free ? std::vector<int64_t>(4, 0) : numbers(4, 9);
    a.num_resources = channel == Channel::port ? 2 * n : channel == Channel::send ? n : channel == Channel::link ? n * n : 0;
    for (size_t pair = 0; pair < pairs; ++pair) {
        const auto from = static_cast<int32_t>(pair / devices), to = static_cast<int32_t>(pair % devices);
        a.link.push_back(static_cast<int32_t>(dice.below(2)));
        a.send.push_back(channel == Channel::link ? static_cast<int32_t>(pair) : a.num_resources ? from : 0);
        a.receive.push_back(channel == Channel::link ? static_cast<int32_t>(pair)
                            : channel == Channel::port ? n + to
                            : a.num_resources          ? from
                                                       : 0);
    }
    a.capacity_bytes = numbers(devices, dice.one_in(3) ? std::numeric_limits<int64_t>::max() : 2'000);
    for (int64_t& bytes : a.capacity_bytes) ++bytes;
    for (int32_t i = 0; i < groups * 3; ++i) a.group_fields.push_back(static_cast<float>(dice.unit()));
    a.total_steps = groups;
    a.reference_ns = 1 + std::accumulate(a.cost_ns.begin(), a.cost_ns.end(), int64_t{0});
    a.block_ns = static_cast<double>(a.reference_ns) / groups;
    a.reference = static_cast<double>(a.reference_ns);
    a.objective = static_cast<PlacementObjective>(dice.below(4));
    return std::make_shared<const PlacementTables>(std::move(a));
}

// The rows of a batch.
struct BatchRows {
    std::vector<double> reward;
    std::vector<uint8_t> terminated;
    std::vector<int64_t> illegal_actions;
    std::vector<int8_t> action_mask;
    std::vector<float> node;

    explicit BatchRows(const PlacementBatch& batch)
        : reward(batch.slots()),
          terminated(batch.slots()),
          illegal_actions(batch.slots()),
          action_mask(batch.slots() * batch.num_devices()),
          node(batch.slots() * batch.node_length()) {}

    PlacementBatch::Rows rows() {
        PlacementBatch::Rows rows;
        rows.reward = reward.data();
        rows.terminated = reinterpret_cast<bool*>(terminated.data());
        rows.illegal_actions = illegal_actions.data();
        rows.action_mask = action_mask.data();
        rows.node = node.data();
        return rows;
    }
    bool operator==(const BatchRows&) const = default;
};

// Empty if nothing is.
inline std::string wrong_with_placement_batches(uint64_t seed) {
    Dice dice(seed);
    const int devices = dice.one_in(6) ? kMaxDevices : static_cast<int>(1 + dice.below(5));
    const auto channel = static_cast<Channel>(dice.below(4));
    std::vector<PlacementBatch::Tables> graphs;
    for (int64_t i = 1 + dice.below(3); i > 0; --i) graphs.push_back(random_tables(dice, devices, channel));

    const PlacementTables& tables = *graphs[0];
    PlacementEstimate estimate(tables);
    for (int32_t g = 0; g < tables.num_groups; ++g) {
        const std::vector<int64_t> before(estimate.words().begin(), estimate.words().end());
        const auto device = static_cast<int>(dice.below(devices));
        const PlacementEstimate::Preview preview = estimate.preview(g, device);
        if (!std::ranges::equal(before, estimate.words())) return "a preview changes nothing";
        const int64_t live = estimate.live_bytes(device) + estimate.need_bytes(g, device, preview.moved_bytes);
        estimate.append(g, device);
        if (estimate.start_ns()[g] != preview.start_ns) return "a preview comes true";
        if (estimate.live_bytes(device) > live) return "reading frees memory";
    }
    for (int64_t bytes : estimate.live_bytes())
        if (bytes < 0) return "memory is not negative";

    const auto slots = static_cast<int64_t>(1 + dice.below(9));
    const bool dense = dice.one_in(2);
    PlacementBatch one(graphs, slots, 40, dense, 1), three(graphs, slots, 40, dense, 3), replayed(graphs, slots, 40, dense, 1);
    BatchRows first(one), second(three), third(replayed);
    std::vector<int64_t> actions(slots);
    for (int step = 0; step < 60; ++step) {
        for (int64_t& action : actions) action = dice.below(devices + 2) - 1;
        const int64_t ended = one.step(actions.data(), nullptr, first.rows());
        if (ended != three.step(actions.data(), nullptr, second.rows()) || !(first == second)) return "threads change nothing";
        if (ended != std::ranges::count(first.terminated, 1)) return "ends are counted";
        for (int64_t slot = 0; slot < slots; ++slot) {
            const auto graph = slot % static_cast<int64_t>(graphs.size());
            const auto decided = one.decisions(slot);
            replayed.replay(slot, graph, std::vector<int64_t>(decided.begin(), decided.end()), first.illegal_actions[slot]);
            replayed.observe(slot, third.rows());
            if (!first.terminated[slot]) continue;
            one.reset(slot, graph);
            three.reset(slot, graph);
        }
        third.reward = first.reward;
        third.terminated = first.terminated;
        if (!(first == third)) return "a replay shows the same";
    }
    return "";
}

// Whether `quotient` is the double nearest to a / b, for positive a and b.
inline bool is_nearest(double quotient, int64_t a, int64_t b) {
    int exponent = 0;
    const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(quotient, &exponent), 53));
    exponent -= 53;
    // |a / b - mantissa * 2^exponent| <= 2^exponent / 2, in integers.
    const __int128 distance = 2 * ((static_cast<__int128>(a) << -exponent) - static_cast<__int128>(mantissa) * b);
    const __int128 size = distance < 0 ? -distance : distance;
    return size < b || (size == b && mantissa % 2 == 0);
}

inline bool divides_exactly(uint64_t seed) {
    Dice dice(seed);
    for (int i = 0; i < 1'000; ++i) {
        const auto random = [&] { return (dice.below(std::numeric_limits<int64_t>::max()) >> dice.below(63)) + 1; };
        const int64_t a = random(), b = random();
        const double quotient = divide_exactly(a, b);
        // Past 2^53 a quotient has an exponent above 0.
        if (quotient < 0x1p53 ? !is_nearest(quotient, a, b) : b == 1 && quotient != static_cast<double>(a)) return false;
        if (divide_exactly(-a, b) != -quotient) return false;
    }
    return divide_exactly(0, 7) == 0;
}

}  // namespace opgym::testing
