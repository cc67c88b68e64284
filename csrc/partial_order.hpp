// A beginning of an order of ops, extended op by op, and what that means for memory and for the ops that may run next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "index_bits.hpp"
#include "scheduling_layout.hpp"

namespace opgym {

// Nodes by rank: by net bytes freed, most first, then by index. The best stand at the end, where most come and go.
class RankedNodes {
   public:
    struct Entry {
        int64_t net_bytes;
        int32_t node;
        bool before(const Entry& other) const {
            // Without a branch: which way it goes is a coin toss.
            return (net_bytes > other.net_bytes) | ((net_bytes == other.net_bytes) & (node < other.node));
        }
    };

    size_t size() const { return entries_.size(); }
    const Entry& operator[](size_t rank) const { return entries_[entries_.size() - 1 - rank]; }
    const Entry& last() const { return entries_.front(); }
    void insert(const Entry& entry) { entries_.insert(entries_.begin() + place(entry, 0), entry); }
    // rank: where it probably stands.
    void erase(const Entry& entry, size_t rank = 0) {
        const bool right = rank < size() && (*this)[rank].node == entry.node;
        entries_.erase(entries_.begin() + (right ? size() - 1 - rank : place(entry, 0)));
    }
    // Moves an entry to what it is with more bytes.
    void raise(const Entry& entry, int64_t net_bytes) {
        const Entry raised{net_bytes, entry.node};
        const size_t from = place(entry, 0), to = place(raised, from + 1) - 1;
        std::copy(entries_.begin() + from + 1, entries_.begin() + to + 1, entries_.begin() + from);
        entries_[to] = raised;
    }

   private:
    // Where the entries that come after one in rank end, all those before `begin` among them.
    size_t place(const Entry& entry, size_t begin) const {
        size_t size = entries_.size() - begin;
        while (size > 0) {
            const size_t half = (size + 1) / 2;
            begin += half & -static_cast<size_t>(entry.before(entries_[begin + half - 1]));
            size -= half;
        }
        return begin;
    }

    std::vector<Entry> entries_;
};

// One step costs O(degree) updates and, for each ready node that comes, goes or rises in rank, the shift of those that
// it passes. A node is an opener where some other node misses it alone: running it makes that one ready.
class PartialOrder {
   public:
    explicit PartialOrder(std::shared_ptr<const SchedulingLayout> layout);

    // Runs a node, which must be ready. Faster if it has this rank; a node in a slot mostly has the rank of the slot.
    void run(int32_t node, size_t rank = 0);

    bool is_ready(int64_t node) const { return node >= 0 && node < num_nodes() && status_[node] == kReady; }

    // Writes up to `count` ready nodes in order of rank, and returns how many: all of them, or some of each kind. Where
    // more are ready: the best ranked openers (nearly half of `count`), the nodes of lowest index that are not among
    // them (a quarter), and the best ranked of all others. For two or more, the node of best rank and the one of lowest
    // index are always there.
    int32_t best(int32_t count, int32_t* chosen) const;

    const std::shared_ptr<const SchedulingLayout>& layout() const { return layout_; }
    int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size()); }
    int32_t num_ready() const { return static_cast<int32_t>(by_rank_.size()); }
    int32_t num_done() const { return static_cast<int32_t>(order_.size()); }
    bool over() const { return by_rank_.size() == 0; }
    int64_t live_bytes() const { return live_bytes_; }
    int64_t peak_bytes() const { return peak_bytes_; }
    const std::vector<int32_t>& order() const { return order_; }
    // Memory while each op of the order ran.
    const std::vector<int64_t>& used_bytes() const { return used_bytes_; }
    const std::vector<int8_t>& status() const { return status_; }
    const NodeRecord& record(int32_t node) const { return nodes_[node]; }
    int64_t freed_bytes(int32_t node) const {
        return nodes_[node].net_bytes + layout_->arrays().allocated_bytes[node];
    }
    const IndexBits& ready() const { return ready_; }
    const RankedNodes& by_rank() const { return by_rank_; }
    int32_t first_ready() const;

   private:
    RankedNodes::Entry entry(int32_t node) const { return {nodes_[node].net_bytes, node}; }
    void leave_to(int32_t node, int32_t tensor);

    std::shared_ptr<const SchedulingLayout> layout_;
    std::vector<NodeRecord> nodes_;
    std::vector<TensorRecord> tensors_;
    std::vector<int8_t> status_;
    IndexBits ready_;
    RankedNodes by_rank_, openers_;
    std::vector<int32_t> order_;
    std::vector<int64_t> used_bytes_;
    int64_t live_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace opgym
