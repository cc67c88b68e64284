#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "exclusive_use.hpp"
#include "numpy_arrays.hpp"
#include "placement_batch.hpp"

namespace opgym {
namespace {

using namespace nb::literals;

// Tables and the arrays they were made of, which is what they pickle as.
struct BoundTables {
    std::shared_ptr<const PlacementTables> tables;
    nb::dict arrays;
};

template <class T, class Stored>
void take(const nb::dict& arrays, const char* name, std::vector<Stored>& out) {
    if (!arrays.contains(name)) throw std::invalid_argument(std::string("no array ") + name);
    using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
    Array array;
    if (!nb::try_cast<Array>(arrays[name], array, false)) throw nb::type_error((std::string(name) + " has another dtype").c_str());
    out.assign(array.data(), array.data() + array.size());
}

template <class T>
T number(const nb::dict& arrays, const char* name) {
    if (!arrays.contains(name)) throw std::invalid_argument(std::string("no number ") + name);
    return nb::cast<T>(arrays[name]);
}

BoundTables make_tables(nb::dict arrays) {
    PlacementArrays a;
    a.num_devices = number<int32_t>(arrays, "num_devices");
    a.num_resources = number<int32_t>(arrays, "num_resources");
    a.num_sources = number<int32_t>(arrays, "num_sources");
    a.num_link_kinds = number<int32_t>(arrays, "num_link_kinds");
    a.reference_ns = number<int64_t>(arrays, "reference_ns");
    a.total_steps = number<int64_t>(arrays, "total_steps");
    a.block_ns = number<double>(arrays, "block_ns");
    a.reference = number<double>(arrays, "reference");
    const int objective = number<int>(arrays, "objective");
    if (objective < 0 || objective > 3) throw std::invalid_argument("an unknown objective");
    a.objective = static_cast<PlacementObjective>(objective);
    take<bool>(arrays, "allowed", a.allowed);
    take<bool>(arrays, "scheduled", a.scheduled);
    take<int64_t>(arrays, "cost_ns", a.cost_ns);
    take<int64_t>(arrays, "private_bytes", a.private_bytes);
    take<int64_t>(arrays, "inner_peak_bytes", a.inner_peak_bytes);
    take<int32_t>(arrays, "input_ptr", a.input_ptr);
    take<int32_t>(arrays, "input_tensor", a.input_tensor);
    take<int32_t>(arrays, "input_lead", a.input_lead);
    take<int64_t>(arrays, "lead_ns", a.lead_ns);
    take<int32_t>(arrays, "output_ptr", a.output_ptr);
    take<int32_t>(arrays, "output_tensor", a.output_tensor);
    take<int32_t>(arrays, "parent_ptr", a.parent_ptr);
    take<int32_t>(arrays, "parent", a.parent);
    take<int32_t>(arrays, "child_ptr", a.child_ptr);
    take<int32_t>(arrays, "child", a.child);
    take<int32_t>(arrays, "source_ptr", a.source_ptr);
    take<int32_t>(arrays, "source", a.source);
    take<int64_t>(arrays, "source_bytes", a.source_bytes);
    take<int64_t>(arrays, "tensor_bytes", a.tensor_bytes);
    take<int64_t>(arrays, "tensor_held_bytes", a.tensor_held_bytes);
    take<int32_t>(arrays, "tensor_readers", a.tensor_readers);
    take<int32_t>(arrays, "tensor_offset", a.tensor_offset);
    take<int64_t>(arrays, "offset_ns", a.offset_ns);
    take<int32_t>(arrays, "tensor_duration", a.tensor_duration);
    take<int64_t>(arrays, "duration_ns", a.duration_ns);
    take<int32_t>(arrays, "link", a.link);
    take<int32_t>(arrays, "send", a.send);
    take<int32_t>(arrays, "receive", a.receive);
    take<int64_t>(arrays, "capacity_bytes", a.capacity_bytes);
    take<float>(arrays, "group_fields", a.group_fields);
    return {std::make_shared<const PlacementTables>(std::move(a)), std::move(arrays)};
}

// An estimate and the Python object that keeps its tables alive and travels with its pickle.
struct BoundEstimate {
    nb::object tables;
    PlacementEstimate estimate;
    std::vector<int32_t> order;  // groups as they were appended: what it pickles as, with the device of each

