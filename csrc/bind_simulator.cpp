#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_simulator(nb::module_&) {}
