// Between numpy arrays and std::vector, for the bindings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <initializer_list>
#include <span>
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

// A contiguous array read through the buffer protocol: a third of the cost of an ndarray argument, for calls where
// that counts.
class BufferView {
   public:
    // `formats`: the struct codes that are accepted.
    BufferView(nb::handle array, const char* formats, const char* expected) {
        if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
            PyErr_Clear();
            throw nb::type_error(expected);
        }
        const char* format = view_.format ? view_.format : "B";
        if (format[1] != 0 || std::strchr(formats, format[0]) == nullptr) {
            PyBuffer_Release(&view_);
            throw nb::type_error(expected);
        }
    }
    BufferView(const BufferView&) = delete;
    BufferView& operator=(const BufferView&) = delete;
    ~BufferView() { PyBuffer_Release(&view_); }

    char format() const { return view_.format ? view_.format[0] : 'B'; }
    size_t size() const { return static_cast<size_t>(view_.len / view_.itemsize); }
    template <class T>
    std::span<const T> items() const {
        return {static_cast<const T*>(view_.buf), size()};
    }

   private:
    Py_buffer view_{};
};

}  // namespace opgym
