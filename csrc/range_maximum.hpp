// Maxima of ranges of an array whose stretches change: sixteen entries to a block, sixteen blocks to one above.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace opgym {

class RangeMaximum {
   public:
    // Below every value; the maximum of an empty range.
    static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

    void assign(std::vector<int64_t> values) {
        levels_.clear();
        levels_.push_back(std::move(values));
        while (levels_.back().size() > kFan) levels_.emplace_back((levels_.back().size() + kFan - 1) / kFan);
        refresh(0, static_cast<int64_t>(levels_[0].size()));
    }

    int64_t operator[](int64_t i) const { return levels_[0][i]; }

    // Changes one value; the blocks above know of it after refresh().
    void set(int64_t i, int64_t value) { levels_[0][i] = value; }

    // Makes the blocks above [begin, end) agree with its values.
    void refresh(int64_t begin, int64_t end) {
        for (size_t level = 1; level < levels_.size() && begin < end; ++level) {
            begin /= kFan;
            end = (end + kFan - 1) / kFan;
            const std::vector<int64_t>& below = levels_[level - 1];
            for (int64_t block = begin; block < end; ++block) {
                const int64_t last = std::min<int64_t>((block + 1) * kFan, static_cast<int64_t>(below.size()));
                levels_[level][block] = *std::max_element(below.begin() + block * kFan, below.begin() + last);
            }
        }
    }

    // The largest value in [begin, end).
    int64_t maximum(int64_t begin, int64_t end) const {
        int64_t best = kNone;
        for (size_t level = 0;; ++level) {
            const int64_t* values = levels_[level].data();
            const bool scan = level + 1 == levels_.size() || end - begin <= 2 * kFan;
            const int64_t head = scan ? end : (begin + kFan - 1) / kFan * kFan;
            const int64_t tail = scan ? end : end / kFan * kFan;
            for (int64_t i = begin; i < head; ++i) best = std::max(best, values[i]);
            for (int64_t i = tail; i < end; ++i) best = std::max(best, values[i]);
            if (scan) return best;
            begin = head / kFan;
            end = tail / kFan;
        }
    }

    // The first position of the largest value of all.
    int64_t argmax() const {
        int64_t at = 0;
        for (size_t level = levels_.size(); level-- > 0;) {
            const int64_t begin = at * (level + 1 == levels_.size() ? 0 : kFan);
            const auto size = static_cast<int64_t>(levels_[level].size());
            const int64_t end = level + 1 == levels_.size() ? size : std::min(begin + kFan, size);
            at = std::max_element(levels_[level].begin() + begin, levels_[level].begin() + end) - levels_[level].begin();
        }
        return at;
    }

   private:
    static constexpr int64_t kFan = 16;
    std::vector<std::vector<int64_t>> levels_;  // [0]: the values; [k + 1]: maxima of the blocks of [k]
};

}  // namespace opgym
