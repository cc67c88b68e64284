#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "exclusive_use.hpp"
#include "numpy_arrays.hpp"
#include "scheduling_batch.hpp"

namespace opgym {
namespace {

using namespace nb::literals;
template <class T>
using Out3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// A batch; not for several threads at once, which it refuses. (nanobind tells types apart by their names, without the
// namespace that hides them: no other binding's may have this one.)
struct BoundSchedulingBatch {
    SchedulingBatch batch;
    ExclusiveUse use;

    class Call {
       public:
        explicit Call(BoundSchedulingBatch& self) : claim_(self.use), batch_(self.batch) {}
        SchedulingBatch* operator->() const { return &batch_; }
        SchedulingBatch& operator*() const { return batch_; }

       private:
        ExclusiveUse::Claim claim_;
        SchedulingBatch& batch_;
    };
};

std::span<const int64_t> span_of(const In1<int64_t>& array) { return {array.data(), array.size()}; }

template <class Array>
auto* rows_of(nb::handle array, std::initializer_list<size_t> shape, const char* name) {
    Array rows;
    if (!nb::try_cast<Array>(array, rows, false)) throw nb::type_error(name);
    expect_shape(rows, shape, name);
    return rows.data();
}

SchedulingRows rows_of(const SchedulingBatch& batch, const Out1<int64_t>& illegal_actions,
                       const Out2<int8_t>& action_mask, const nb::list& observation) {
    const auto size = static_cast<size_t>(batch.size()), nodes = static_cast<size_t>(batch.padded_nodes());
    const auto slots = static_cast<size_t>(batch.num_slots());
    expect_shape(illegal_actions, {size}, "illegal_actions");
    expect_shape(action_mask, {size, static_cast<size_t>(batch.num_actions())}, "action_mask");
    SchedulingRows rows;
    rows.illegal_actions = illegal_actions.data();
    rows.action_mask = action_mask.data();
    if (observation.size() == 1 && slots > 0) {
        rows.vectors = rows_of<Out2<float>>(observation[0], {size, batch.vector_length()}, "vectors");
        return rows;
    }
    if (observation.size() != (slots > 0 ? 4 : 3)) throw std::invalid_argument("another number of arrays is written");
    rows.status = rows_of<Out2<int8_t>>(observation[0], {size, nodes}, "status");
    rows.figures = rows_of<Out3<float>>(observation[1], {size, nodes, SchedulingView::kChangingFields}, "figures");
    rows.globals = rows_of<Out2<float>>(observation[2], {size, SchedulingView::kGlobalFields}, "globals");
    if (slots > 0) rows.slots = rows_of<Out2<int32_t>>(observation[3], {size, slots}, "slots");
    return rows;
}

int64_t step(BoundSchedulingBatch& self, const In1<int64_t>& actions, const std::optional<In1<bool>>& skip,
             const Out1<double>& reward, const Out1<bool>& terminated, const Out1<int64_t>& illegal_actions,
             const Out2<int8_t>& action_mask, const nb::list& observation) {
    const BoundSchedulingBatch::Call batch(self);
    const auto size = static_cast<size_t>(batch->size());
    expect_shape(actions, {size}, "actions");
    if (skip) expect_shape(*skip, {size}, "skip");
    expect_shape(reward, {size}, "reward");
    expect_shape(terminated, {size}, "terminated");
    const SchedulingRows rows = rows_of(*batch, illegal_actions, action_mask, observation);
    nb::gil_scoped_release release;
    return batch->step(span_of(actions), skip ? skip->data() : nullptr, reward.data(), terminated.data(), rows);
}

// For type checkers.
#define ROWS_SIG \
    "illegal_actions: NDArray[numpy.int64], action_mask: NDArray[numpy.int8], observation: list[NDArray[typing.Any]]"

}  // namespace

void bind_scheduling_batch_core(nb::module_& m) {
    nb::class_<BoundSchedulingBatch>(m, "SchedulingBatch", "Many episodes that order ops, stepped in one call.")
        .def("__init__",
             [](BoundSchedulingBatch* self, const std::vector<std::shared_ptr<SchedulingView>>& views, int64_t size,
                int32_t padded_nodes, bool dense, int threads) {
                 new (self) BoundSchedulingBatch{
                     SchedulingBatch({views.begin(), views.end()}, size, padded_nodes, dense, threads), {}};
             },
             "views"_a, "size"_a, nb::kw_only(), "padded_nodes"_a, "dense"_a, "threads"_a)
        .def(
            "reset",
            [](BoundSchedulingBatch& self, const In1<int64_t>& slots, const In1<int64_t>& graphs) {
                BoundSchedulingBatch::Call(self)->reset(span_of(slots), span_of(graphs));
            },
            "slots"_a.noconvert(), "graphs"_a.noconvert(),
            "Begins an episode in each of some slots of the batch, about the graph of that index.")
        .def("step", &step, "actions"_a.noconvert(), "skip"_a.noconvert().none(), "reward"_a.noconvert(),
             "terminated"_a.noconvert(), "illegal_actions"_a.noconvert(), "action_mask"_a.noconvert(), "observation"_a,
             nb::sig("def step(self, actions: NDArray[numpy.int64], skip: NDArray[numpy.bool_] | None, reward: "
                     "NDArray[numpy.float64], terminated: NDArray[numpy.bool_], " ROWS_SIG ") -> int"),
             "Takes one decision in every slot of the batch that is not skipped, and writes all rows; returns how many "
             "episodes ended.")
        .def(
            "observe",
            [](BoundSchedulingBatch& self, const In1<int64_t>& slots, const Out1<int64_t>& illegal_actions,
               const Out2<int8_t>& action_mask, const nb::list& observation) {
                const BoundSchedulingBatch::Call batch(self);
                batch->observe(span_of(slots), rows_of(*batch, illegal_actions, action_mask, observation));
            },
            "slots"_a.noconvert(), "illegal_actions"_a.noconvert(), "action_mask"_a.noconvert(), "observation"_a,
            nb::sig("def observe(self, slots: NDArray[numpy.int64], " ROWS_SIG ") -> None"),
            "Writes the rows of some slots of the batch as they are now.")
        .def(
            "action_masks",
            [](BoundSchedulingBatch& self, const Out2<int8_t>& action_mask) {
                const BoundSchedulingBatch::Call batch(self);
                expect_shape(action_mask,
                             {static_cast<size_t>(batch->size()), static_cast<size_t>(batch->num_actions())},
                             "action_mask");
                batch->write_masks(action_mask.data());
            },
            "action_mask"_a.noconvert(), "Writes which actions are legal.")
        .def(
            "decisions",
            [](BoundSchedulingBatch& self, int64_t slot) {
                const BoundSchedulingBatch::Call batch(self);
                const std::vector<int32_t>& order = batch->partial(slot).order();
                return to_numpy(std::vector<int64_t>(order.begin(), order.end()));
            },
            "slot"_a, "Nodes that have run in an episode, in order, [steps] int64.")
        .def(
            "peak_bytes",
            [](BoundSchedulingBatch& self, int64_t slot) {
                return BoundSchedulingBatch::Call(self)->partial(slot).peak_bytes();
            },
            "slot"_a, "The most memory so far in an episode.")
        .def(
            "replay",
            [](BoundSchedulingBatch& self, int64_t slot, int64_t graph, const In1<int64_t>& decisions,
               int64_t illegal_actions) {
                BoundSchedulingBatch::Call(self)->replay(slot, graph, span_of(decisions), illegal_actions);
            },
            "slot"_a, "graph"_a, "decisions"_a.noconvert(), "illegal_actions"_a,
            "Begins an episode and runs nodes at once; ValueError where one of them is not ready.");
}

}  // namespace opgym

void bind_scheduling_batch(nanobind::module_& m) { opgym::bind_scheduling_batch_core(m); }
