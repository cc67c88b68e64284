#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>

#include "list_scheduling.hpp"
#include "numpy_arrays.hpp"
#include "simulator.hpp"

namespace opgym {
namespace {

using namespace nb::literals;
using Scheduler = Plan (*)(const Graph&, const Platform&, const PlanRequest&);

Plan plan(Scheduler scheduler, const Simulator& simulator, const In2<bool>& allowed, const In1<int32_t>& unit,
          const In1<int64_t>& capacity_bytes, const In1<int64_t>& rank,
          const std::optional<In1<int32_t>>& favourite = std::nullopt) {
    const Graph& graph = simulator.graph();
    const Platform& platform = simulator.platform();
    expect_shape(allowed, {static_cast<size_t>(graph.num_ops), static_cast<size_t>(platform.num_devices)}, "allowed");
    PlanRequest request;
    request.allowed = to_vector<uint8_t>(allowed);
    request.unit = to_vector<int32_t>(unit);
    request.capacity_bytes = to_vector<int64_t>(capacity_bytes);
    request.rank = to_vector<int64_t>(rank);
    if (favourite) request.favourite = to_vector<int32_t>(*favourite);
    check_plan_request(graph, platform, request);
    nb::gil_scoped_release release;
    return scheduler(graph, platform, request);
}

template <Scheduler scheduler>
void bind_scheduler(nb::module_& m, const char* name, const char* doc) {
    m.def(
        name,
        [](const Simulator& simulator, const In2<bool>& allowed, const In1<int32_t>& unit,
           const In1<int64_t>& capacity_bytes, const In1<int64_t>& rank) {
            return plan(scheduler, simulator, allowed, unit, capacity_bytes, rank);
        },
        "simulator"_a, "allowed"_a.noconvert(), "unit"_a.noconvert(), "capacity_bytes"_a.noconvert(),
        "rank"_a.noconvert(), doc);
}

}  // namespace

void bind_list_scheduling_core(nb::module_& m) {
    nb::class_<Plan>(m, "Plan", "What a list scheduler decided, and what it expects.")
        .def_prop_ro("device", [](const Plan& plan) { return to_numpy(plan.device); }, nb::rv_policy::move)
        .def_prop_ro("position", [](const Plan& plan) { return to_numpy(plan.position); }, nb::rv_policy::move)
        .def_ro("makespan_ns", &Plan::makespan_ns)
        .def_ro("forced", &Plan::forced);
    m.def(
        "earliest_task_first",
        [](const Simulator& simulator, const In2<bool>& allowed, const In1<int32_t>& unit,
           const In1<int64_t>& capacity_bytes, const In1<int64_t>& rank, const std::optional<In1<int32_t>>& favourite) {
            return plan(earliest_task_first, simulator, allowed, unit, capacity_bytes, rank, favourite);
        },
        "simulator"_a, "allowed"_a.noconvert(), "unit"_a.noconvert(), "capacity_bytes"_a.noconvert(),
        "rank"_a.noconvert(), "favourite"_a.noconvert().none() = nb::none(), "m-ETF; m-SCT with favourite children.");
    bind_scheduler<highest_level_first>(m, "highest_level_first", "HLFET: list scheduling by rank.");
    bind_scheduler<earliest_finish_with_insertion>(m, "earliest_finish_with_insertion", "HEFT.");
    m.def(
        "static_upward_rank",
        [](const Simulator& simulator, const In1<int64_t>& cost_ns, const In1<int64_t>& transfer_ns) {
            return to_numpy(static_upward_rank(simulator.graph(), to_vector<int64_t>(cost_ns),
                                               to_vector<int64_t>(transfer_ns)));
        },
        "simulator"_a, "cost_ns"_a.noconvert(), "transfer_ns"_a.noconvert(),
        "Longest path to the end with one cost per op and one time per tensor, [ops].");
}

}  // namespace opgym

void bind_list_scheduling(nanobind::module_& m) { opgym::bind_list_scheduling_core(m); }
