#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_contiguous(nb::module_&) {}
