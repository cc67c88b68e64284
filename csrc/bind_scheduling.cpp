#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "numpy_arrays.hpp"
#include "partial_order.hpp"
#include "scheduling_layout.hpp"
#include "scheduling_view.hpp"

namespace opgym {
namespace {

using namespace nb::literals;
using LayoutPointer = std::shared_ptr<SchedulingLayout>;
using Int32In = In1<int32_t>;
using Int64In = In1<int64_t>;

constexpr size_t kFigures = 6;

template <class T>
Numpy1<T> copied(const std::vector<T>& values) {
    return to_numpy(std::vector<T>(values));
}

nb::list to_list(const int32_t* nodes, int32_t size) {
    auto list = nb::steal<nb::list>(PyList_New(size));
    for (int32_t i = 0; i < size; ++i) PyList_SET_ITEM(list.ptr(), i, PyLong_FromLong(nodes[i]));
    return list;
}

// --- layouts

void bind_layout(nb::module_& m) {
    nb::class_<SchedulingLayout>(m, "SchedulingLayout", "Ops to order, as nodes: what never changes in an episode.")
        .def("__init__",
             [](SchedulingLayout* self, const Int32In& child_ptr, const Int32In& child, const Int32In& read_ptr,
                const Int32In& read, const Int64In& held_bytes, const Int64In& allocated_bytes,
                const Int64In& needed_bytes, const Int64In& unread_bytes, const Int64In& takeover_bytes) {
                 new (self) SchedulingLayout(SchedulingArrays{
                     to_vector<int32_t>(child_ptr), to_vector<int32_t>(child), to_vector<int32_t>(read_ptr),
                     to_vector<int32_t>(read), to_vector<int64_t>(held_bytes), to_vector<int64_t>(allocated_bytes),
                     to_vector<int64_t>(needed_bytes), to_vector<int64_t>(unread_bytes),
                     to_vector<int64_t>(takeover_bytes)});
             },
             "child_ptr"_a.noconvert(), "child"_a.noconvert(), "read_ptr"_a.noconvert(), "read"_a.noconvert(),
             "held_bytes"_a.noconvert(), "allocated_bytes"_a.noconvert(), "needed_bytes"_a.noconvert(),
             "unread_bytes"_a.noconvert(), "takeover_bytes"_a.noconvert())
        .def("__reduce__", [](nb::handle self) {
            const SchedulingArrays& a = nb::cast<const SchedulingLayout&>(self).arrays();
            return nb::make_tuple(
                self.type(), nb::make_tuple(copied(a.child_ptr), copied(a.child), copied(a.read_ptr), copied(a.read),
                                            copied(a.held_bytes), copied(a.allocated_bytes), copied(a.needed_bytes),
                                            copied(a.unread_bytes), copied(a.takeover_bytes)));
        },
        nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

// --- partial orders

void run(PartialOrder& self, int64_t node) {
    if (!self.is_ready(node)) throw std::invalid_argument("a node that is not ready cannot run");
    self.run(static_cast<int32_t>(node));
}

nb::list best(const PartialOrder& self, int64_t count) {
    if (count < 0) throw std::invalid_argument("a negative number of nodes");
    std::vector<int32_t> chosen(std::min<int64_t>(count, self.num_ready()));
    return to_list(chosen.data(), self.best(static_cast<int32_t>(chosen.size()), chosen.data()));
}

std::vector<int32_t> ready(const PartialOrder& self) {
    std::vector<int32_t> nodes;
    nodes.reserve(self.num_ready());
    self.ready().each([&](int32_t node) {
        nodes.push_back(node);
        return true;
    });
    return nodes;
}

nb::ndarray<nb::numpy, int64_t, nb::ndim<2>, nb::c_contig> figures(const PartialOrder& self) {
    const size_t nodes = self.num_nodes();
    auto* values = new std::vector<int64_t>;
    nb::capsule owner(values, [](void* p) noexcept { delete static_cast<std::vector<int64_t>*>(p); });
    values->reserve(nodes * kFigures);
    for (int32_t node = 0; node < self.num_nodes(); ++node) {
        const NodeRecord& record = self.record(node);
        values->insert(values->end(), {record.net_bytes, self.freed_bytes(node), record.needed_bytes,
                                       record.last_uses, record.unlocks, record.link});
    }
    return {values->data(), {nodes, kFigures}, owner};
}

void bind_partial_order(nb::module_& m) {
    nb::class_<PartialOrder>(
        m, "PartialOrder",
        "A beginning of an order, extended op by op.\n\n"
        "The *rank* of ready nodes is by net bytes freed (bytes that are freed when the op ends - bytes of its "
        "outputs), most first, then by index. An *opener* is a ready node that some other node misses alone: running "
        "it makes that one ready.")
        .def(
            "__init__",
            [](PartialOrder* self, const LayoutPointer& layout, const std::optional<Int32In>& order) {
                PartialOrder partial(layout);
                if (order)
                    for (size_t i = 0; i < order->size(); ++i) run(partial, order->data()[i]);
                new (self) PartialOrder(std::move(partial));
            },
            "layout"_a, "order"_a.noconvert().none() = nb::none())
        .def("__reduce__",
             [](nb::handle self) {
                 const auto& partial = nb::cast<const PartialOrder&>(self);
                 auto layout = std::const_pointer_cast<SchedulingLayout>(partial.layout());
                 return nb::make_tuple(self.type(), nb::make_tuple(layout, copied(partial.order())));
             },
             nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
        .def("run", &run, "node"_a, "Runs a ready node.")
        .def("best", &best, "count"_a, nb::sig("def best(self, count: int) -> list[int]"),
             "Up to `count` ready nodes in order of rank: all of them, or some of each kind.\n\n"
             "Where more are ready: the best ranked openers (nearly half of `count`), the nodes of lowest index that "
             "are not among them (a quarter), and the best ranked of all others. For two or more, the node of best "
             "rank and the one of lowest index are always there.")
        .def("ranked", [](const PartialOrder& self) { return best(self, self.num_ready()); },
             nb::sig("def ranked(self) -> list[int]"), "All ready nodes in order of rank.")
        .def("copy", [](const PartialOrder& self) { return PartialOrder(self); },
             "An independent copy: a few flat arrays.")
        .def("is_ready", &PartialOrder::is_ready, "node"_a)
        .def_prop_ro("order", [](const PartialOrder& self) { return copied(self.order()); }, nb::rv_policy::move,
                     "Nodes that have run, [steps] int32.")
        .def_prop_ro("used_bytes", [](const PartialOrder& self) { return copied(self.used_bytes()); },
                     nb::rv_policy::move, "Memory while each of them ran, [steps] int64.")
        .def_prop_ro("live_bytes", &PartialOrder::live_bytes, "Memory now.")
        .def_prop_ro("peak_bytes", &PartialOrder::peak_bytes, "The most there has been.")
        .def_prop_ro("status", [](const PartialOrder& self) { return copied(self.status()); }, nb::rv_policy::move,
                     "0: waits, 1: ready, 2: has run; [nodes] int8.")
        .def_prop_ro("ready", &ready, "The ready nodes, ascending.")
        .def_prop_ro("first_ready", &PartialOrder::first_ready, "The ready node of lowest index; -1: none.")
        .def_prop_ro("num_nodes", &PartialOrder::num_nodes)
        .def_prop_ro("num_ready", &PartialOrder::num_ready)
        .def_prop_ro("num_done", &PartialOrder::num_done)
        .def_prop_ro("over", &PartialOrder::over, "Whether everything has run.")
        .def_prop_ro("figures", &figures, nb::rv_policy::move,
                     "Of each node: net bytes freed, bytes freed, bytes needed, last uses, nodes unlocked, step at which "
                     "it became ready; right for those that are ready; [nodes, 6] int64.");
}

// --- views

// Memory of an array of float32 that is written; its length is checked.
float* floats(nb::handle array, size_t least) {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE) != 0)
        throw nb::python_error();
    const bool right = view.format && view.format[0] == 'f' && view.format[1] == 0 &&
                       static_cast<size_t>(view.len) >= least * sizeof(float);
    auto* values = static_cast<float*>(view.buf);
    PyBuffer_Release(&view);  // the caller holds the array
    if (!right) throw nb::type_error("expected a float32 array that is long enough");
    return values;
}

void expect_nodes(const SchedulingView& self, const PartialOrder& partial) {
    if (partial.num_nodes() != self.num_nodes()) throw std::invalid_argument("a partial order of another graph");
}

void write_slots(const SchedulingView& self, const PartialOrder& partial, nb::handle out) {
    expect_nodes(self, partial);
    thread_local std::vector<int32_t> slots;
    slots.resize(self.num_slots());
    const int32_t shown = partial.best(self.num_slots(), slots.data());
    self.write_slots(partial, slots.data(), shown, floats(out, self.slots_length()));
}

void bind_view(nb::module_& m) {
    nb::class_<SchedulingView>(m, "SchedulingView", "What an observation shows of a partial order.")
        .def("__init__",
             [](SchedulingView* self, const LayoutPointer& layout, const In2<float>& fixed, double reference_bytes,
                double bound, double most_reads, double most_children, int32_t num_slots) {
                 new (self) SchedulingView(layout, to_vector<float>(fixed),
                                           {reference_bytes, bound, most_reads, most_children}, num_slots);
             },
             "layout"_a, "fixed"_a.noconvert(), "reference_bytes"_a, "bound"_a, "most_reads"_a, "most_children"_a,
             "num_slots"_a)
        .def("__reduce__",
             [](nb::handle self) {
                 const auto& view = nb::cast<const SchedulingView&>(self);
                 auto layout = std::const_pointer_cast<SchedulingLayout>(view.start().layout());
                 const SchedulingScales& scales = view.scales();
                 auto fixed = nb::cast(copied(view.fixed()), nb::rv_policy::move)
                                  .attr("reshape")(view.num_nodes(), SchedulingView::kFixedFields);
                 return nb::make_tuple(self.type(),
                                       nb::make_tuple(layout, fixed, scales.reference_bytes, scales.bound,
                                                      scales.most_reads, scales.most_children, view.num_slots()));
             },
             nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
        .def("start", [](const SchedulingView& self) { return PartialOrder(self.start()); },
             "Of this graph, before anything has run.")
        .def(
            "is_about",
            [](const SchedulingView& self, const PartialOrder& partial) {
                return partial.layout() == self.start().layout() ||
                       partial.layout()->arrays() == self.start().layout()->arrays();
            },
            "partial"_a, "Whether an order is of equal ops, reads and sizes.")
        .def("potential", &SchedulingView::potential, "partial"_a, "The peak so far / reference.")
        .def("write_slots", &write_slots, "partial"_a, "out"_a,
             "Writes the fields of the slots and the global ones, [slots * 17 + 6] float32.")
        .def(
            "write_figures",
            [](const SchedulingView& self, const PartialOrder& partial, nb::handle out) {
                expect_nodes(self, partial);
                const size_t length = static_cast<size_t>(self.num_nodes()) * SchedulingView::kChangingFields;
                self.write_figures(partial, floats(out, length));
            },
            "partial"_a, "out"_a,
            "Writes the changing fields of all ready nodes, and leaves other rows alone, [nodes or more, 8] float32.")
        .def(
            "write_globals",
            [](const SchedulingView& self, const PartialOrder& partial, nb::handle out) {
                expect_nodes(self, partial);
                const int32_t shown = std::min(partial.num_ready(), self.num_slots());
                self.write_globals(partial, shown, floats(out, SchedulingView::kGlobalFields));
            },
            "partial"_a, "out"_a, "Writes the global fields, [6] float32.");
}

}  // namespace

void bind_scheduling_core(nb::module_& m) {
    bind_layout(m);
    bind_partial_order(m);
    bind_view(m);
}

}  // namespace opgym

void bind_scheduling(nanobind::module_& m) { opgym::bind_scheduling_core(m); }
