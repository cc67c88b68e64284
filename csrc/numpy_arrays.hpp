// Between numpy arrays and std::vector, for the bindings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace opgym {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Numpy1 = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <class T, class Array>
std::vector<T> to_vector(const Array& array) {
    return std::vector<T>(array.data(), array.data() + array.size());
}

// Hands a vector's memory to numpy without a copy.
template <class T>
Numpy1<T> to_numpy(std::vector<T> values) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Numpy1<T>(owned->data(), {owned->size()}, owner);
}

template <class Array>
void expect_shape(const Array& array, std::initializer_list<size_t> shape, const char* name) {
    bool same = array.ndim() == shape.size();
    std::string expected;
    size_t axis = 0;
    for (size_t length : shape) {
        same = same && array.shape(axis) == length;
        expected += (axis++ ? ", " : "") + std::to_string(length);
    }
    if (!same) throw std::invalid_argument(std::string(name) + " has the wrong shape; expected (" + expected + ")");
}

}  // namespace opgym
