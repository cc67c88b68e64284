#include "placement_batch.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>

#include "parallel.hpp"

namespace opgym {

PlacementBatch::PlacementBatch(std::vector<Tables> graphs, int64_t slots, int64_t padded_groups, bool dense, int threads)
    : graphs_(std::move(graphs)), padded_groups_(padded_groups), dense_(dense), threads_(threads) {
    if (graphs_.empty() || slots < 1 || threads < 1)
        throw std::invalid_argument("a batch has at least one graph, one slot and one thread");
    // So that the size of any array of rows is an int64.
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (slots > kMost || padded_groups_ > kMost)
        throw std::invalid_argument("a batch has at most 2^31 - 1 slots, and groups with their padding");
    for (const Tables& graph : graphs_) {
        if (!graph) throw std::invalid_argument("a graph of a batch is null");
        if (graph->num_devices != num_devices() || graph->num_group_fields != graphs_[0]->num_group_fields)
            throw std::invalid_argument("the graphs of a batch share their number of devices");
        if (graph->num_groups > padded_groups_) throw std::invalid_argument("a graph has more groups than the padding");
    }
    episodes_.reserve(slots);
    for (int64_t slot = 0; slot < slots; ++slot) episodes_.push_back({PlacementEstimate(*graphs_[slot % graphs_.size()])});
}

PlacementBatch::Episode& PlacementBatch::episode(int64_t slot) {
    if (slot < 0 || slot >= slots()) throw std::invalid_argument("slot " + std::to_string(slot) + " does not exist");
    return episodes_[slot];
}

const PlacementTables& PlacementBatch::tables(int64_t graph) const {
    if (graph < 0 || graph >= static_cast<int64_t>(graphs_.size()))
        throw std::invalid_argument("graph " + std::to_string(graph) + " does not exist");
    return *graphs_[graph];
}

void PlacementBatch::reset(int64_t slot, int64_t graph) {
    Episode& begun = episode(slot);
    begun.estimate.reset(tables(graph));
    begun.step = 0;
    begun.illegal_actions = 0;
    begun.potential = 0;
}

void PlacementBatch::replay(int64_t slot, int64_t graph, std::span<const int64_t> decisions, int64_t illegal_actions) {
    reset(slot, graph);
    Episode& replayed = episode(slot);
    const PlacementTables& tables = replayed.estimate.tables();
    if (static_cast<int64_t>(decisions.size()) > tables.num_groups)
        throw std::invalid_argument(std::to_string(decisions.size()) + " decisions about " + std::to_string(tables.num_groups) +
                                    " groups");
    for (int64_t device : decisions) {
        if (device < 0 || device >= tables.num_devices || !tables.is_allowed(replayed.step, static_cast<int>(device))) {
            const std::string what = "group " + std::to_string(replayed.step) + " may not be on device " + std::to_string(device);
            reset(slot, graph);
            throw std::invalid_argument(what);
        }
        decide(replayed, device);
    }
    replayed.illegal_actions = illegal_actions;
}

std::span<const int8_t> PlacementBatch::decisions(int64_t slot) const {
    if (slot < 0 || slot >= slots()) throw std::invalid_argument("slot " + std::to_string(slot) + " does not exist");
    return episodes_[slot].estimate.device().first(episodes_[slot].step);
}

double PlacementBatch::decide(Episode& episode, int64_t action) const {
    const PlacementTables& tables = episode.estimate.tables();
    const int32_t group = episode.step;
    int device = static_cast<int>(action);
    if (action < 0 || action >= tables.num_devices || !tables.is_allowed(group, device)) {
        device = tables.lowest_allowed(group);
        ++episode.illegal_actions;
    }
    episode.estimate.append(group, device);
    ++episode.step;
    if (!dense_) return 0;
    const double before = episode.potential;
    episode.potential = episode.estimate.potential();
    return episode.over() ? before : before - episode.potential;
}

void PlacementBatch::write_mask(const Episode& episode, int8_t* out) const {
    const PlacementTables& tables = episode.estimate.tables();
    if (episode.over())
        std::fill_n(out, tables.num_devices, int8_t{1});
    else
        std::copy_n(&tables.allowed[static_cast<size_t>(episode.step) * tables.num_devices], tables.num_devices, out);
}

void PlacementBatch::write(Episode& episode, int64_t slot, const Rows& rows) const {
    const PlacementTables& tables = episode.estimate.tables();
    const std::span<const int8_t> placed = episode.estimate.device();
    const PlacementTurn turn{episode.group(), episode.step, placed, true};
    rows.illegal_actions[slot] = episode.illegal_actions;
    write_mask(episode, rows.action_mask + slot * tables.num_devices);
    if (rows.node) return write_node(episode.estimate, turn, rows.node + slot * opgym::node_length(tables));
    int32_t* const placement = rows.placement + slot * padded_groups_;
    std::fill(std::copy(placed.begin(), placed.end(), placement), placement + padded_groups_, -1);
    write_device_rows(episode.estimate, turn, rows.devices + slot * tables.num_devices * kDeviceFields);
    rows.current[slot] = turn.group;
    rows.progress[slot] = progress_of(tables, turn.step);
}

void PlacementBatch::observe(int64_t slot, const Rows& rows) { write(episode(slot), slot, rows); }

void PlacementBatch::action_masks(int8_t* out) const {
    for (int64_t slot = 0; slot < slots(); ++slot) write_mask(episodes_[slot], out + slot * num_devices());
}

int64_t PlacementBatch::step_some(int64_t begin, int64_t end, const int64_t* actions, const bool* skip, const Rows& rows) {
    int64_t ended = 0;
    for (int64_t slot = begin; slot < end; ++slot) {
        Episode& episode = episodes_[slot];
        const bool skipped = episode.over() || (skip && skip[slot]);
        rows.reward[slot] = skipped ? 0.0 : decide(episode, actions[slot]);
        rows.terminated[slot] = !skipped && episode.over();
        ended += rows.terminated[slot];
        write(episode, slot, rows);
    }
    return ended;
}

int64_t PlacementBatch::step(const int64_t* actions, const bool* skip, const Rows& rows) {
    const int64_t parts = std::min<int64_t>(threads_, slots());
    if (parts == 1) return step_some(0, slots(), actions, skip, rows);
    std::atomic<int64_t> ended{0};
    run_parallel(parts, threads_, [&] {
        return [&](int64_t part) {
            ended += step_some(slots() * part / parts, slots() * (part + 1) / parts, actions, skip, rows);
        };
    });
    return ended;
}

}  // namespace opgym
