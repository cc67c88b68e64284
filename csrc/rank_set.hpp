// A set of small integers with "take the smallest": bits in words, and above every 64 words a word that says which of
// them are not empty. Taking and adding are a handful of instructions without a branch that depends on the data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace opgym {

// Three levels hold keys below 64^3, four below 64^4. An emptied set is ready for the next candidate as it is.
template <int Levels>
class RankSet {
    static_assert(Levels == 3 || Levels == 4);

   public:
    static constexpr uint64_t kLimit = Levels == 3 ? uint64_t{1} << 18 : uint64_t{1} << 24;

    void reserve(uint64_t keys) {
        level0_.assign((keys + 63) / 64, 0);
        level1_.assign((level0_.size() + 63) / 64, 0);
        if constexpr (Levels == 4) level2_.assign((level1_.size() + 63) / 64, 0);
        top_ = 0;
    }

    bool empty() const { return top_ == 0; }

    void clear() {
        std::fill(level0_.begin(), level0_.end(), 0);
        std::fill(level1_.begin(), level1_.end(), 0);
        std::fill(level2_.begin(), level2_.end(), 0);
        top_ = 0;
    }

    // Adds key if flag is 1, nothing if it is 0.
    void add_if(uint32_t key, uint64_t flag) {
        level0_[key >> 6] |= flag << (key & 63);
        level1_[key >> 12] |= flag << ((key >> 6) & 63);
        if constexpr (Levels == 4) {
            level2_[key >> 18] |= flag << ((key >> 12) & 63);
            top_ |= flag << (key >> 18);
        } else {
            top_ |= flag << (key >> 12);
        }
    }
    void add(uint32_t key) { add_if(key, 1); }

    // The smallest key; the set must not be empty.
    uint32_t first() const {
        uint32_t word = __builtin_ctzll(top_);
        if constexpr (Levels == 4) word = word * 64 + __builtin_ctzll(level2_[word]);
        word = word * 64 + __builtin_ctzll(level1_[word]);
        return word * 64 + __builtin_ctzll(level0_[word]);
    }

    // Removes and returns the smallest key; the set must not be empty.
    uint32_t take_first() {
        uint32_t word2 = __builtin_ctzll(top_);
        if constexpr (Levels == 4) word2 = word2 * 64 + __builtin_ctzll(level2_[word2]);
        const uint64_t bits1 = level1_[word2];
        const uint32_t word = word2 * 64 + __builtin_ctzll(bits1);
        const uint64_t bits0 = level0_[word];
        const uint32_t key = word * 64 + __builtin_ctzll(bits0);
        const uint64_t left0 = bits0 & (bits0 - 1);
        level0_[word] = left0;
        const uint64_t left1 = bits1 & (bits1 - (left0 == 0));  // its lowest bit is the word just emptied
        level1_[word2] = left1;
        if constexpr (Levels == 4) {
            const uint64_t bits2 = level2_[word2 >> 6];
            const uint64_t left2 = bits2 & (bits2 - (left1 == 0));
            level2_[word2 >> 6] = left2;
            top_ &= top_ - (left2 == 0);
        } else {
            top_ &= top_ - (left1 == 0);
        }
        return key;
    }

   private:
    std::vector<uint64_t> level0_, level1_, level2_;
    uint64_t top_ = 0;
};

}  // namespace opgym
