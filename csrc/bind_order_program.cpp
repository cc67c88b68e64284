#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "numpy_arrays.hpp"
#include "order_program.hpp"

namespace opgym {
namespace {

using namespace nb::literals;

}  // namespace

void bind_order_program_core(nb::module_& m) {
    nb::class_<OrderProgram>(m, "OrderProgram", "The least peak over all orders, by exact search.")
        .def("__init__",
             [](OrderProgram* self, const Graph& graph, const In1<int32_t>& order, int64_t lower, int64_t max_bytes) {
                 new (self) OrderProgram(graph, {order.data(), order.size()}, lower, max_bytes);
             },
             nb::keep_alive<1, 2>(), "graph"_a, "order"_a.noconvert(), "lower"_a, "max_bytes"_a)
        .def("run", &OrderProgram::run, "work"_a, "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Goes on for about as much work, or as long, or until a better order is found.")
        .def("offer",
             [](OrderProgram& self, const In1<int32_t>& order) { self.offer({order.data(), order.size()}); },
             "order"_a.noconvert(), "Tells of a legal order from somewhere else.")
        .def_prop_ro("proven", &OrderProgram::proven, "Whether no order is better than the best one.")
        .def_prop_ro("over", &OrderProgram::over, "Whether there is nothing left to do, or no memory to do it with.")
        .def_prop_ro("lower", &OrderProgram::lower, "A peak that no order can beat.")
        .def_prop_ro("upper", &OrderProgram::upper, "Peak of the best order.")
        .def_prop_ro("best_order", [](const OrderProgram& self) { return to_numpy(self.best_order()); },
                     nb::rv_policy::automatic)
        .def_prop_ro("work", &OrderProgram::work, "Sets of ops that were looked at, or as much work.");
}

}  // namespace opgym

void bind_order_program(nanobind::module_& m) { opgym::bind_order_program_core(m); }
