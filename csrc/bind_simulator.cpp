#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>

#include "graph.hpp"
#include "numpy_arrays.hpp"
#include "simulator.hpp"

namespace opgym {
namespace {

using namespace nb::literals;
using AnyFloats = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// Reads float32 or float64 priorities of any shape; a caller's length check follows.
Priority to_priority(const std::optional<AnyFloats>& array) {
    if (!array) return {};
    if (array->dtype() == nb::dtype<float>()) return std::span(static_cast<const float*>(array->data()), array->size());
    if (array->dtype() == nb::dtype<double>()) return std::span(static_cast<const double*>(array->data()), array->size());
    throw nb::type_error("priorities must be float32 or float64");
}

struct Run {
    RunResult result;
    std::unique_ptr<Timeline> timeline;
};

std::unique_ptr<Run> run(const Simulator& simulator, nb::handle device, nb::handle priority,
                         const std::optional<In2<double>>& transfer_priority, bool timeline) {
    const BufferView devices(device, "B", "device must be a contiguous uint8 array");
    std::optional<BufferView> priorities;
    Priority any;
    if (!priority.is_none()) {
        priorities.emplace(priority, "fd", "priority must be a contiguous float32 or float64 array, or None");
        if (priorities->format() == 'f')
            any = priorities->items<float>();
        else
            any = priorities->items<double>();
    }
    const double* transfer = nullptr;
    if (transfer_priority) {
        expect_shape(*transfer_priority,
                     {static_cast<size_t>(simulator.graph().num_tensors), static_cast<size_t>(simulator.platform().num_devices)},
                     "transfer_priority");
        transfer = transfer_priority->data();
    }
    auto out = std::make_unique<Run>();
    if (timeline) out->timeline = std::make_unique<Timeline>();
    constexpr int32_t kLongRun = 512;  // ops; below, letting other Python threads in costs more than the run
    std::optional<nb::gil_scoped_release> release;
    if (simulator.graph().num_ops >= kLongRun) release.emplace();
    out->result = simulator.run(devices.items<uint8_t>(), any, transfer, out->timeline.get());
    return out;
}

void run_batch(const Simulator& simulator, const In2<uint8_t>& device, const std::optional<AnyFloats>& priority,
               Out1<int64_t> makespan_ns, Out2<int64_t> dynamic_peak_bytes, Out2<int64_t> resident_bytes, int threads,
               const std::optional<Out2<int64_t>>& busy_ns, const std::optional<Out2<int64_t>>& transfer_ns) {
    const size_t size = device.shape(0), devices = simulator.platform().num_devices;
    expect_shape(device, {size, static_cast<size_t>(simulator.graph().num_ops)}, "device");
    expect_shape(makespan_ns, {size}, "makespan_ns");
    expect_shape(dynamic_peak_bytes, {size, devices}, "dynamic_peak_bytes");
    expect_shape(resident_bytes, {size, devices}, "resident_bytes");
    if (priority && priority->ndim() == 2)
        expect_shape(*priority, {size, static_cast<size_t>(simulator.graph().num_ops)}, "priority");
    if (busy_ns.has_value() != transfer_ns.has_value()) throw std::invalid_argument("busy_ns and transfer_ns go together");
    if (busy_ns) {
        expect_shape(*busy_ns, {size, devices}, "busy_ns");
        expect_shape(*transfer_ns, {size, devices}, "transfer_ns");
    }
    const Batch batch{static_cast<int64_t>(size),
                      device.data(),
                      to_priority(priority),
                      makespan_ns.data(),
                      dynamic_peak_bytes.data(),
                      resident_bytes.data(),
                      busy_ns ? busy_ns->data() : nullptr,
                      transfer_ns ? transfer_ns->data() : nullptr};
    nb::gil_scoped_release release;
    simulator.run_batch(batch, threads);
}

// Buffers that are read and written in place at every call, so that a call costs almost nothing beyond the run.
struct BoundRun {
    const Simulator& simulator;
    In1<uint8_t> device;
    std::optional<AnyFloats> priority;
    Out1<int64_t> dynamic_peak_bytes, resident_bytes;

