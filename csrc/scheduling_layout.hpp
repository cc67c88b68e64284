// A graph as an order of its ops meets it: what never changes in an episode.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace opgym {

// A node is an op to order. A held tensor takes memory from when its op runs until the last of its readers has run.
struct SchedulingArrays {
    std::vector<int32_t> child_ptr, child;  // nodes that read from each node, ascending, each once
    std::vector<int32_t> read_ptr, read;    // held tensors that each node reads, each once
    std::vector<int64_t> held_bytes;        // of each held tensor, more than 0
    std::vector<int64_t> allocated_bytes;   // outputs of each node
    std::vector<int64_t> needed_bytes;      // those and its workspace
    std::vector<int64_t> unread_bytes;      // of its outputs, what is freed when it ends
    // Size of the held tensors that a node may write its only output over, once it is the last that reads one; -1: none.
    std::vector<int64_t> takeover_bytes;

    bool operator==(const SchedulingArrays&) const = default;
};

// What a node is.
enum NodeStatus : int8_t { kWaiting = 0, kReady = 1, kDone = 2 };

// What changes about a node in an episode, in half a line of the cache.
struct NodeRecord {
    int64_t net_bytes;     // freed when it ends - allocated
    int64_t needed_bytes;  // taken when it starts
    int32_t last_uses;     // held tensors that it would be the last to read
    int32_t unlocks;       // nodes that miss only it
    int32_t missing;       // nodes that it reads from and that have not run
    // While it waits, the exclusive or of those nodes: of one that is left, the node itself. Then the step at which it
    // became ready.
    int32_t link;
};
static_assert(sizeof(NodeRecord) == 32);

struct TensorRecord {
    int32_t readers_left;
    int32_t readers_xor;  // exclusive or of those readers
};

class SchedulingLayout {
   public:
    // Throws std::invalid_argument if lengths or indices do not fit together, nodes read from one another in a cycle, or
    // bytes are negative, free more than is allocated or could pass 2^63 - 1 in a sum.
    explicit SchedulingLayout(SchedulingArrays arrays);

    const SchedulingArrays& arrays() const { return arrays_; }
    int32_t num_nodes() const { return static_cast<int32_t>(arrays_.needed_bytes.size()); }
    std::span<const int32_t> children(int32_t node) const { return row(arrays_.child_ptr, arrays_.child, node); }
    std::span<const int32_t> reads(int32_t node) const { return row(arrays_.read_ptr, arrays_.read, node); }

    // Before anything has run.
    const std::vector<NodeRecord>& nodes() const { return nodes_; }
    const std::vector<TensorRecord>& tensors() const { return tensors_; }

    // Makes a node the last reader of a held tensor, which it will free.
    void leave_to(NodeRecord& record, int32_t node, int64_t held_bytes) const {
        record.net_bytes += held_bytes;
        ++record.last_uses;
        // Only one input is taken over.
        if (arrays_.takeover_bytes[node] == held_bytes && record.needed_bytes == arrays_.needed_bytes[node])
            record.needed_bytes -= arrays_.allocated_bytes[node];
    }

   private:
    static std::span<const int32_t> row(const std::vector<int32_t>& ptr, const std::vector<int32_t>& items,
                                        int32_t node) {
        return {items.data() + ptr[node], items.data() + ptr[node + 1]};
    }

    void check_order() const;

    SchedulingArrays arrays_;
    std::vector<NodeRecord> nodes_;
    std::vector<TensorRecord> tensors_;
};

}  // namespace opgym
