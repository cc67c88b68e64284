// The extension module opgym._core: one bind function per part of the core.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_benchmark(nb::module_& m);
void bind_simulator(nb::module_& m);
void bind_order_peak(nb::module_& m);
void bind_order_search(nb::module_& m);
void bind_order_program(nb::module_& m);
void bind_key_search(nb::module_& m);
void bind_list_scheduling(nb::module_& m);
void bind_contiguous(nb::module_& m);
void bind_placement_batch(nb::module_& m);
void bind_scheduling(nb::module_& m);
void bind_scheduling_batch(nb::module_& m);

NB_MODULE(_core, m) {
    m.doc() = "The hot core of opgym: frozen graphs, the event simulator, and search loops.";
    // An object that lives to the end of the process, a test's parameter say, is no leak worth a message.
    nb::set_leak_warnings(false);
    bind_benchmark(m);
    bind_simulator(m);
    bind_order_peak(m);
    bind_order_search(m);
    bind_order_program(m);
    bind_key_search(m);
    bind_list_scheduling(m);
    bind_contiguous(m);
    bind_placement_batch(m);
    bind_scheduling(m);
    bind_scheduling_batch(m);
}
