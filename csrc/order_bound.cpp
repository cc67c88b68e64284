#include "order_bound.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace opgym {
namespace {

// Ops are taken in blocks of this many bits, so that memory grows with the graph and not with its square.
constexpr int32_t kWords = 8;
constexpr int32_t kBlock = 64 * kWords;
using Bits = std::array<uint64_t, kWords>;

class CutBlocks {
   public:
    explicit CutBlocks(const Graph& graph) : g_(graph), upto_(graph.num_ops), from_(graph.num_ops), cut_(graph.num_ops) {}

    std::vector<int64_t> run() {
        for (int32_t op = 0; op < g_.num_ops; ++op)
            if (!g_.is_variable[op]) add_own(op);
        for (begin_ = 0; begin_ < g_.num_ops; begin_ += kBlock) {
            end_ = std::min(begin_ + kBlock, g_.num_ops);
            find_ancestors();
            find_descendants();
            for (int32_t t = g_.num_sources; t < g_.num_tensors; ++t)
                if (g_.is_dynamic_at_home(t)) add_tensor(t);
            for (int32_t op = begin_; op < end_; ++op)
                if (g_.may_run_in_place(op)) take_over(op);
        }
        for (int32_t op = 0; op < g_.num_ops; ++op)
            if (g_.is_variable[op]) cut_[op] = 0;
        return std::move(cut_);
    }

   private:
    static bool has(const Bits& bits, int32_t i) { return bits[i / 64] >> (i % 64) & 1; }
    static void set(Bits& bits, int32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }
    static void merge(Bits& into, const Bits& other) {
        for (int32_t w = 0; w < kWords; ++w) into[w] |= other[w];
    }

    void add_own(int32_t op) {
        cut_[op] += g_.workspace_bytes[op];
        for (int32_t t = g_.output_ptr[op]; t < g_.output_ptr[op + 1]; ++t)
            if (g_.is_dynamic_at_home(t)) cut_[op] += g_.tensor_bytes[t];
    }

    // upto_[u]: the ops of the block that are u or come before it in every order.
    void find_ancestors() {
        for (int32_t u = begin_; u < g_.num_ops; ++u) {
            upto_[u] = {};
            for (int32_t t : g_.inputs(u))
                if (g_.producer[t] >= begin_) merge(upto_[u], upto_[g_.producer[t]]);
            if (u < end_) set(upto_[u], u - begin_);
        }
    }

    // from_[u]: the ops of the block that are u or come after it in every order.
    void find_descendants() {
        for (int32_t u = end_; u-- > 0;) {
            from_[u] = {};
            for (int32_t t = g_.output_ptr[u]; t < g_.output_ptr[u + 1]; ++t)
                for (int32_t reader : g_.consumers(t)) {
                    if (reader >= end_) break;
                    merge(from_[u], from_[reader]);
                }
            if (u >= begin_) set(from_[u], u - begin_);
        }
    }

    void add_tensor(int32_t tensor) {
        const int32_t producer = g_.producer[tensor];
        if (producer >= end_) return;
        Bits live = from_[producer];
        if (producer >= begin_) live[(producer - begin_) / 64] &= ~(uint64_t{1} << ((producer - begin_) % 64));
        if (!g_.is_output[tensor]) {
            Bits read = {};
            for (int32_t reader : g_.consumers(tensor))
                if (reader >= begin_) merge(read, upto_[reader]);
            for (int32_t w = 0; w < kWords; ++w) live[w] &= read[w];
        }
        for (int32_t w = 0; w < kWords; ++w)
            for (uint64_t bits = live[w]; bits; bits &= bits - 1)
                cut_[begin_ + 64 * w + std::countr_zero(bits)] += g_.tensor_bytes[tensor];
    }

    // An op may write over an input unless somebody else reads that later in every order.
    void take_over(int32_t op) {
        for (int32_t t : g_.inputs(op)) {
            if (!g_.may_take_over(op, t, /*at_home=*/true)) continue;
            const auto readers = g_.consumers(t);
            if (std::none_of(readers.begin(), readers.end(),
                             [&](int32_t reader) { return reader > op && has(upto_[reader], op - begin_); })) {
                cut_[op] -= g_.tensor_bytes[t];
                return;
            }
        }
    }

    const Graph& g_;
    std::vector<Bits> upto_, from_;
    std::vector<int64_t> cut_;
    int32_t begin_ = 0, end_ = 0;
};

}  // namespace

std::vector<int64_t> cut_bytes(const Graph& graph) { return CutBlocks(graph).run(); }

int64_t end_bytes(const Graph& g) {
    int64_t kept = 0;
    for (int32_t t = g.num_sources; t < g.num_tensors; ++t)
        if (g.is_output[t] && g.is_dynamic_at_home(t)) kept += g.tensor_bytes[t];
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int32_t op = 0; op < g.num_ops; ++op) {
        if (g.is_variable[op]) continue;
        bool read = false;
        int64_t needed = g.workspace_bytes[op], saved = 0;
        for (int32_t t = g.output_ptr[op]; t < g.output_ptr[op + 1]; ++t) {
            read |= !g.consumers(t).empty();
            if (!g.is_output[t] && g.is_dynamic_at_home(t)) needed += g.tensor_bytes[t];
        }
        if (read) continue;
        for (int32_t t : g.inputs(op)) {
            if (!g.is_output[t] && g.is_dynamic_at_home(t)) needed += g.tensor_bytes[t];
            if (g.may_run_in_place(op) && g.may_take_over(op, t, /*at_home=*/true)) saved = g.tensor_bytes[t];
        }
        least = std::min(least, needed - saved);
    }
    return least == std::numeric_limits<int64_t>::max() ? kept : kept + least;
}

}  // namespace opgym
