// A set of small integers in ascending order: bits in words, and above every 64 words a word that says which of them
// are not empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opgym {

class IndexBits {
   public:
    explicit IndexBits(size_t limit) : words_((limit + 63) / 64), above_((words_.size() + 63) / 64) {}

    void add(uint32_t index) {
        words_[index >> 6] |= uint64_t{1} << (index & 63);
        above_[index >> 12] |= uint64_t{1} << (index >> 6 & 63);
    }
    void remove(uint32_t index) {
        const uint64_t left = words_[index >> 6] &= ~(uint64_t{1} << (index & 63));
        if (left == 0) above_[index >> 12] &= ~(uint64_t{1} << (index >> 6 & 63));
    }

    // Calls visit(index) from the smallest on, until it returns false.
    template <class Visit>
    void each(Visit visit) const {
        for (size_t high = 0; high < above_.size(); ++high)
            for (uint64_t above = above_[high]; above; above &= above - 1) {
                const size_t word = high * 64 + __builtin_ctzll(above);
                for (uint64_t bits = words_[word]; bits; bits &= bits - 1)
                    if (!visit(static_cast<int32_t>(word * 64 + __builtin_ctzll(bits)))) return;
            }
    }

   private:
    std::vector<uint64_t> words_, above_;
};

}  // namespace opgym
