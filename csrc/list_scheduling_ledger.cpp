#include "list_scheduling_ledger.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace opgym {

// A table of durations pays off for clusters of a few kinds of link; others divide each time.
static constexpr size_t kMaxLinkClasses = 8;

Ledger::Ledger(const Graph& graph, const Platform& platform, const PlanRequest& request)
    : graph_(graph),
      platform_(platform),
      allowed_(request.allowed),
      unit_(request.unit),
      capacity_bytes_(request.capacity_bytes),
      num_devices_(platform.num_devices),
      device_(graph.num_ops, kNowhere),
      first_copy_(graph.num_tensors, -1),
      committed_bytes_(platform.num_devices, 0),
      freed_(platform.num_devices, 0),
      settled_(platform.num_devices, 0) {
    const int32_t units = graph.num_ops ? *std::max_element(unit_.begin(), unit_.end()) + 1 : 0;
    unit_device_.assign(units, kNowhere);
    unit_variable_bytes_.assign(units, 0);
    unit_variable_ptr_.assign(units + 1, 0);
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        if (!graph.is_variable[op]) continue;
        ++unit_variable_ptr_[unit_[op] + 1];
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t)
            unit_variable_bytes_[unit_[op]] += graph.tensor_bytes[t];
    }
    for (int32_t u = 0; u < units; ++u) unit_variable_ptr_[u + 1] += unit_variable_ptr_[u];
    unit_variable_.resize(unit_variable_ptr_.back());
    std::vector<int32_t> next(unit_variable_ptr_.begin(), unit_variable_ptr_.end() - 1);
    for (int32_t op = 0; op < graph.num_ops; ++op)
        if (graph.is_variable[op]) unit_variable_[next[unit_[op]]++] = op;
    undecided_readers_.resize(graph.num_tensors);
    for (int32_t t = 0; t < graph.num_tensors; ++t)
        undecided_readers_[t] = graph.consumer_ptr[t + 1] - graph.consumer_ptr[t];

    if (platform.channel == Channel::free) return;
    std::map<std::pair<int64_t, int64_t>, uint16_t> classes;
    std::vector<uint16_t> link_class(static_cast<size_t>(num_devices_) * num_devices_, 0);
    for (int a = 0; a < num_devices_; ++a)
        for (int b = 0; b < num_devices_; ++b) {
            if (a == b) continue;
            const size_t pair = static_cast<size_t>(a) * num_devices_ + b;
            const std::pair<int64_t, int64_t> link{platform.latency_ns[pair], platform.bytes_per_second[pair]};
            const auto [it, fresh] = classes.emplace(link, static_cast<uint16_t>(classes.size()));
            link_class[pair] = it->second;
            if (fresh && classes.size() > kMaxLinkClasses) return;
            if (fresh)
                for (int32_t t = 0; t < graph.num_tensors; ++t)
                    class_transfer_ns_.push_back(platform.transfer_ns(graph.tensor_bytes[t], a, b));
        }
    if (!classes.empty()) link_class_ = std::move(link_class);
}

int Ledger::home_for_reader(int32_t variable, int32_t tensor, int device) const {
    if (allowed(variable, device)) return device;
    int best = kNowhere;
    int64_t soonest = std::numeric_limits<int64_t>::max();
    for (int h = 0; h < num_devices_; ++h) {
        if (!allowed(variable, h)) continue;
        const int64_t duration = transfer_ns(tensor, h, device);
        if (best == kNowhere || duration < soonest) {
            best = h;
            soonest = duration;
        }
    }
    return best;
}

