#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_list_scheduling(nb::module_&) {}
