#include "scheduling_layout.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace opgym {
namespace {

void check_rows(const std::vector<int32_t>& ptr, const std::vector<int32_t>& items, size_t nodes, size_t limit,
                const char* name) {
    bool right = ptr.size() == nodes + 1 && ptr.front() == 0 && static_cast<size_t>(ptr.back()) == items.size();
    for (size_t i = 0; right && i < nodes; ++i) right = ptr[i] <= ptr[i + 1];
    for (size_t i = 0; right && i < items.size(); ++i) right = items[i] >= 0 && static_cast<size_t>(items[i]) < limit;
    if (!right) throw std::invalid_argument(std::string(name) + " does not hold one row of indices per node");
    for (size_t i = 0; i < nodes; ++i)
        if (std::adjacent_find(items.begin() + ptr[i], items.begin() + ptr[i + 1], std::greater_equal<>()) !=
            items.begin() + ptr[i + 1])
            throw std::invalid_argument(std::string(name) + " does not name each in a row once, in ascending order");
}

// So that no sum of an episode passes an int64: what is live is at most all that is allocated, and what is used that
// and one workspace. Ranks rely on it, too: what a node frees only grows while it waits.
void check_bytes(const SchedulingArrays& a) {
    __int128 allocated = 0, freed = 0;
    int64_t workspace = 0;
    for (size_t node = 0; node < a.needed_bytes.size(); ++node) {
        if (a.unread_bytes[node] < 0 || a.allocated_bytes[node] < 0 || a.needed_bytes[node] < a.allocated_bytes[node])
            throw std::invalid_argument("a node has negative bytes, or needs less than it allocates");
        allocated += a.allocated_bytes[node];
        freed += a.unread_bytes[node];
        workspace = std::max(workspace, a.needed_bytes[node] - a.allocated_bytes[node]);
    }
    for (const int64_t bytes : a.held_bytes) {
        if (bytes <= 0) throw std::invalid_argument("a held tensor has no bytes");
        freed += bytes;
    }
    if (freed > allocated) throw std::invalid_argument("nodes free more bytes than they allocate");
    if (allocated + workspace > std::numeric_limits<int64_t>::max())
        throw std::invalid_argument("all nodes together pass 2^63 - 1 bytes");
}

}  // namespace

SchedulingLayout::SchedulingLayout(SchedulingArrays arrays) : arrays_(std::move(arrays)) {
    const SchedulingArrays& a = arrays_;
    const size_t nodes = a.needed_bytes.size();
    if (nodes == 0) throw std::invalid_argument("there is no node to order");
    for (const auto* bytes : {&a.allocated_bytes, &a.unread_bytes, &a.takeover_bytes})
        if (bytes->size() != nodes) throw std::invalid_argument("sizes are not given once per node");
    if (nodes > std::numeric_limits<int32_t>::max() || a.held_bytes.size() > std::numeric_limits<int32_t>::max())
        throw std::invalid_argument("there are more nodes or tensors than an int32 can name");
    check_rows(a.child_ptr, a.child, nodes, nodes, "child");
    check_rows(a.read_ptr, a.read, nodes, a.held_bytes.size(), "read");
    check_bytes(a);

    nodes_.assign(nodes, NodeRecord{});
    tensors_.assign(a.held_bytes.size(), TensorRecord{});
    for (int32_t node = 0; node < num_nodes(); ++node) {
        nodes_[node].net_bytes = a.unread_bytes[node] - a.allocated_bytes[node];
        nodes_[node].needed_bytes = a.needed_bytes[node];
        for (const int32_t child : children(node)) {
            ++nodes_[child].missing;
            nodes_[child].link ^= node;
        }
        for (const int32_t tensor : reads(node)) {
            ++tensors_[tensor].readers_left;
            tensors_[tensor].readers_xor ^= node;
        }
    }
    check_order();
    for (const NodeRecord& record : nodes_)
        if (record.missing == 1) ++nodes_[record.link].unlocks;
    // Who reads a tensor alone frees it, whatever runs before.
    for (size_t tensor = 0; tensor < tensors_.size(); ++tensor)
        if (tensors_[tensor].readers_left == 1) {
            const int32_t node = tensors_[tensor].readers_xor;
            leave_to(nodes_[node], node, a.held_bytes[tensor]);
        }
}

void SchedulingLayout::check_order() const {
    std::vector<int32_t> missing, ready;
    for (int32_t node = 0; node < num_nodes(); ++node) {
        missing.push_back(nodes_[node].missing);
        if (missing[node] == 0) ready.push_back(node);
    }
    for (size_t next = 0; next < ready.size(); ++next)
        for (const int32_t child : children(ready[next]))
            if (--missing[child] == 0) ready.push_back(child);
    if (ready.size() != nodes_.size()) throw std::invalid_argument("nodes read from one another in a cycle");
}

}  // namespace opgym
