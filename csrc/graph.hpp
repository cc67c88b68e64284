// The frozen computation graph, as the core sees it: arrays in CSR form, ops in topological order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace opgym {

// What a caller hands in; see graphs/graph.py for the meaning of each array.
struct GraphArrays {
    std::vector<int32_t> input_ptr, input_tensor, output_ptr, update_of;
    std::vector<int64_t> tensor_bytes, workspace_bytes;
    std::vector<uint8_t> is_variable, is_output, elementwise;
    bool in_place = false;
};

// Immutable after construction. Tensors 0 .. num_sources - 1 have no producer; the outputs of op v are the range
// output_ptr[v] .. output_ptr[v + 1].
class Graph : public GraphArrays {
   public:
    // Throws std::invalid_argument if the arrays do not describe such a graph.
    explicit Graph(GraphArrays arrays);

    int32_t num_ops = 0;
    int32_t num_tensors = 0;
    int32_t num_sources = 0;
    std::vector<int32_t> producer;                   // [tensors] op, or -1
    std::vector<int32_t> consumer_ptr, consumer_op;  // CSR: ops that read a tensor, ascending
    // Sum of all tensor and workspace bytes: no device can ever hold more.
    int64_t total_bytes = 0;

    std::span<const int32_t> inputs(int32_t op) const {
        return {input_tensor.data() + input_ptr[op], input_tensor.data() + input_ptr[op + 1]};
    }
    std::span<const int32_t> consumers(int32_t tensor) const {
        return {consumer_op.data() + consumer_ptr[tensor], consumer_op.data() + consumer_ptr[tensor + 1]};
    }
    int32_t num_outputs(int32_t op) const { return output_ptr[op + 1] - output_ptr[op]; }
    bool is_source(int32_t tensor) const { return tensor < num_sources; }
    bool is_update(int32_t op) const { return update_of[op] >= 0 && !is_variable[op]; }

    // Whether a tensor takes dynamic memory on its producer's device. Sources and variables are resident, and an
    // update writes into its variable's storage.
    bool is_dynamic_at_home(int32_t tensor) const {
        return !is_source(tensor) && !is_variable[producer[tensor]] && !is_update(producer[tensor]);
    }

    // Whether op's output may take over the buffer of its input, as far as the graph alone can tell. `at_home`: the op
    // runs on the device of the input's producer (a copy of a resident tensor may be taken over, the original not).
    bool may_take_over(int32_t op, int32_t input, bool at_home) const {
        return !is_output[input] && !is_source(input) && (!at_home || is_dynamic_at_home(input)) &&
               tensor_bytes[input] == tensor_bytes[output_ptr[op]];
    }
    bool may_run_in_place(int32_t op) const {
        return in_place && elementwise[op] && num_outputs(op) == 1 && !is_update(op) && !is_variable[op];
    }
};

}  // namespace opgym
