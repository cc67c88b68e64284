#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <optional>
#include <tuple>

#include "contiguous_down_sets.hpp"
#include "contiguous_split.hpp"
#include "numpy_arrays.hpp"

namespace opgym {
namespace {

using namespace nb::literals;
using Clock = std::chrono::steady_clock;

using Found = std::tuple<int64_t, bool, Numpy1<int32_t>, Numpy1<int32_t>>;

Found contiguous_split(const DownSets& sets, const In1<int32_t>& class_count, const In1<int64_t>& class_capacity,
                       const In2<int64_t>& block_ns, const In1<int64_t>& block_bytes,
                       const In1<int32_t>& tensor_producer, const In1<int64_t>& tensor_bytes,
                       const In2<int64_t>& to_device_ns, const In2<int64_t>& from_device_ns,
                       const In1<int32_t>& reader_ptr, const In1<int32_t>& reader, double seconds) {
    SplitCosts costs;
    costs.num_classes = static_cast<int>(class_count.size());
    costs.class_count = to_vector<int32_t>(class_count);
    costs.class_capacity = to_vector<int64_t>(class_capacity);
    costs.block_ns = to_vector<int64_t>(block_ns);
    costs.block_bytes = to_vector<int64_t>(block_bytes);
    costs.tensor_producer = to_vector<int32_t>(tensor_producer);
    costs.tensor_bytes = to_vector<int64_t>(tensor_bytes);
    costs.to_device_ns = to_vector<int64_t>(to_device_ns);
    costs.from_device_ns = to_vector<int64_t>(from_device_ns);
    costs.reader_ptr = to_vector<int32_t>(reader_ptr);
    costs.reader = to_vector<int32_t>(reader);
    const Clock::time_point start = Clock::now();
    bool signalled = false;
    Split split;
    {
        nb::gil_scoped_release release;
        split = best_contiguous_split(sets, costs, [&] {
            if (std::chrono::duration<double>(Clock::now() - start).count() >= seconds) return true;
            nb::gil_scoped_acquire acquire;
            signalled = PyErr_CheckSignals() != 0;
            return signalled;
        });
    }
    if (signalled) throw nb::python_error();
    return {split.load_ns, split.finished, to_numpy(std::move(split.stage)), to_numpy(std::move(split.stage_class))};
}

}  // namespace

void bind_contiguous_core(nb::module_& m) {
    nb::class_<DownSets>(m, "DownSets", "All down-sets of an acyclic graph of blocks, up to a limit.")
        .def("__init__",
             [](DownSets* self, const In1<int32_t>& child_ptr, const In1<int32_t>& child, int64_t limit,
                int64_t limit_words) {
                 new (self) DownSets({child_ptr.data(), child_ptr.size()}, {child.data(), child.size()}, limit,
                                     limit_words);
             },
             "child_ptr"_a.noconvert(), "child"_a.noconvert(), "limit"_a, "limit_words"_a)
        .def_prop_ro("count", &DownSets::count)
        .def_prop_ro("complete", &DownSets::complete);
    m.def("contiguous_split", &contiguous_split, "sets"_a, "class_count"_a.noconvert(), "class_capacity"_a.noconvert(),
          "block_ns"_a.noconvert(), "block_bytes"_a.noconvert(), "tensor_producer"_a.noconvert(),
          "tensor_bytes"_a.noconvert(), "to_device_ns"_a.noconvert(), "from_device_ns"_a.noconvert(),
          "reader_ptr"_a.noconvert(), "reader"_a.noconvert(), "seconds"_a,
          "(load_ns, finished, stage of each block, device class of each stage) of the best contiguous split; "
          "load_ns is 2^63 - 1 if none fits.");
}

}  // namespace opgym

void bind_contiguous(nanobind::module_& m) { opgym::bind_contiguous_core(m); }
