// All down-sets of an acyclic graph of blocks: the states of the contiguous dynamic program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace opgym {

// Down-sets are numbered by size; 0 is the empty set and count() - 1 the whole graph.
class DownSets {
   public:
    // child_ptr, child: CSR of the edges between blocks. Enumeration stops past `limit` sets or `limit_words` words.
    // Throws std::invalid_argument if the graph has a cycle or an edge leaves it.
    DownSets(std::span<const int32_t> child_ptr, std::span<const int32_t> child, int64_t limit, int64_t limit_words);

    // How a set was first found: a smaller set and one more block.
    struct Step {
        int32_t block;
        int32_t set;
    };

    int32_t num_blocks() const { return num_blocks_; }
    // Sets found; all of them if complete().
    int64_t count() const { return count_; }
    bool complete() const { return complete_; }
    // Not of the empty set.
    const Step& step(int64_t set) const { return steps_[set]; }
    bool contains(int64_t set, int32_t block) const {
        return bits_[set * words_ + (block >> 6)] >> (block & 63) & 1;
    }
    // The blocks of a set, one bit each.
    std::span<const uint64_t> bits(int64_t set) const {
        return {bits_.data() + set * words_, static_cast<size_t>(words_)};
    }

   private:
    int32_t num_blocks_ = 0;
    int64_t words_ = 0;
    int64_t count_ = 0;
    bool complete_ = false;
    std::vector<uint64_t> bits_;  // [sets, words]
    std::vector<Step> steps_;      // [sets]
};

}  // namespace opgym
