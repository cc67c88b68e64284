// What a simulated run is asked and what it answers.
#pragma once

#include <cstdint>
#include <vector>

namespace opgym {

struct RunRequest {
    const uint8_t* device = nullptr;            // [ops]
    const int32_t* rank = nullptr;              // [ops] lower runs first
    const int32_t* order = nullptr;             // [ops] inverse of rank
    const double* transfer_priority = nullptr;  // [tensors, devices], or null: the rank of the best consumer
};

struct Timeline {
    std::vector<int64_t> op_start_ns, op_end_ns;  // [ops]; -1 for variable ops
    std::vector<int32_t> op_order;                // ops that are no variables, in the order in which they started
    std::vector<int32_t> transfer_tensor, transfer_source, transfer_destination;
    std::vector<int64_t> transfer_start_ns, transfer_end_ns;
    // One sample per device and round after whose allocations its live bytes differ from the sample before (the first
    // one: from the resident bytes); resident bytes are included.
    std::vector<int64_t> memory_time_ns, memory_bytes;
    std::vector<int32_t> memory_device;
};

// Per-device vectors have length devices.
struct RunResult {
    RunResult() = default;
    explicit RunResult(int devices)
        : dynamic_peak_bytes(devices), resident_bytes(devices), busy_ns(devices), transfer_ns(devices) {}

    int64_t makespan_ns = 0;
    std::vector<int64_t> dynamic_peak_bytes, resident_bytes, busy_ns, transfer_ns;
};

}  // namespace opgym