    void append(int32_t group, int device) {
        checked(group, device);
        if (estimate.device()[group] >= 0) throw std::invalid_argument("the group is appended already");
        estimate.append(group, device);
        order.push_back(group);
    }
    int32_t checked(int32_t group, int device) const {
        const PlacementTables& t = estimate.tables();
        if (group < 0 || group >= t.num_groups || device < 0 || device >= t.num_devices)
            throw std::invalid_argument("no such group or device");
        return group;
    }
};

BoundEstimate make_estimate(nb::object tables) {
    const auto& bound = nb::cast<const BoundTables&>(tables);
    BoundEstimate made{tables, PlacementEstimate(*bound.tables), {}};
    made.order.reserve(bound.tables->num_groups);
    return made;
}

nb::list to_list(std::span<const int64_t> values) {
    nb::list list;
    for (int64_t value : values) list.append(value);
    return list;
}

std::span<const int8_t> placed_of(const BufferView& view, const PlacementTables& tables) {
    const auto placed = view.items<int8_t>();
    if (placed.size() != static_cast<size_t>(tables.num_groups)) throw std::invalid_argument("placed: one device per group");
    for (int8_t d : placed)
        if (d < -1 || d >= tables.num_devices) throw std::invalid_argument("placed: no such device");
    return placed;
}

PlacementTurn turn_of(const BoundEstimate& self, const BufferView& view, int32_t group, int32_t step) {
    const PlacementTables& tables = self.estimate.tables();
    if (group < -1 || group >= tables.num_groups) throw std::invalid_argument("no such group");
    return {group, step, placed_of(view, tables), false};
}

using FloatArray = nb::ndarray<nb::numpy, float, nb::ndim<1>, nb::c_contig>;

FloatArray fresh_floats(size_t length, float*& data) {
    data = new float[length];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    return FloatArray(data, {length}, owner);
}

void bind_tables(nb::module_& m) {
    nb::class_<BoundTables>(m, "PlacementTables", "What never changes in episodes of one placement environment.")
        .def("__init__", [](BoundTables* self, nb::dict arrays) { new (self) BoundTables(make_tables(std::move(arrays))); },
             "arrays"_a, nb::sig("def __init__(self, arrays: dict[str, typing.Any]) -> None"),
             "Arrays and numbers by name; see csrc/placement_tables.hpp.")
        .def("__getstate__", [](const BoundTables& self) { return self.arrays; },
             nb::sig("def __getstate__(self) -> dict[str, typing.Any]"))
        .def("__setstate__", [](BoundTables& self, nb::dict arrays) { new (&self) BoundTables(make_tables(std::move(arrays))); },
             nb::sig("def __setstate__(self, arrays: dict[str, typing.Any], /) -> None"));
}

void bind_estimate(nb::module_& m) {
    auto by_device = [](std::span<const int64_t> (PlacementEstimate::*part)() const) {
        return [part](const BoundEstimate& self) { return to_list((self.estimate.*part)()); };
    };
    const auto ints = nb::sig("def free_ns(self) -> list[int]");
    nb::class_<BoundEstimate>(m, "PlacementEstimate", "The earliest-finish estimate; see csrc/placement_estimate.hpp.")
        .def("__init__", [](BoundEstimate* self, nb::object tables) { new (self) BoundEstimate(make_estimate(std::move(tables))); },
             "tables"_a, nb::sig("def __init__(self, tables: PlacementTables) -> None"))
        .def("copy", [](const BoundEstimate& self) { return BoundEstimate(self); }, "An independent copy.")
        .def("__copy__", [](const BoundEstimate& self) { return BoundEstimate(self); })
        .def("__getstate__",
             [](const BoundEstimate& self) {
                 std::vector<int8_t> device;
                 for (int32_t group : self.order) device.push_back(self.estimate.device()[group]);
                 return nb::make_tuple(self.tables, to_numpy(std::vector<int32_t>(self.order)), to_numpy(std::move(device)));
             },
             nb::sig("def __getstate__(self) -> tuple[typing.Any, ...]"))
        .def("__setstate__",
             [](BoundEstimate& self, const nb::tuple& state) {
                 In1<int32_t> order;
                 In1<int8_t> device;
                 if (state.size() != 3 || !nb::isinstance<BoundTables>(state[0]) || !nb::try_cast(state[1], order, false) ||
                     !nb::try_cast(state[2], device, false) || order.size() != device.size())
                     throw std::invalid_argument("expected tables, the groups in order, and the device of each");
                 BoundEstimate made = make_estimate(state[0]);
                 for (size_t i = 0; i < order.size(); ++i) made.append(order.data()[i], device.data()[i]);
                 new (&self) BoundEstimate(std::move(made));
             },
             nb::sig("def __setstate__(self, state: tuple[typing.Any, ...], /) -> None"))
        .def("is_about",
             [](const BoundEstimate& self, const BoundTables& tables) {
                 const PlacementArrays &own = self.estimate.tables(), &others = *tables.tables;
                 return &own == &others || own == others;
             },
             "tables"_a, "Whether it is of equal tables.")
        .def("append", &BoundEstimate::append, "group"_a, "device"_a, "Puts a group on a device, after everything that is there already.")
        .def("preview",
             [](BoundEstimate& self, int32_t group, int device) {
                 const auto [start, moved_bytes, moved_ns] = self.estimate.preview(self.checked(group, device), device);
                 return nb::make_tuple(start, moved_bytes, moved_ns);
             },
             "group"_a, "device"_a, nb::sig("def preview(self, group: int, device: int) -> tuple[int, int, int]"),
             "What appending would give: the start in ns; the bytes that move there, and the ns that takes.")
        .def_prop_ro("num_groups", [](const BoundEstimate& self) { return self.estimate.tables().num_groups; })
        .def_prop_ro("num_devices", [](const BoundEstimate& self) { return self.estimate.tables().num_devices; })
        .def_prop_ro("finish_ns", [](const BoundEstimate& self) { return self.estimate.finish_ns(); }, "End of the last block.")
        .def_prop_ro("potential", [](const BoundEstimate& self) { return self.estimate.potential(); },
                     "The objective of the groups appended so far, in units of the reference.")
        .def_prop_ro("device",
                     [](const BoundEstimate& self) {
                         nb::list list;
                         for (int8_t d : self.estimate.device()) list.append(static_cast<int>(d));
                         return list;
                     },
                     nb::sig("def device(self) -> list[int]"), "Device of each group appended so far, [groups]; -1: not appended.")
        .def_prop_ro("start_ns", by_device(&PlacementEstimate::start_ns), nb::sig("def start_ns(self) -> list[int]"),
                     "Start of each appended block, [groups]; -1: not appended.")
        .def_prop_ro("free_ns", by_device(&PlacementEstimate::free_ns), ints, "Time from which each device is free.")
        .def_prop_ro("busy_ns", by_device(&PlacementEstimate::busy_ns), nb::sig("def busy_ns(self) -> list[int]"),
                     "Time that each device works.")
        .def_prop_ro("live_bytes", by_device(&PlacementEstimate::live_bytes), nb::sig("def live_bytes(self) -> list[int]"),
                     "Memory held on each device after the decided prefix.")
        .def_prop_ro("peak_bytes", by_device(&PlacementEstimate::peak_bytes), nb::sig("def peak_bytes(self) -> list[int]"),
                     "Largest memory held so far on each device.")
        .def("device_rows",
             [](BoundEstimate& self, nb::handle placed, int32_t group) {
                 const BufferView view(placed, "b", "placed must be a contiguous int8 array");
                 const PlacementTurn turn = turn_of(self, view, group, 0);
                 float* data = nullptr;
                 auto rows = fresh_floats(static_cast<size_t>(self.estimate.tables().num_devices) * kDeviceFields, data);
                 write_device_rows(self.estimate, turn, data);
                 return rows;
             },
             "placed"_a, "group"_a,
             nb::sig("def device_rows(self, placed: NDArray[numpy.int8], group: int) -> NDArray[numpy.float32]"),
             "DEVICE_FIELDS of each device about a group, [devices * fields]; placed: device of each group, -1: none.")
        .def("node",
             [](BoundEstimate& self, nb::handle placed, int32_t group, int32_t step) {
                 const BufferView view(placed, "b", "placed must be a contiguous int8 array");
                 const PlacementTurn turn = turn_of(self, view, group, step);
                 float* data = nullptr;
                 auto row = fresh_floats(node_length(self.estimate.tables()), data);
                 write_node(self.estimate, turn, data);
                 return row;
             },
             "placed"_a, "group"_a, "step"_a,
             nb::sig("def node(self, placed: NDArray[numpy.int8], group: int, step: int) -> NDArray[numpy.float32]"),
             "The observation of that name, after a number of decisions.");
}

// A batch; not for several threads at once, which it refuses.
class BoundBatch {
   public:
    BoundBatch(const nb::list& graphs, int64_t slots, int64_t padded_groups, bool dense, bool node, int threads)
        : batch_(tables_of(graphs), slots, padded_groups, dense, threads), node_(node) {}

