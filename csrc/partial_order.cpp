#include "partial_order.hpp"

#include <utility>

namespace opgym {

PartialOrder::PartialOrder(std::shared_ptr<const SchedulingLayout> layout)
    : layout_(std::move(layout)),
      nodes_(layout_->nodes()),
      tensors_(layout_->tensors()),
      status_(nodes_.size(), kWaiting),
      ready_(nodes_.size()) {
    for (int32_t node = 0; node < num_nodes(); ++node) {
        if (nodes_[node].missing != 0) continue;
        status_[node] = kReady;
        ready_.add(node);
        by_rank_.insert(entry(node));
        if (nodes_[node].unlocks > 0) openers_.insert(entry(node));
    }
}

void PartialOrder::run(int32_t node, size_t rank) {
    const SchedulingLayout& layout = *layout_;
    const NodeRecord& record = nodes_[node];
    const int64_t used = live_bytes_ + record.needed_bytes;
    peak_bytes_ = std::max(peak_bytes_, used);
    used_bytes_.push_back(used);
    order_.push_back(node);
    status_[node] = kDone;
    ready_.remove(node);
    by_rank_.erase(entry(node), rank);
    if (record.unlocks > 0) openers_.erase(entry(node));
    live_bytes_ -= record.net_bytes;

    for (const int32_t tensor : layout.reads(node)) {
        TensorRecord& held = tensors_[tensor];
        held.readers_xor ^= node;
        if (--held.readers_left == 1) leave_to(held.readers_xor, tensor);
    }
    for (const int32_t child : layout.children(node)) {
        NodeRecord& reader = nodes_[child];
        reader.link ^= node;
        if (--reader.missing == 0) {
            reader.link = num_done();
            status_[child] = kReady;
            ready_.add(child);
            by_rank_.insert(entry(child));
            if (reader.unlocks > 0) openers_.insert(entry(child));
        } else if (reader.missing == 1) {
            const int32_t parent = reader.link;
            if (nodes_[parent].unlocks++ == 0 && status_[parent] == kReady) openers_.insert(entry(parent));
        }
    }
}

void PartialOrder::leave_to(int32_t node, int32_t tensor) {
    const int64_t bytes = layout_->arrays().held_bytes[tensor];
    NodeRecord& record = nodes_[node];
    if (status_[node] == kReady) {
        by_rank_.raise(entry(node), record.net_bytes + bytes);
        if (record.unlocks > 0) openers_.raise(entry(node), record.net_bytes + bytes);
    }
    layout_->leave_to(record, node, bytes);
}

int32_t PartialOrder::best(int32_t count, int32_t* chosen) const {
    const int32_t ready = num_ready();
    if (ready <= count) {
        for (int32_t i = 0; i < ready; ++i) chosen[i] = by_rank_[i].node;
        return ready;
    }
    // The best openers, and those of lowest index that are not among them, both by rank.
    const int32_t num_openers = std::min<int32_t>((count - 1) / 2, static_cast<int32_t>(openers_.size()));
    const int32_t num_first = (count + 2) / 4;
    thread_local std::vector<RankedNodes::Entry> first;
    first.clear();
    ready_.each([&](int32_t node) {
        if (static_cast<int32_t>(first.size()) == num_first) return false;
        const RankedNodes::Entry e = entry(node);
        const bool is_chosen = num_openers > 0 && nodes_[node].unlocks > 0 && !openers_[num_openers - 1].before(e);
        if (!is_chosen) first.push_back(e);
        return true;
    });
    std::sort(first.begin(), first.end(), [](const auto& a, const auto& b) { return a.before(b); });

    // By rank, what is met is an opener, one of the first, or one of the others, as long as there is room for those.
    int32_t others = count - num_openers - num_first, next_opener = 0, next_first = 0, size = 0;
    for (; others > 0; ++size) {
        const int32_t node = chosen[size] = by_rank_[size].node;
        const bool is_opener = next_opener < num_openers && openers_[next_opener].node == node;
        const bool is_first = next_first < num_first && first[next_first].node == node;
        next_opener += is_opener;
        next_first += is_first;
        others -= !(is_opener | is_first);
    }
    while (size < count) {
        const bool is_opener = next_first == num_first || (next_opener < num_openers &&
                                                           openers_[next_opener].before(first[next_first]));
        chosen[size++] = is_opener ? openers_[next_opener++].node : first[next_first++].node;
    }
    return size;
}

int32_t PartialOrder::first_ready() const {
    int32_t found = -1;
    ready_.each([&](int32_t node) {
        found = node;
        return false;
    });
    return found;
}

}  // namespace opgym
