#include "placement_observation.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "platform.hpp"

namespace opgym {
namespace {

using Shares = std::array<double, kMaxDevices>;

// Bounds of fields hold for float32 as for double, so that clipping first changes nothing.
float clipped(double value, double low, double high) { return static_cast<float>(std::min(std::max(value, low), high)); }

// Share on each device of the neighbours that have one: 1/n, added up for each of n.
void add_shares(std::span<const int32_t> neighbours, std::span<const int8_t> device, int num_devices, Shares& shares) {
    std::fill_n(shares.begin(), num_devices, 0.0);
    int placed = 0;
    for (int32_t g : neighbours) placed += device[g] >= 0;
    if (placed == 0) return;
    const double share = 1.0 / placed;
    for (int32_t g : neighbours)
        if (device[g] >= 0) shares[device[g]] += share;
}

void write_rows_without_group(const PlacementEstimate& estimate, float* out) {
    const PlacementTables& tables = estimate.tables();
    std::fill_n(out, static_cast<size_t>(tables.num_devices) * kDeviceFields, 0.0f);
    for (int d = 0; d < tables.num_devices; ++d, out += kDeviceFields) {
        const int64_t capacity = tables.capacity_bytes[d];
        const float free = clipped(divide_exactly(capacity - estimate.live_bytes(d), capacity), -1, 1);
        out[5] = clipped(divide_exactly(estimate.free_ns(d), tables.reference_ns), 0, 16);
        out[9] = out[10] = free;
        out[11] = clipped(divide_exactly(capacity - estimate.peak_bytes(d), capacity), -1, 1);
    }
}

}  // namespace

void write_device_rows(PlacementEstimate& estimate, const PlacementTurn& turn, float* out) {
    const PlacementTables& tables = estimate.tables();
    const int32_t group = turn.group;
    if (group < 0) return write_rows_without_group(estimate, out);
    const int devices = tables.num_devices;
    const uint64_t allowed = tables.allowed_set[group];
    const int64_t* const cost = &tables.cost_ns[static_cast<size_t>(group) * devices];

    std::array<PlacementEstimate::Preview, kMaxDevices> previews;
    int64_t earliest_start = std::numeric_limits<int64_t>::max(), earliest_finish = earliest_start;
    for (int d = 0; d < devices; ++d) {
        previews[d] = estimate.preview(group, d);
        if (!(allowed >> d & 1)) continue;
        earliest_start = std::min(earliest_start, previews[d].start_ns);
        earliest_finish = std::min(earliest_finish, previews[d].start_ns + cost[d]);
    }
    Shares parents, children;
    const auto list = [](const std::vector<int32_t>& ptr, const std::vector<int32_t>& items, int32_t g) {
        return std::span(items).subspan(ptr[g], ptr[g + 1] - ptr[g]);
    };
    add_shares(list(tables.parent_ptr, tables.parent, group), estimate.device(), devices, parents);
    std::span<const int32_t> placeable = list(tables.child_ptr, tables.child, group);
    if (turn.in_order)  // most groups then have no child that has a device, and the first one tells
        placeable = placeable.first(std::lower_bound(placeable.begin(), placeable.end(), group) - placeable.begin());
    add_shares(placeable, turn.placed, devices, children);

    const int64_t readable = std::max<int64_t>(estimate.readable_bytes(group), 1);
    const int64_t inner = tables.inner_peak_bytes[group];
    const int current = turn.placed[group];
    const bool locked = (allowed & (allowed - 1)) == 0;
    const double block = tables.block_ns;
    for (int d = 0; d < devices; ++d, out += kDeviceFields) {
        const auto [start, moved_bytes, moved_ns] = previews[d];
        const int64_t capacity = tables.capacity_bytes[d], live = estimate.live_bytes(d);
        const bool may = allowed >> d & 1;
        out[0] = clipped(static_cast<double>(start - earliest_start) / block, 0, 16);
        out[1] = clipped(static_cast<double>(start + cost[d] - earliest_finish) / block, 0, 16);
        out[2] = clipped(static_cast<double>(cost[d]) / block, 0, 16);
        out[3] = clipped(static_cast<double>(moved_ns) / block, 0, 16);
        out[4] = clipped(divide_exactly(start, tables.reference_ns), 0, 16);
        out[5] = clipped(divide_exactly(estimate.free_ns(d), tables.reference_ns), 0, 16);
        out[6] = clipped(divide_exactly(moved_bytes, readable), 0, 1);
        out[7] = clipped(parents[d], 0, 1);
        out[8] = clipped(children[d], 0, 1);
        out[9] = clipped(divide_exactly(capacity - live, capacity), -1, 1);
        out[10] = clipped(
            divide_exactly(capacity - live - estimate.need_bytes(group, d, moved_bytes) - inner, capacity), -1, 1);
        out[11] = clipped(divide_exactly(capacity - estimate.peak_bytes(d), capacity), -1, 1);
        out[12] = d == current;
        out[13] = locked && may;
        out[14] = may;
    }
}

size_t node_length(const PlacementTables& tables) {
    return static_cast<size_t>(tables.num_devices) * kDeviceFields + tables.num_group_fields + 1;
}

void write_node(PlacementEstimate& estimate, const PlacementTurn& turn, float* out) {
    const PlacementTables& tables = estimate.tables();
    write_device_rows(estimate, turn, out);
    out += static_cast<size_t>(tables.num_devices) * kDeviceFields;
    if (turn.group >= 0)
        std::copy_n(&tables.group_fields[static_cast<size_t>(turn.group) * tables.num_group_fields], tables.num_group_fields, out);
    else
        std::fill_n(out, tables.num_group_fields, 0.0f);
    out[tables.num_group_fields] = progress_of(tables, turn.step);
}

float progress_of(const PlacementTables& tables, int32_t step) {
    return static_cast<float>(divide_exactly(step, tables.total_steps));
}

}  // namespace opgym
