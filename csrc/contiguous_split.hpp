// The best contiguous split of a graph over a pipeline of devices (Tarnawski et al. 2020, section 5): a dynamic program
// over pairs of nested down-sets.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "contiguous_down_sets.hpp"

namespace opgym {

inline constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

// What the load and the memory of a set of blocks follow from. Device classes are groups of equal devices.
struct SplitCosts {
    int num_classes = 0;
    std::vector<int32_t> class_count;      // [classes] devices of each class
    std::vector<int64_t> class_capacity;   // [classes] bytes
    std::vector<int64_t> block_ns;         // [blocks, classes]; -1: not allowed there
    std::vector<int64_t> block_bytes;      // [blocks] bytes that stay where the block is
    std::vector<int32_t> tensor_producer;  // [tensors] block, or -1: resident wherever it is read
    std::vector<int64_t> tensor_bytes;     // [tensors]
    std::vector<int64_t> to_device_ns;     // [tensors, classes] paid by a device that reads it from outside
    std::vector<int64_t> from_device_ns;   // [tensors, classes] paid by its producer's device if read outside
    std::vector<int32_t> reader_ptr;       // [tensors + 1]
    std::vector<int32_t> reader;           // blocks that read each tensor, each once, the producer left out

    // Throws std::invalid_argument if the arrays do not fit together or a total passes 2^62.
    void check(int32_t num_blocks) const;
};

struct Split {
    int64_t load_ns = kUnbounded;   // kUnbounded: no contiguous split fits
    bool finished = true;           // whether the search was exhaustive
    std::vector<int32_t> stage;     // [blocks] stage of the pipeline, from its start
    std::vector<int32_t> stage_class;  // [stages] device class
};

// Finds the split with the least largest load; ties are broken in a fixed order. `interrupted` is asked several times
// a second; when it says yes, the best split found so far is returned.
Split best_contiguous_split(const DownSets& sets, const SplitCosts& costs, const std::function<bool()>& interrupted);

}  // namespace opgym