    void reset(const In1<int64_t>& slots, const In1<int64_t>& graphs) {
        const ExclusiveUse::Claim claim(use_);
        expect_shape(graphs, {slots.size()}, "graphs");
        for (size_t i = 0; i < slots.size(); ++i) batch_.reset(slots.data()[i], graphs.data()[i]);
    }

    int64_t step(const In1<int64_t>& actions, const std::optional<In1<bool>>& skip, Out1<double> reward, Out1<bool> terminated,
                 Out1<int64_t> illegal_actions, Out2<int8_t> action_mask, const nb::list& observation) {
        const ExclusiveUse::Claim claim(use_);
        const size_t slots = batch_.slots();
        expect_shape(actions, {slots}, "actions");
        if (skip) expect_shape(*skip, {slots}, "skip");
        expect_shape(reward, {slots}, "reward");
        expect_shape(terminated, {slots}, "terminated");
        PlacementBatch::Rows rows = rows_of(illegal_actions, action_mask, observation);
        rows.reward = reward.data();
        rows.terminated = terminated.data();
        nb::gil_scoped_release release;
        return batch_.step(actions.data(), skip ? skip->data() : nullptr, rows);
    }

    void observe(const In1<int64_t>& slots, Out1<int64_t> illegal_actions, Out2<int8_t> action_mask, const nb::list& observation) {
        const ExclusiveUse::Claim claim(use_);
        const PlacementBatch::Rows rows = rows_of(illegal_actions, action_mask, observation);
        for (size_t i = 0; i < slots.size(); ++i) batch_.observe(slots.data()[i], rows);
    }

