// The ordering problem as exact search sees it: items to run, tensors that live between them, and who comes before
// whom.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace opgym {

// A square matrix of bits, one row per item.
class BitRows {
   public:
    explicit BitRows(int32_t size = 0) : words_((size + 63) / 64), bits_(static_cast<size_t>(size) * words_, 0) {}

    int32_t words() const { return words_; }
    uint64_t* row(int32_t i) { return bits_.data() + static_cast<size_t>(i) * words_; }
    const uint64_t* row(int32_t i) const { return bits_.data() + static_cast<size_t>(i) * words_; }
    bool has(int32_t i, int32_t j) const { return row(i)[j / 64] >> (j % 64) & 1; }
    void set(int32_t i, int32_t j) { row(i)[j / 64] |= uint64_t{1} << (j % 64); }
    void merge(int32_t into, int32_t from) {
        for (int32_t w = 0; w < words_; ++w) row(into)[w] |= row(from)[w];
    }
    int32_t count(int32_t i) const {
        int32_t sum = 0;
        for (int32_t w = 0; w < words_; ++w) sum += std::popcount(row(i)[w]);
        return sum;
    }

   private:
    int32_t words_;
    std::vector<uint64_t> bits_;
};

template <class Visit>
void for_each_bit(const uint64_t* bits, int32_t words, Visit visit) {
    for (int32_t w = 0; w < words; ++w)
        for (uint64_t left = bits[w]; left; left &= left - 1) visit(64 * w + std::countr_zero(left));
}

// Lists of numbers, one after the other in memory.
struct Lists {
    std::vector<int32_t> begin{0}, item;

    std::span<const int32_t> operator[](int32_t i) const {
        return {item.data() + begin[i], item.data() + begin[i + 1]};
    }
    void close() { begin.push_back(static_cast<int32_t>(item.size())); }
    // The lists of what names each of `size` numbers.
    Lists inverse(int32_t size) const;
};

// A tensor is live from when the first of its starters runs (from the beginning if it has none) until the last of its
// enders has run (to the end if it has none). So the same problem backwards in time is a model too: starters and enders
// change places. While an item runs, what is live before it, what it starts, and its passing bytes are in memory.
struct OrderModel {
    explicit OrderModel(const Graph& graph);

    // The same problem with time running backwards: an order of it, reversed, has the same peak here.
    OrderModel backwards() const;
    // Adds the pairs (first, second) and all that follows from them. False if they contradict each other.
    bool add_precedences(std::span<const std::pair<int32_t, int32_t>> pairs);
    // Of each item, those that come immediately before it: no other one comes between them.
    Lists direct_before() const;

    int32_t size = 0;                    // items
    std::vector<int32_t> op;             // [items] of the graph
    std::vector<int64_t> bytes;          // [tensors]
    Lists starters, enders;              // of each tensor
    Lists started_by, ended_by;          // tensors of each item
    std::vector<int64_t> passing_bytes;  // [items] workspace, unread outputs
    BitRows before, after;               // [items] items that come before and after in every order
    // In-place items: the output takes over one of these tensors if, forwards in time, that is its last use; that saves
    // its bytes. All of them are of the size of the output.
    Lists may_take_over;
    std::vector<int64_t> take_over_bytes;  // [items]
    bool is_backwards = false;

   private:
    std::vector<std::pair<int32_t, int32_t>> precedences_;  // from which `before` follows
};

}  // namespace opgym
