#include "list_scheduling_appending.hpp"

#include <algorithm>
#include <tuple>

namespace opgym {

AppendingSchedule::AppendingSchedule(const Graph& graph, const Platform& platform, const PlanRequest& request)
    : graph_(graph),
      platform_(platform),
      ledger_(graph, platform, request),
      fastest_ns_(graph.num_ops),
      end_ns_(graph.num_ops, 0),
      free_ns_(platform.num_devices, 0),
      send_free_ns_(platform.num_devices, 0),
      receive_free_ns_(platform.num_devices, 0),
      source_ns_(platform.num_devices, 0) {
    if (platform.channel == Channel::link)
        link_free_ns_.assign(static_cast<size_t>(platform.num_devices) * platform.num_devices, 0);
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        int64_t fastest = -1;
        for (int d = 0; d < platform.num_devices; ++d)
            if (ledger_.allowed(op, d) && (fastest < 0 || platform.cost_ns(op, d) < fastest))
                fastest = platform.cost_ns(op, d);
        fastest_ns_[op] = fastest;
    }
}

// The one machine on which a transfer queues; a send port delays its release under `port`.
int64_t& AppendingSchedule::channel_free_ns(int source, int destination) {
    if (platform_.channel == Channel::port) return receive_free_ns_[destination];
    if (platform_.channel == Channel::send) return send_free_ns_[source];
    return link_free_ns_[static_cast<size_t>(source) * platform_.num_devices + destination];
}

void AppendingSchedule::collect(int32_t op, int device) {
    inbound_.clear();
    present_ns_ = remote_bytes_ = 0;
    for (int32_t t : graph_.inputs(op)) {
        const int32_t producer = graph_.producer[t];
        if (producer < 0) continue;
        int source = ledger_.device(producer);
        if (source == Ledger::kNowhere) source = ledger_.home_for_reader(producer, t, device);
        if (source == device) {
            present_ns_ = std::max(present_ns_, end_ns_[producer]);
            continue;
        }
        remote_bytes_ += graph_.tensor_bytes[t] + 1;  // an empty tensor is a transfer too
        const int64_t copy_ready = ledger_.copy_ready_ns(t, device);
        if (copy_ready >= 0) {
            present_ns_ = std::max(present_ns_, copy_ready);
            continue;
        }
        if (platform_.channel == Channel::free) {
            inbound_.push_back({end_ns_[producer], 0, t, source});
            continue;
        }
        int64_t release = end_ns_[producer];
        if (platform_.channel == Channel::port) release = std::max(release, send_free_ns_[source]);
        inbound_.push_back({release, ledger_.transfer_ns(t, source, device), t, source});
    }
    if (inbound_.size() < 2) return;
    const bool one_queue = platform_.channel == Channel::port || platform_.channel == Channel::free;
    std::sort(inbound_.begin(), inbound_.end(), [one_queue](const Inbound& a, const Inbound& b) {
        return std::tuple(one_queue ? 0 : a.source, a.release_ns, a.tensor) <
               std::tuple(one_queue ? 0 : b.source, b.release_ns, b.tensor);
    });
}

Arrival AppendingSchedule::arrival(int32_t op, int device) {
    collect(op, device);
    Arrival arrival{present_ns_, remote_bytes_};
    int64_t free = 0;
    int queue = -1;
    for (const Inbound& transfer : inbound_) {
        if (platform_.channel == Channel::free) {
            arrival.ready_ns = std::max(arrival.ready_ns, transfer.release_ns);
            continue;
        }
        const int next = platform_.channel == Channel::port ? device : transfer.source;
        if (next != queue) {
            queue = next;
            free = channel_free_ns(transfer.source, device);
        }
        free = std::max(free, transfer.release_ns) + transfer.duration_ns;
        arrival.ready_ns = std::max(arrival.ready_ns, free);
    }
    if (arrival.ready_ns > free_ns_[device])
        find_resource(arrival, device);
    else
        arrival.resource = kDevice;
    return arrival;
}

int64_t AppendingSchedule::resource_free_ns(int resource, int device) const {
    if (resource == kDevice) return free_ns_[device];
    if (resource == kReceivePort) return receive_free_ns_[device];
    const int source = resource - kFirstSource;
    if (platform_.channel == Channel::link)
        return link_free_ns_[static_cast<size_t>(source) * platform_.num_devices + device];
    if (platform_.channel == Channel::port) return std::max(send_free_ns_[source], receive_free_ns_[device]);
    return send_free_ns_[source];
}

// Transfers of one source, or through one port, follow one another: the last ends at least their sum after the
// resource is free.
void AppendingSchedule::find_resource(Arrival& arrival, int device) {
    if (inbound_.empty() || platform_.channel == Channel::free) return;
    int64_t total = 0;
    for (const Inbound& transfer : inbound_) {
        source_ns_[transfer.source] += transfer.duration_ns;
        total += transfer.duration_ns;
    }
    for (const Inbound& transfer : inbound_) {
        const int resource = kFirstSource + transfer.source;
        if (arrival.resource == Arrival::kFixed && source_ns_[transfer.source] > 0 &&
            resource_free_ns(resource, device) + source_ns_[transfer.source] == arrival.ready_ns) {
            arrival.resource = resource;
            arrival.relative_ns = source_ns_[transfer.source];
        }
        source_ns_[transfer.source] = 0;
    }
    if (arrival.resource == Arrival::kFixed && platform_.channel == Channel::port &&
        receive_free_ns_[device] + total == arrival.ready_ns) {
        arrival.resource = kReceivePort;
        arrival.relative_ns = total;
    }
}

int64_t AppendingSchedule::commit(int32_t op, int device) {
    for (int32_t t : graph_.inputs(op)) {
        const int32_t producer = graph_.producer[t];
        if (producer >= 0 && ledger_.device(producer) == Ledger::kNowhere)
            ledger_.home_variable(producer, ledger_.home_for_reader(producer, t, device));
    }
    collect(op, device);
    copied_.clear();
    int64_t ready = present_ns_;
    for (const Inbound& transfer : inbound_) {
        int64_t end = transfer.release_ns;
        if (platform_.channel != Channel::free) {
            int64_t& free = channel_free_ns(transfer.source, device);
            end = std::max(free, transfer.release_ns) + transfer.duration_ns;
            free = end;
            if (platform_.channel == Channel::port) send_free_ns_[transfer.source] = end;
            makespan_ns_ = std::max(makespan_ns_, end);
        }
        ledger_.add_copy(transfer.tensor, device, end);
        copied_.push_back(transfer.tensor);
        ready = std::max(ready, end);
    }
    ledger_.place(op, device);
    const int64_t start = std::max(free_ns_[device], ready);
    end_ns_[op] = start + platform_.cost_ns(op, device);
    free_ns_[device] = end_ns_[op];
    makespan_ns_ = std::max(makespan_ns_, end_ns_[op]);
    return start;
}

}  // namespace opgym
