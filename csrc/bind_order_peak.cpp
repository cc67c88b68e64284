#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "numpy_arrays.hpp"
#include "order_peak.hpp"

namespace opgym {
namespace {

using namespace nb::literals;

Numpy1<int64_t> peak_of_orders(const Graph& graph, const In2<int32_t>& orders, int threads) {
    const auto size = static_cast<int64_t>(orders.shape(0));
    const size_t length = orders.shape(1);
    std::vector<int64_t> peaks(size);
    {
        nb::gil_scoped_release release;
        peaks_of_orders(graph, {orders.data(), orders.size()}, length, peaks, threads);
    }
    return to_numpy(std::move(peaks));
}

}  // namespace

void bind_order_peak_core(nb::module_& m) {
    nb::class_<OrderPeak>(m, "OrderPeak", "Evaluates orders of one graph; not for two threads at once.")
        .def(nb::init<const Graph&>(), nb::keep_alive<1, 2>(), "graph"_a)
        .def(
            "peak",
            [](OrderPeak& self, const In1<int32_t>& order) { return self.peak({order.data(), order.size()}); },
            "order"_a.noconvert(),
            "Largest dynamic bytes on one device when ops run in this order; resident bytes are apart.");
    m.def("peak_of_orders", &peak_of_orders, "graph"_a, "orders"_a.noconvert(), "threads"_a = 1,
          "OrderPeak.peak of every row of orders, [orders] int64.");
}

}  // namespace opgym

void bind_order_peak(nanobind::module_& m) { opgym::bind_order_peak_core(m); }
