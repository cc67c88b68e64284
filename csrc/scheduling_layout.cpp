#include "scheduling_layout.hpp"

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
}

}  // namespace

SchedulingLayout::SchedulingLayout(SchedulingArrays arrays) : arrays_(std::move(arrays)) {
    const SchedulingArrays& a = arrays_;
    const size_t nodes = a.needed_bytes.size();
    if (nodes == 0) throw std::invalid_argument("there is no node to order");
    for (const auto* bytes : {&a.allocated_bytes, &a.unread_bytes, &a.takeover_bytes})
        if (bytes->size() != nodes) throw std::invalid_argument("sizes are not given once per node");
    check_rows(a.child_ptr, a.child, nodes, nodes, "child");
    check_rows(a.read_ptr, a.read, nodes, a.held_bytes.size(), "read");

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
    for (const NodeRecord& record : nodes_)
        if (record.missing == 1) ++nodes_[record.link].unlocks;
    // Who reads a tensor alone frees it, whatever runs before.
    for (size_t tensor = 0; tensor < tensors_.size(); ++tensor)
        if (tensors_[tensor].readers_left == 1) {
            const int32_t node = tensors_[tensor].readers_xor;
            leave_to(nodes_[node], node, a.held_bytes[tensor]);
        }
}

}  // namespace opgym
