#include "contiguous_down_sets.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace opgym {
namespace {

// A fixed pseudo-random number for each block; the hash of a set is the xor of its blocks' numbers.
uint64_t block_hash(uint64_t block) {  // splitmix64
    uint64_t z = (block + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t bit(int32_t block) { return uint64_t{1} << (block & 63); }

// Sets of one size by content: open addressing over positions in `hashes`.
class SetTable {
   public:
    SetTable(const std::vector<uint64_t>& bits, int64_t words) : bits_(bits), words_(words) {}

    // Starts a new size whose first set will have the number `first`.
    void restart(int64_t first) {
        first_ = first;
        hashes_.clear();
        std::fill(slots_.begin(), slots_.end(), -1);
    }

    // Whether the set is known; if not, it is noted as the next one, which the caller must append.
    bool knows_or_notes(const uint64_t* wanted, uint64_t hash) {
        if (2 * (hashes_.size() + 1) > slots_.size()) grow();
        const size_t mask = slots_.size() - 1;
        size_t slot = hash & mask;
        for (; slots_[slot] >= 0; slot = (slot + 1) & mask) {
            const int64_t position = slots_[slot];
            const uint64_t* known = bits_.data() + (first_ + position) * words_;
            if (hashes_[position] == hash && std::equal(wanted, wanted + words_, known)) return true;
        }
        slots_[slot] = static_cast<int64_t>(hashes_.size());
        hashes_.push_back(hash);
        return false;
    }

   private:
    void grow() {
        slots_.assign(std::max<size_t>(64, 2 * slots_.size()), -1);
        const size_t mask = slots_.size() - 1;
        for (size_t i = 0; i < hashes_.size(); ++i) {
            size_t slot = hashes_[i] & mask;
            while (slots_[slot] >= 0) slot = (slot + 1) & mask;
            slots_[slot] = static_cast<int64_t>(i);
        }
    }

    const std::vector<uint64_t>& bits_;
    int64_t words_;
    int64_t first_ = 0;
    std::vector<uint64_t> hashes_;
    std::vector<int64_t> slots_;
};

}  // namespace

DownSets::DownSets(std::span<const int32_t> child_ptr, std::span<const int32_t> child, int64_t limit,
                   int64_t limit_words) {
    if (child_ptr.empty() || child_ptr.front() != 0 || child_ptr.back() != static_cast<int64_t>(child.size()) ||
        !std::is_sorted(child_ptr.begin(), child_ptr.end()))
        throw std::invalid_argument("child_ptr is not a CSR pointer of child");
    num_blocks_ = static_cast<int32_t>(child_ptr.size()) - 1;
    words_ = std::max<int64_t>(1, (num_blocks_ + 63) / 64);
    limit = std::min<int64_t>(limit, std::numeric_limits<int32_t>::max());
    std::vector<std::vector<int32_t>> parents(num_blocks_);
    for (int32_t u = 0; u < num_blocks_; ++u)
        for (int32_t i = child_ptr[u]; i < child_ptr[u + 1]; ++i) {
            if (child[i] < 0 || child[i] >= num_blocks_) throw std::invalid_argument("an edge leads to no block");
            parents[child[i]].push_back(u);
        }

    // Blocks outside a set whose parents are all inside, for the sets of one size and of the next.
    std::vector<uint64_t> addable(words_, 0), next_addable;
    for (int32_t b = 0; b < num_blocks_; ++b)
        if (parents[b].empty()) addable[b >> 6] |= bit(b);
    bits_.assign(words_, 0);
    steps_.push_back({-1, -1});
    count_ = 1;
    SetTable table(bits_, words_);
    std::vector<uint64_t> hashes{0}, grown(words_);

    for (int64_t begin = 0, end = 1; begin < end; begin = end, end = count_) {
        table.restart(end);
        next_addable.clear();
        std::vector<uint64_t> next_hashes;
        for (int64_t set = begin; set < end; ++set)
            for (int64_t w = 0; w < words_; ++w)
                for (uint64_t rest = addable[(set - begin) * words_ + w]; rest != 0; rest &= rest - 1) {
                    const auto block = static_cast<int32_t>(64 * w + std::countr_zero(rest));
                    std::copy_n(bits_.data() + set * words_, words_, grown.data());
                    grown[w] |= bit(block);
                    const uint64_t hash = hashes[set - begin] ^ block_hash(block);
                    if (table.knows_or_notes(grown.data(), hash)) continue;
                    if (count_ >= limit || (count_ + 1) * words_ > limit_words) return;
                    ++count_;
                    bits_.insert(bits_.end(), grown.begin(), grown.end());
                    steps_.push_back({block, static_cast<int32_t>(set)});
                    next_hashes.push_back(hash);
                    const auto old = addable.begin() + (set - begin) * words_;
                    next_addable.insert(next_addable.end(), old, old + words_);
                    uint64_t* mine = next_addable.data() + next_addable.size() - words_;
                    mine[w] &= ~bit(block);
                    for (int32_t i = child_ptr[block]; i < child_ptr[block + 1]; ++i) {
                        const int32_t c = child[i];
                        if (std::all_of(parents[c].begin(), parents[c].end(),
                                        [&](int32_t p) { return grown[p >> 6] & bit(p); }))
                            mine[c >> 6] |= bit(c);
                    }
                }
        addable.swap(next_addable);
        hashes.swap(next_hashes);
    }
    // Every block can be added at some time, unless a cycle keeps it out.
    for (int32_t b = 0; b < num_blocks_; ++b)
        if (!contains(count_ - 1, b)) throw std::invalid_argument("the graph of blocks has a cycle");
    complete_ = true;
}

}  // namespace opgym
