// The groups of a placement problem as blocks, and what observations of them need: what never changes in an episode.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace opgym {

// What the potential of a dense reward estimates; the order is that of problems.objectives.Objective.
enum class PlacementObjective : int { step_time = 0, peak_memory = 1, max_load = 2, latency = 3 };

// See envs/placement/blocks.py and channels.py for the meaning of each array. A crossing tensor, here just tensor, is
// written in one group and read in others. Rows that many tensors share are stored once and named by their index.
struct PlacementArrays {
    int32_t num_devices = 0, num_resources = 0, num_sources = 0, num_link_kinds = 0;
    std::vector<uint8_t> allowed;                                    // [groups, devices]
    std::vector<int64_t> cost_ns;                                    // [groups, devices]
    std::vector<uint8_t> scheduled;                                  // [groups]
    std::vector<int64_t> private_bytes, inner_peak_bytes;            // [groups]
    std::vector<int32_t> input_ptr, input_tensor, input_lead;        // CSR by group; row of lead_ns, -1: all 0
    std::vector<int64_t> lead_ns;                                    // [lead rows, devices]
    std::vector<int32_t> output_ptr, output_tensor;                  // CSR by group
    std::vector<int32_t> parent_ptr, parent, child_ptr, child;       // CSR by group, ascending
    std::vector<int32_t> source_ptr, source;                         // CSR by group: shared source tensors
    std::vector<int64_t> source_bytes;                               // beside `source`
    std::vector<int64_t> tensor_bytes, tensor_held_bytes;            // [tensors]
    std::vector<int32_t> tensor_readers;                             // [tensors]
    std::vector<int32_t> tensor_offset;                              // [tensors] row of offset_ns, -1: there at the start
    std::vector<int64_t> offset_ns;                                  // [offset rows, devices]
    std::vector<int32_t> tensor_duration;                            // [tensors] row of duration_ns
    std::vector<int64_t> duration_ns;                                // [duration rows, link kinds]
    std::vector<int32_t> link, send, receive;                        // [devices, devices]; row = source
    std::vector<int64_t> capacity_bytes;                             // [devices]
    std::vector<float> group_fields;                                 // [groups, fields]
    int64_t reference_ns = 1, total_steps = 1;
    double block_ns = 1, reference = 1;
    PlacementObjective objective = PlacementObjective::step_time;

    bool operator==(const PlacementArrays&) const = default;
};

// Immutable after construction.
class PlacementTables : public PlacementArrays {
   public:
    // Throws std::invalid_argument if the arrays do not fit together, or times or bytes could pass 2^63 - 1.
    explicit PlacementTables(PlacementArrays arrays);

    int32_t num_groups = 0, num_tensors = 0, num_group_fields = 0;
    int32_t most_inputs = 0;            // of any group
    std::vector<uint64_t> allowed_set;  // [groups] bit d: allowed on device d
    std::vector<int64_t> initial;       // words of an estimate without groups, see PlacementEstimate

    // Where the parts of an estimate lie among its words.
    int64_t free_at = 0, busy_at = 0, live_at = 0, peak_at = 0, resource_at = 0, tensor_at = 0, source_at = 0, start_at = 0;
    int64_t tensor_stride = 0;

    bool is_allowed(int32_t group, int device) const { return allowed_set[group] >> device & 1; }
    int lowest_allowed(int32_t group) const { return __builtin_ctzll(allowed_set[group]); }
    size_t link_of(int from, int to) const { return static_cast<size_t>(from) * num_devices + to; }

   private:
    void check() const;
    void check_tensors() const;
    void check_bytes() const;
    void check_times() const;
    void lay_out();
};

// a / b, correctly rounded whatever their size, as Python divides integers. b is positive.
double divide_exactly(int64_t a, int64_t b);

}  // namespace opgym