    void action_masks(Out2<int8_t> action_mask) {
        const ExclusiveUse::Claim claim(use_);
        expect_shape(action_mask, {static_cast<size_t>(batch_.slots()), static_cast<size_t>(batch_.num_devices())}, "action_mask");
        batch_.action_masks(action_mask.data());
    }

    Numpy1<int64_t> decisions(int64_t slot) {
        const ExclusiveUse::Claim claim(use_);
        const auto decisions = batch_.decisions(slot);
        return to_numpy(std::vector<int64_t>(decisions.begin(), decisions.end()));
    }

    void replay(int64_t slot, int64_t graph, const In1<int64_t>& decisions, int64_t illegal_actions) {
        const ExclusiveUse::Claim claim(use_);
        batch_.replay(slot, graph, {decisions.data(), decisions.size()}, illegal_actions);
    }

   private:
    static std::vector<PlacementBatch::Tables> tables_of(const nb::list& graphs) {
        std::vector<PlacementBatch::Tables> tables;
        for (nb::handle graph : graphs) tables.push_back(nb::cast<const BoundTables&>(graph).tables);
        return tables;
    }

    template <class T>
    static T* data_of(const nb::list& observation, size_t i, size_t size) {
        nb::ndarray<T, nb::c_contig, nb::device::cpu> array;  // the one that is given: what is written must reach it
        if (!nb::try_cast(observation[i], array, false) || array.size() != size) throw std::invalid_argument("an array of the observation has the wrong dtype or shape");
        return array.data();
    }

