// List schedulers that choose the device of each op while they build a schedule: m-ETF, m-SCT, HLFET and HEFT.
//
// They plan against an estimate: ops of a device run one after the other, a tensor is sent once per destination as
// soon as its channel lets it, and a device is open to an op only while the memory committed there has room for it.
// The simulator judges the placement; the plan is never reported as a result.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "platform.hpp"

namespace opgym {

// What a scheduler is asked; every vector is checked by check_plan_request.
struct PlanRequest {
    std::vector<uint8_t> allowed;         // [ops, devices] whether an op, with its whole unit, may run there
    std::vector<int32_t> unit;            // [ops] ops of one unit share a device
    std::vector<int64_t> capacity_bytes;  // [devices]
    std::vector<int64_t> rank;            // [ops] higher is more urgent
    std::vector<int32_t> favourite;       // [ops] m-SCT's favourite child, or -1; empty: none
};

struct Plan {
    std::vector<uint8_t> device;    // [ops]
    std::vector<int32_t> position;  // [ops] when the op was decided; variables are homed on the way: -1
    int64_t makespan_ns = 0;        // as estimated
    int64_t forced = 0;             // ops put where memory had no room, because it had room nowhere
};

// Throws std::invalid_argument on a wrong length, an op that is allowed nowhere, a unit out of range.
void check_plan_request(const Graph& graph, const Platform& platform, const PlanRequest& request);

// Of all (ready op, device) pairs, starts the one that can start first (Hwang et al. 1989; with memory: Jeon et al.
// 2020, "Baechi", m-ETF). With favourite children, a device waits for its last op's favourite if that is due there
// first (m-SCT).
Plan earliest_task_first(const Graph& graph, const Platform& platform, const PlanRequest& request);

// Takes the ready op of highest rank and starts it where it can start first (HLFET, Adam et al. 1974).
Plan highest_level_first(const Graph& graph, const Platform& platform, const PlanRequest& request);

// Takes ops by rank and puts each into the gap in which it ends first (HEFT, Topcuoglu et al. 2002).
Plan earliest_finish_with_insertion(const Graph& graph, const Platform& platform, const PlanRequest& request);

// rank(v) = cost(v) + max over (output tensor, consumer) of transfer(tensor) + rank(consumer). Both in ns, [ops] and
// [tensors].
std::vector<int64_t> static_upward_rank(const Graph& graph, const std::vector<int64_t>& cost_ns,
                                        const std::vector<int64_t>& transfer_ns);

}  // namespace opgym