    int64_t operator()() const {
        return simulator.evaluate(device.data(), to_priority(priority), nullptr, dynamic_peak_bytes.data(),
                                  resident_bytes.data());
    }
};

BoundRun bind_buffers(const Simulator& simulator, In1<uint8_t> device, std::optional<AnyFloats> priority,
                      Out1<int64_t> dynamic_peak_bytes, Out1<int64_t> resident_bytes) {
    const size_t ops = simulator.graph().num_ops, devices = simulator.platform().num_devices;
    expect_shape(device, {ops}, "device");
    if (priority) expect_shape(*priority, {ops}, "priority");
    expect_shape(dynamic_peak_bytes, {devices}, "dynamic_peak_bytes");
    expect_shape(resident_bytes, {devices}, "resident_bytes");
    to_priority(priority);  // refuses other dtypes
    return {simulator, std::move(device), std::move(priority), std::move(dynamic_peak_bytes), std::move(resident_bytes)};
}

GraphArrays graph_arrays(const In1<int32_t>& input_ptr, const In1<int32_t>& input_tensor, const In1<int32_t>& output_ptr,
                         const In1<int64_t>& tensor_bytes, const In1<int64_t>& workspace_bytes,
                         const In1<bool>& is_variable, const In1<int32_t>& update_of, const In1<bool>& is_output,
                         const In1<bool>& elementwise, bool in_place) {
    GraphArrays a;
    a.input_ptr = to_vector<int32_t>(input_ptr);
    a.input_tensor = to_vector<int32_t>(input_tensor);
    a.output_ptr = to_vector<int32_t>(output_ptr);
    a.tensor_bytes = to_vector<int64_t>(tensor_bytes);
    a.workspace_bytes = to_vector<int64_t>(workspace_bytes);
    a.is_variable = to_vector<uint8_t>(is_variable);
    a.update_of = to_vector<int32_t>(update_of);
    a.is_output = to_vector<uint8_t>(is_output);
    a.elementwise = to_vector<uint8_t>(elementwise);
    a.in_place = in_place;
    return a;
}

void bind_graph(nb::module_& m) {
    nb::class_<Graph>(m, "Graph", "A frozen graph; see opgym.graphs.Graph for the arrays.")
        .def("__init__",
             [](Graph* self, In1<int32_t> input_ptr, In1<int32_t> input_tensor, In1<int32_t> output_ptr,
                In1<int64_t> tensor_bytes, In1<int64_t> workspace_bytes, In1<bool> is_variable, In1<int32_t> update_of,
                In1<bool> is_output, In1<bool> elementwise, bool in_place) {
                 new (self) Graph(graph_arrays(input_ptr, input_tensor, output_ptr, tensor_bytes, workspace_bytes, is_variable,
                                               update_of, is_output, elementwise, in_place));
             },
             "input_ptr"_a.noconvert(), "input_tensor"_a.noconvert(), "output_ptr"_a.noconvert(),
             "tensor_bytes"_a.noconvert(), "workspace_bytes"_a.noconvert(), "is_variable"_a.noconvert(),
             "update_of"_a.noconvert(), "is_output"_a.noconvert(), "elementwise"_a.noconvert(), "in_place"_a)
        .def_ro("num_ops", &Graph::num_ops)
        .def_ro("num_tensors", &Graph::num_tensors);
}

void bind_run(nb::module_& m) {
    auto by_device = [](std::vector<int64_t> RunResult::*field) {
        return [field](const Run& run) { return to_numpy(run.result.*field); };
    };
    constexpr auto owned = nb::rv_policy::automatic;  // the arrays own their memory, unlike most properties
    nb::class_<Run>(m, "Run", "What one simulated run gave; times in ns, per-device arrays [devices] int64.")
        .def_prop_ro("makespan_ns", [](const Run& run) { return run.result.makespan_ns; })
        .def_prop_ro("dynamic_peak_bytes", by_device(&RunResult::dynamic_peak_bytes), owned)
        .def_prop_ro("resident_bytes", by_device(&RunResult::resident_bytes), owned)
        .def_prop_ro("busy_ns", by_device(&RunResult::busy_ns), owned)
        .def_prop_ro("transfer_ns", by_device(&RunResult::transfer_ns), owned)
        .def_prop_ro("op_order",
                     [](const Run& run) { return to_numpy(run.timeline ? run.timeline->op_order : std::vector<int32_t>()); },
                     owned, "Ops that are no variables in the order in which they started; empty without a timeline.")
        .def_prop_ro(
            "timeline",
            [](const Run& run) -> nb::object {
                if (!run.timeline) return nb::none();
                const Timeline& t = *run.timeline;
                nb::dict arrays;
                arrays["op_start_ns"] = to_numpy(t.op_start_ns);
                arrays["op_end_ns"] = to_numpy(t.op_end_ns);
                arrays["transfer_tensor"] = to_numpy(t.transfer_tensor);
                arrays["transfer_source"] = to_numpy(t.transfer_source);
                arrays["transfer_destination"] = to_numpy(t.transfer_destination);
                arrays["transfer_start_ns"] = to_numpy(t.transfer_start_ns);
                arrays["transfer_end_ns"] = to_numpy(t.transfer_end_ns);
                arrays["memory_time_ns"] = to_numpy(t.memory_time_ns);
                arrays["memory_device"] = to_numpy(t.memory_device);
                arrays["memory_bytes"] = to_numpy(t.memory_bytes);
                return arrays;
            },
            nb::sig("def timeline(self) -> dict[str, NDArray[typing.Any]] | None"),
            "Arrays of opgym.graphs.Timeline by name, or None if not asked for.");
}

// For type checkers: an array of unstated dtype has no useful type.
#define PRIORITY_SIG "priority: NDArray[numpy.float32] | NDArray[numpy.float64] | None"

}  // namespace

void bind_simulator_core(nb::module_& m) {
    bind_graph(m);
    bind_run(m);
    nb::class_<BoundRun>(m, "BoundRun", "A run whose buffers are bound; not for several threads at once.")
        .def("__call__", &BoundRun::operator(), "Reads device and priority, writes the peaks, returns the makespan in ns.");
    nb::class_<Simulator>(m, "Simulator", "Simulates one graph on one platform; see opgym.graphs.Simulator.")
        .def("__init__",
             [](Simulator* self, std::shared_ptr<Graph> graph, In2<int64_t> class_cost_ns, In1<int32_t> device_class,
                In2<int64_t> latency_ns, In2<int64_t> bytes_per_second, int channel) {
                 if (channel < 0 || channel > 3) throw std::invalid_argument("an unknown channel model");
                 if (class_cost_ns.shape(0) != static_cast<size_t>(graph->num_ops))
                     throw std::invalid_argument("class_cost_ns has the wrong number of rows");
                 Platform platform(*graph, to_vector<int64_t>(class_cost_ns), static_cast<int>(class_cost_ns.shape(1)),
                                   to_vector<int32_t>(device_class), to_vector<int64_t>(latency_ns),
                                   to_vector<int64_t>(bytes_per_second), static_cast<Channel>(channel));
                 new (self) Simulator(std::move(graph), std::move(platform));
             },
             "graph"_a, "class_cost_ns"_a.noconvert(), "device_class"_a.noconvert(), "latency_ns"_a.noconvert(),
             "bytes_per_second"_a.noconvert(), "channel"_a)
        .def("run", &run, "device"_a, "priority"_a = nb::none(),
             "transfer_priority"_a.noconvert() = nb::none(), "timeline"_a = false,
             nb::sig("def run(self, device: NDArray[numpy.uint8], " PRIORITY_SIG " = None, "
                     "transfer_priority: NDArray[numpy.float64] | None = None, timeline: bool = False) -> Run"))
        .def("run_batch", &run_batch, "device"_a.noconvert(), "priority"_a.noconvert().none(), "makespan_ns"_a.noconvert(),
             "dynamic_peak_bytes"_a.noconvert(), "resident_bytes"_a.noconvert(), "threads"_a = 1,
             "busy_ns"_a.noconvert() = nb::none(), "transfer_ns"_a.noconvert() = nb::none(),
             nb::sig("def run_batch(self, device: NDArray[numpy.uint8], " PRIORITY_SIG ", makespan_ns: "
                     "NDArray[numpy.int64], dynamic_peak_bytes: NDArray[numpy.int64], resident_bytes: "
                     "NDArray[numpy.int64], threads: int = 1, busy_ns: NDArray[numpy.int64] | None = None, transfer_ns: "
                     "NDArray[numpy.int64] | None = None) -> None"))
        .def("bind", &bind_buffers, nb::keep_alive<0, 1>(), "device"_a.noconvert(), "priority"_a.noconvert().none(),
             "dynamic_peak_bytes"_a.noconvert(), "resident_bytes"_a.noconvert(),
             nb::sig("def bind(self, device: NDArray[numpy.uint8], " PRIORITY_SIG ", dynamic_peak_bytes: "
                     "NDArray[numpy.int64], resident_bytes: NDArray[numpy.int64]) -> BoundRun"))
        .def(
            "upward_rank",
            [](const Simulator& simulator, const In1<uint8_t>& device) {
                return to_numpy(simulator.upward_rank({device.data(), device.size()}));
            },
            "device"_a.noconvert());
}

}  // namespace opgym

void bind_simulator(nanobind::module_& m) { opgym::bind_simulator_core(m); }
