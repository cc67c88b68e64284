#include "graph.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace opgym {
namespace {

void require(bool holds, const std::string& message) {
    if (!holds) throw std::invalid_argument(message);
}

void check_pointer(const std::vector<int32_t>& ptr, size_t rows, int64_t last, const char* name) {
    require(ptr.size() == rows + 1, std::string(name) + " has the wrong length");
    require(ptr.front() >= 0, std::string(name) + " starts below 0");
    require(std::is_sorted(ptr.begin(), ptr.end()), std::string(name) + " decreases");
    require(ptr.back() == last, std::string(name) + " does not end at the number of its entries");
}

}  // namespace

Graph::Graph(GraphArrays arrays) : GraphArrays(std::move(arrays)) {
    require(!input_ptr.empty(), "input_ptr is empty; it has one entry more than there are ops");
    constexpr size_t limit = size_t{1} << 24;  // keys of RankSet<4>
    require(input_ptr.size() <= limit && tensor_bytes.size() < limit, "a graph has at most 2^24 - 1 ops and tensors");
    num_ops = static_cast<int32_t>(input_ptr.size()) - 1;
    num_tensors = static_cast<int32_t>(tensor_bytes.size());
    const size_t ops = num_ops, tensors = num_tensors;
    check_pointer(input_ptr, ops, static_cast<int64_t>(input_tensor.size()), "input_ptr");
    require(input_ptr.front() == 0, "input_ptr does not start at 0");
    check_pointer(output_ptr, ops, num_tensors, "output_ptr");
    num_sources = output_ptr.front();
    for (const auto& [size, name] : {std::pair{workspace_bytes.size(), "workspace_bytes"},
                                     {is_variable.size(), "is_variable"},
                                     {update_of.size(), "update_of"},
                                     {elementwise.size(), "elementwise"}})
        require(size == ops, std::string(name) + " has the wrong length");
    require(is_output.size() == tensors, "is_output has the wrong length");

    producer.assign(tensors, -1);
    for (int32_t op = 0; op < num_ops; ++op) {
        for (int32_t t = output_ptr[op]; t < output_ptr[op + 1]; ++t) producer[t] = op;
        require(update_of[op] >= -1 && update_of[op] < num_ops, "update_of names an op that does not exist");
        require(!is_variable[op] || input_ptr[op] == input_ptr[op + 1], "a variable op reads a tensor");
    }

    consumer_ptr.assign(tensors + 1, 0);
    std::vector<int32_t> last_reader(tensors, -1);
    for (int32_t op = 0; op < num_ops; ++op) {
        for (int32_t t : inputs(op)) {
            require(t >= 0 && t < num_tensors, "input_tensor names a tensor that does not exist");
            require(producer[t] < op, "ops are not in topological order");
            require(last_reader[t] != op, "an op lists an input twice");
            last_reader[t] = op;
            ++consumer_ptr[t + 1];
        }
    }
    for (size_t t = 0; t < tensors; ++t) consumer_ptr[t + 1] += consumer_ptr[t];
    consumer_op.resize(input_tensor.size());
    std::vector<int32_t> next(consumer_ptr.begin(), consumer_ptr.end() - 1);
    for (int32_t op = 0; op < num_ops; ++op)
        for (int32_t t : inputs(op)) consumer_op[next[t]++] = op;

    auto add_bytes = [&](int64_t bytes) {
        require(bytes >= 0, "a size in bytes is negative");
        require(!__builtin_add_overflow(total_bytes, bytes, &total_bytes), "all tensors together pass 2^63 - 1 bytes");
    };
    for (int64_t bytes : tensor_bytes) add_bytes(bytes);
    for (int64_t bytes : workspace_bytes) add_bytes(bytes);
}

}  // namespace opgym
