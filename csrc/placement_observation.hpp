// What the placement environment shows of a state; see envs/placement/features.py for the fields.
#pragma once

#include <cstdint>
#include <span>

#include "placement_estimate.hpp"

namespace opgym {

// Length of DEVICE_FIELDS.
inline constexpr int kDeviceFields = 15;

// What is decided about next.
struct PlacementTurn {
    int32_t group = -1;             // -1: none
    int32_t step = 0;               // decisions taken
    std::span<const int8_t> placed; // [groups] device of each, -1: none yet; beside the estimate where a whole placement is given
    bool in_order = false;          // whether no group past `group` is placed
};

// DEVICE_FIELDS of device 0, of device 1, ... about the group: out [devices, fields]. Takes the estimate's scratch, but
// leaves it as it was.
void write_device_rows(PlacementEstimate& estimate, const PlacementTurn& turn, float* out);

// The observation "node": device rows, the fields of the group (0 without one), the progress.
size_t node_length(const PlacementTables& tables);
void write_node(PlacementEstimate& estimate, const PlacementTurn& turn, float* out);

float progress_of(const PlacementTables& tables, int32_t step);

}  // namespace opgym
