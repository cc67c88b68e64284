// Load and memory of the blocks between two nested down-sets, without looking at every block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "contiguous_down_sets.hpp"

namespace opgym {

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

    std::span<const int32_t> readers(int32_t tensor) const {
        return {reader.data() + reader_ptr[tensor], static_cast<size_t>(reader_ptr[tensor + 1] - reader_ptr[tensor])};
    }

    // Throws std::invalid_argument if the arrays do not fit together or a total passes 2^62.
    void check(int32_t num_blocks) const;
};

// A stage is what lies between two nested down-sets: `target` without `before`.
class StageLoads {
   public:
    StageLoads(const DownSets& sets, const SplitCosts& costs);

    // Work in a down-set with every block on its fastest class: no stage takes less than the difference of two.
    int64_t fastest_ns(int64_t set) const { return fastest_ns_[set]; }
    int64_t compute_ns(int64_t before, int64_t target, int c) const {
        return compute_ns_[target * classes_ + c] - compute_ns_[before * classes_ + c];
    }
    // Whether every block of the stage may run on a class, and what they keep fits into a device.
    bool fits(int64_t before, int64_t target, int c) const;
    // Time of the stage's transfers on each class.
    void transfer_ns(int64_t before, int64_t target, std::span<int64_t> by_class) const;
    // What the stages after a down-set pay at least for the tensors that cross its edge, on whatever classes: each is
    // brought in by one of them, or written out if it goes backward.
    int64_t least_later_transfer_ns(int64_t set) const;
    // What moving every such tensor in and out would cost, summed over classes.
    int64_t edge_ns(int64_t set) const;

   private:
    std::span<const int32_t> cut(int64_t set) const {
        return {cut_.data() + cut_ptr_[set], static_cast<size_t>(cut_ptr_[set + 1] - cut_ptr_[set])};
    }
    bool crosses(int32_t tensor, int64_t set) const;
    bool in_stage(int32_t block, int64_t before, int64_t target) const {
        return sets_.contains(target, block) && !sets_.contains(before, block);
    }
    bool read_in_stage(int32_t tensor, int64_t before, int64_t target) const;
    void sum_up_blocks();
    void collect_cuts();

    const DownSets& sets_;
    const SplitCosts& costs_;
    int64_t classes_;
    std::vector<int64_t> fastest_ns_;   // [sets]
    std::vector<int64_t> compute_ns_;   // [sets, classes]
    std::vector<int32_t> forbidden_;    // [sets, classes] blocks that cannot run on a class
    std::vector<int64_t> own_bytes_;    // [sets] kept by blocks, and by source tensors with one reader
    std::vector<int64_t> shared_bytes_;  // [sets] of source tensors with more readers, once per reader
    std::vector<int32_t> shared_;       // source tensors with more than one reader
    // Tensors with ends on both sides of a down-set's edge whose transfer takes time.
    std::vector<int64_t> cut_ptr_;  // [sets + 1]
    std::vector<int32_t> cut_;
};

}  // namespace opgym