    PlacementBatch::Rows rows_of(Out1<int64_t>& illegal_actions, Out2<int8_t>& action_mask, const nb::list& observation) const {
        const size_t slots = batch_.slots(), devices = batch_.num_devices();
        expect_shape(illegal_actions, {slots}, "illegal_actions");
        expect_shape(action_mask, {slots, devices}, "action_mask");
        if (observation.size() != (node_ ? 1u : 4u)) throw std::invalid_argument("another number of arrays is expected");
        PlacementBatch::Rows rows;
        rows.illegal_actions = illegal_actions.data();
        rows.action_mask = action_mask.data();
        if (node_) {
            rows.node = data_of<float>(observation, 0, slots * batch_.node_length());
        } else {
            rows.placement = data_of<int32_t>(observation, 0, slots * batch_.padded_groups());
            rows.devices = data_of<float>(observation, 1, slots * devices * kDeviceFields);
            rows.current = data_of<int32_t>(observation, 2, slots);
            rows.progress = data_of<float>(observation, 3, slots);
        }
        return rows;
    }

    PlacementBatch batch_;
    bool node_;
    ExclusiveUse use_;
};

#define ROWS_SIG                                                                                              \
    "illegal_actions: NDArray[numpy.int64], action_mask: NDArray[numpy.int8], observation: list[NDArray[typing.Any]]"

void bind_batch(nb::module_& m) {
    nb::class_<BoundBatch>(m, "PlacementBatch", "Sequential placement games that step together; see opgym.envs.vector.BatchCore.")
        .def(nb::init<const nb::list&, int64_t, int64_t, bool, bool, int>(), "graphs"_a, "slots"_a, "padded_groups"_a, "dense"_a,
             "node"_a, "threads"_a,
             nb::sig("def __init__(self, graphs: list[PlacementTables], slots: int, padded_groups: int, dense: bool, node: bool, "
                     "threads: int) -> None"))
        .def("reset", &BoundBatch::reset, "slots"_a.noconvert(), "graphs"_a.noconvert())
        .def("step", &BoundBatch::step, "actions"_a.noconvert(), "skip"_a.noconvert().none(), "reward"_a.noconvert(),
             "terminated"_a.noconvert(), "illegal_actions"_a.noconvert(), "action_mask"_a.noconvert(), "observation"_a,
             nb::sig("def step(self, actions: NDArray[numpy.int64], skip: NDArray[numpy.bool_] | None, reward: "
                     "NDArray[numpy.float64], terminated: NDArray[numpy.bool_], " ROWS_SIG ") -> int"))
        .def("observe", &BoundBatch::observe, "slots"_a.noconvert(), "illegal_actions"_a.noconvert(),
             "action_mask"_a.noconvert(), "observation"_a,
             nb::sig("def observe(self, slots: NDArray[numpy.int64], " ROWS_SIG ") -> None"))
        .def("action_masks", &BoundBatch::action_masks, "action_mask"_a.noconvert())
        .def("decisions", &BoundBatch::decisions, "slot"_a)
        .def("replay", &BoundBatch::replay, "slot"_a, "graph"_a, "decisions"_a.noconvert(), "illegal_actions"_a);
}

}  // namespace

void bind_placement_batch_core(nb::module_& m) {
    bind_tables(m);
    bind_estimate(m);
    bind_batch(m);
}

}  // namespace opgym

void bind_placement_batch(nanobind::module_& m) { opgym::bind_placement_batch_core(m); }
