#include "scheduling_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace opgym {
namespace {

// Live and peak bytes past this many references are clipped.
constexpr double kLimit = 16.0;

}  // namespace

SchedulingView::SchedulingView(std::shared_ptr<const SchedulingLayout> layout, std::vector<float> fixed,
                               const SchedulingScales& scales, int32_t num_slots)
    : start_(std::move(layout)),
      fixed_(std::move(fixed)),
      scales_(scales),
      num_slots_(num_slots) {
    if (fixed_.size() != static_cast<size_t>(num_nodes()) * kFixedFields)
        throw std::invalid_argument("fixed does not hold one row per node");
    if (num_slots < 0) throw std::invalid_argument("a negative number of slots");
    const double log_nodes = std::log1p(static_cast<double>(num_nodes()));
    for (int32_t nodes = 0; nodes <= num_nodes(); ++nodes)
        log_share_.push_back(static_cast<float>(std::log1p(static_cast<double>(nodes)) / log_nodes));
}

SchedulingView::Factors SchedulingView::factors(const PartialOrder& partial, int64_t most_net_bytes,
                                                int64_t least_net_bytes) const {
    const int64_t largest = std::max(most_net_bytes, -least_net_bytes);
    const double per_byte = 1 / scales_.reference_bytes;
    const double per_largest = largest > 0 ? 1 / static_cast<double>(largest) : 0.0;
    return {{per_byte, per_largest, per_byte, per_byte, per_byte, 1 / scales_.most_reads, 1 / scales_.most_children,
             1 / static_cast<double>(num_nodes())},
            partial.live_bytes() - partial.peak_bytes(),
            partial.num_done()};
}

inline void SchedulingView::write_changing(const PartialOrder& partial, const Factors& factors, int32_t node,
                                           float* out) {
    const NodeRecord& record = partial.record(node);
    const auto net = static_cast<double>(record.net_bytes);
    const int64_t rise = std::max<int64_t>(0, record.needed_bytes + factors.live_minus_peak);
    const double figures[kChangingFields] = {net,
                                             net,
                                             static_cast<double>(partial.freed_bytes(node)),
                                             static_cast<double>(record.needed_bytes),
                                             static_cast<double>(rise),
                                             static_cast<double>(record.last_uses),
                                             static_cast<double>(record.unlocks),
                                             static_cast<double>(factors.step - record.link)};
    for (int field = 0; field < kChangingFields; ++field)
        out[field] = static_cast<float>(figures[field] * factors.scale[field]);
}

void SchedulingView::write_slots(const PartialOrder& partial, const int32_t* nodes, int32_t shown, float* out) const {
    if (shown > 0) {
        const Factors factors = this->factors(partial, partial.record(nodes[0]).net_bytes,
                                           partial.record(nodes[shown - 1]).net_bytes);
        for (int32_t slot = 0; slot < shown; ++slot, out += kSlotFields) {
            std::memcpy(out, &fixed_[static_cast<size_t>(nodes[slot]) * kFixedFields], kFixedFields * sizeof(float));
            write_changing(partial, factors, nodes[slot], out + kFixedFields);
        }
    }
    const size_t empty = static_cast<size_t>(num_slots_ - shown) * kSlotFields;
    std::memset(out, 0, empty * sizeof(float));
    write_globals(partial, shown, out + empty);
}

void SchedulingView::write_figures(const PartialOrder& partial, float* out) const {
    const RankedNodes& ready = partial.by_rank();
    if (ready.size() == 0) return;
    const Factors factors = this->factors(partial, ready[0].net_bytes, ready.last().net_bytes);
    for (size_t rank = 0; rank < ready.size(); ++rank) {
        const int32_t node = ready[rank].node;
        write_changing(partial, factors, node, out + static_cast<size_t>(node) * kChangingFields);
    }
}

void SchedulingView::write_globals(const PartialOrder& partial, int32_t shown, float* out) const {
    const int32_t ready = partial.num_ready();
    const double live = static_cast<double>(partial.live_bytes()) / scales_.reference_bytes;
    const double hidden = num_slots_ && ready ? (ready - shown) / static_cast<double>(ready) : 0.0;
    out[0] = static_cast<float>(std::min(live, kLimit));
    out[1] = static_cast<float>(std::min(potential(partial), kLimit));
    out[2] = static_cast<float>(scales_.bound);
    out[3] = static_cast<float>(partial.num_done() / static_cast<double>(num_nodes()));
    out[4] = log_share_[ready];
    out[5] = static_cast<float>(hidden);
}

}  // namespace opgym
