#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "incremental_peak.hpp"
#include "numpy_arrays.hpp"
#include "order_beam.hpp"
#include "order_bound.hpp"
#include "order_walk.hpp"

namespace opgym {
namespace {

using namespace nb::literals;

template <class Value, class Array>
std::span<const Value> span_of(const Array& array) {
    return {array.data(), array.size()};
}

Numpy1<int64_t> cuts(const Graph& graph) {
    std::vector<int64_t> cut;
    {
        nb::gil_scoped_release release;
        cut = cut_bytes(graph);
    }
    return to_numpy(std::move(cut));
}

void bind_incremental_peak(nb::module_& m) {
    nb::class_<IncrementalPeak>(m, "IncrementalPeak", "The peak of an order while ops of it move.")
        .def("__init__",
             [](IncrementalPeak* self, const Graph& graph, const In1<int32_t>& order) {
                 new (self) IncrementalPeak(graph, span_of<int32_t>(order));
             },
             nb::keep_alive<1, 2>(), "graph"_a, "order"_a.noconvert())
        .def_prop_ro("peak", &IncrementalPeak::peak)
        .def_prop_ro("order", [](const IncrementalPeak& self) { return to_numpy(self.order()); },
                     nb::rv_policy::automatic)
        .def("move", &IncrementalPeak::move, "i"_a, "j"_a, "length"_a = 1,
             "Moves `length` ops from position i on so that they begin at position j, if that is legal; returns "
             "whether it did.")
        .def("move_later", &IncrementalPeak::move_later, "position"_a, "end"_a,
             "Moves the op at a position, and what depends on it before `end`, behind the rest before `end`; returns "
             "whether there was a rest.")
        .def("move_earlier", &IncrementalPeak::move_earlier, "position"_a, "begin"_a,
             "Moves the op at a position, and what it depends on from `begin` on, before the rest from `begin` on; "
             "returns whether there was a rest.");
}

void bind_searches(nb::module_& m) {
    nb::class_<OrderSearch>(m, "OrderSearch", "A search over orders that goes on where the last call left it.")
        .def("run", &OrderSearch::run, "evaluations"_a, "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Spends up to this many evaluations within a time; returns how many it spent.")
        .def_prop_ro("over", &OrderSearch::over, "Whether there is nothing left to do.")
        .def_prop_ro("proven", &OrderSearch::proven, "Whether nothing better can exist.")
        .def_prop_ro("best_peak", &OrderSearch::best_peak)
        .def_prop_ro("best_order", [](const OrderSearch& self) { return to_numpy(self.best_order()); },
                     nb::rv_policy::automatic)
        .def_prop_ro(
            "improvements",
            [](const OrderSearch& self) {
                std::vector<std::tuple<int64_t, double, int64_t>> rows;
                for (const auto& i : self.improvements()) rows.emplace_back(i.evaluations, i.seconds, i.score);
                return rows;
            },
            "New best peaks of the last call: (evaluations and seconds since it began, peak).");
    nb::class_<RandomOrders, OrderSearch>(m, "RandomOrders", "Independent random orders.")
        .def(nb::init<const Graph&, uint64_t, int64_t>(), nb::keep_alive<1, 2>(), "graph"_a, "seed"_a, "target"_a);
    nb::class_<KeyDescent, OrderSearch>(m, "KeyDescent", "Local search on the keys by which a device lists its ops.")
        .def("__init__",
             [](KeyDescent* self, const Graph& graph, const In1<int32_t>& order, uint64_t seed, int64_t target) {
                 new (self) KeyDescent(graph, span_of<int32_t>(order), seed, target);
             },
             nb::keep_alive<1, 2>(), "graph"_a, "order"_a.noconvert(), "seed"_a, "target"_a);
    nb::class_<OrderBeam, OrderSearch>(m, "OrderBeam", "Beam search over the sets of ops that have run.")
        .def("__init__",
             [](OrderBeam* self, const Graph& graph, const In1<int32_t>& order, int64_t target,
                const std::vector<int64_t>& widths) {
                 new (self) OrderBeam(graph, span_of<int32_t>(order), target, widths);
             },
             nb::keep_alive<1, 2>(), "graph"_a, "order"_a.noconvert(), "target"_a, "widths"_a);
    nb::class_<OrderAnnealing, OrderSearch>(m, "OrderAnnealing", "Simulated annealing in rounds from several starts.")
        .def("__init__",
             [](OrderAnnealing* self, const Graph& graph, const In2<int32_t>& starts, uint64_t seed, int64_t target,
                double temperature, int64_t round_length) {
                 new (self) OrderAnnealing(graph, span_of<int32_t>(starts), seed, target, temperature, round_length);
             },
             nb::keep_alive<1, 2>(), "graph"_a, "starts"_a.noconvert(), "seed"_a, "target"_a, "temperature"_a,
             "round_length"_a)
        .def("set_round_length", &OrderAnnealing::set_round_length, "evaluations"_a);
    nb::class_<OrderDescent, OrderSearch>(m, "OrderDescent", "Local search with kicks.")
        .def("__init__",
             [](OrderDescent* self, const Graph& graph, const In1<int32_t>& order, uint64_t seed, int64_t target,
                int64_t patience, int64_t kick) {
                 new (self) OrderDescent(graph, span_of<int32_t>(order), seed, target, patience, kick);
             },
             nb::keep_alive<1, 2>(), "graph"_a, "order"_a.noconvert(), "seed"_a, "target"_a, "patience"_a, "kick"_a);
}

}  // namespace

void bind_order_search_core(nb::module_& m) {
    m.def("cut_bytes", &cuts, "graph"_a,
          "Bytes that are live while each op runs in every order, [ops] int64; 0 for variables.");
    m.def("end_bytes", &end_bytes, "graph"_a, "Bytes that are live while the last op runs in every order.");
    bind_incremental_peak(m);
    bind_searches(m);
}

}  // namespace opgym

void bind_order_search(nanobind::module_& m) { opgym::bind_order_search_core(m); }