int64_t Ledger::added_bytes(int32_t op, int device) const {
    int64_t bytes = graph_.workspace_bytes[op];
    for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t)
        if (graph_.is_dynamic_at_home(t)) bytes += graph_.tensor_bytes[t];
    const int32_t own = unit_[op];
    if (unit_device_[own] == kNowhere) bytes += unit_variable_bytes_[own];
    const auto inputs = graph_.inputs(op);
    for (size_t i = 0; i < inputs.size(); ++i) {
        const int32_t t = inputs[i];
        const int32_t producer = graph_.producer[t];
        if (producer >= 0 && device_[producer] == kNowhere) {  // a variable without a home
            const int32_t unit = unit_[producer];
            if (unit == own) continue;
            if (home_for_reader(producer, t, device) != device) {
                bytes += graph_.tensor_bytes[t];
                continue;
            }
            bool counted = false;
            for (size_t j = 0; j < i && !counted; ++j)
                counted = graph_.producer[inputs[j]] >= 0 && unit_[graph_.producer[inputs[j]]] == unit;
            if (!counted) bytes += unit_variable_bytes_[unit];
        } else if ((producer < 0 || device_[producer] != device) && copy_ready_ns(t, device) < 0) {
            bytes += graph_.tensor_bytes[t];
        }
    }
    return bytes;
}

void Ledger::place_unit(int32_t unit, int device) {
    if (unit_device_[unit] != kNowhere) return;
    unit_device_[unit] = static_cast<int16_t>(device);
    committed_bytes_[device] += unit_variable_bytes_[unit];
    // Elsewhere its readers would bring copies now instead of the whole unit.
    if (unit_variable_bytes_[unit] > 0) std::fill(settled_.begin(), settled_.end(), 1);
    for (int32_t i = unit_variable_ptr_[unit]; i < unit_variable_ptr_[unit + 1]; ++i)
        device_[unit_variable_[i]] = static_cast<int16_t>(device);
}

void Ledger::add_copy(int32_t tensor, int device, int64_t ready_ns) {
    copies_.push_back({ready_ns, first_copy_[tensor], static_cast<int16_t>(device)});
    first_copy_[tensor] = static_cast<int32_t>(copies_.size()) - 1;
    committed_bytes_[device] += graph_.tensor_bytes[tensor];
}

void Ledger::place(int32_t op, int device) {
    std::fill(freed_.begin(), freed_.end(), 0);
    place_unit(unit_[op], device);
    device_[op] = static_cast<int16_t>(device);
    for (int32_t t : graph_.inputs(op)) {
        if (graph_.is_source(t) && copy_ready_ns(t, device) < 0) {
            add_copy(t, device, 0);
            settled_[device] = 1;
        }
        if (--undecided_readers_[t] == 0) release(t);
    }
    for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t)
        if (graph_.is_dynamic_at_home(t) && (undecided_readers_[t] > 0 || graph_.is_output[t]))
            committed_bytes_[device] += graph_.tensor_bytes[t];
}

void Ledger::release(int32_t tensor) {
    if (graph_.is_source(tensor)) return;
    const int64_t bytes = graph_.tensor_bytes[tensor];
    const int home = device_[graph_.producer[tensor]];
    if (graph_.is_dynamic_at_home(tensor) && !graph_.is_output[tensor]) {
        committed_bytes_[home] -= bytes;
        freed_[home] = 1;
    }
    for (int32_t c = first_copy_[tensor]; c >= 0; c = copies_[c].next) {
        committed_bytes_[copies_[c].device] -= bytes;
        freed_[copies_[c].device] = 1;
    }
}

std::vector<uint8_t> Ledger::finish() {
    for (int32_t op = 0; op < graph_.num_ops; ++op) {
        if (device_[op] != kNowhere) continue;
        // A variable that nothing reads: to the allowed device with the most room.
        int best = kNowhere;
        for (int d = 0; d < num_devices_; ++d)
            if (allowed(op, d) && (best == kNowhere || capacity_bytes_[d] - committed_bytes_[d] >
                                                            capacity_bytes_[best] - committed_bytes_[best]))
                best = d;
        place_unit(unit_[op], best);
    }
    return {device_.begin(), device_.end()};
}

}  // namespace opgym
