#include <algorithm>
#include <numeric>
#include <tuple>

#include "list_scheduling.hpp"
#include "list_scheduling_ledger.hpp"

namespace opgym {
namespace {

// Busy intervals of a device or channel, in order; touching ones are one.
class BusyTimes {
   public:
    // The first time from which `duration_ns` are free, not before `ready_ns`.
    int64_t earliest(int64_t ready_ns, int64_t duration_ns) const {
        auto next = std::upper_bound(busy_.begin(), busy_.end(), ready_ns,
                                     [](int64_t time, const Interval& interval) { return time < interval.end; });
        for (int64_t start = ready_ns;; ++next) {
            if (next == busy_.end() || start + duration_ns <= next->start) return start;
            start = std::max(start, next->end);
        }
    }
    void reserve(int64_t start_ns, int64_t duration_ns) {
        if (duration_ns == 0) return;
        const int64_t end = start_ns + duration_ns;
        auto next = std::lower_bound(busy_.begin(), busy_.end(), start_ns,
                                     [](const Interval& interval, int64_t time) { return interval.start < time; });
        const bool joins_previous = next != busy_.begin() && std::prev(next)->end == start_ns;
        const bool joins_next = next != busy_.end() && next->start == end;
        if (joins_previous && joins_next) {
            std::prev(next)->end = next->end;
            busy_.erase(next);
        } else if (joins_previous) {
            std::prev(next)->end = end;
        } else if (joins_next) {
            next->start = start_ns;
        } else {
            busy_.insert(next, {start_ns, end});
        }
    }

   private:
    struct Interval {
        int64_t start, end;
    };
    std::vector<Interval> busy_;
};

// A schedule into whose gaps ops and transfers may be put.
class InsertingSchedule {
   public:
    InsertingSchedule(const Graph& graph, const Platform& platform, const PlanRequest& request)
        : graph_(graph),
          platform_(platform),
          ledger_(graph, platform, request),
          end_ns_(graph.num_ops, 0),
          computing_(platform.num_devices) {
        const size_t devices = platform.num_devices;
        if (platform.channel == Channel::port || platform.channel == Channel::send) sending_.resize(devices);
        if (platform.channel == Channel::port) receiving_.resize(devices);
        if (platform.channel == Channel::link) linking_.resize(devices * devices);
    }

    Ledger& ledger() { return ledger_; }
    struct Estimate {
        int64_t end_ns = 0, moved_bytes = 0;
    };
    Estimate estimate(int32_t op, int device) {
        Estimate estimate;
        int64_t ready = 0;
        place_transfers(op, device, [&](int32_t t, int, int64_t start, int64_t duration) {
            ready = std::max(ready, start + duration);
            estimate.moved_bytes += graph_.tensor_bytes[t] + 1;
        });
        ready = std::max(ready, present_ns_);
        const int64_t cost = platform_.cost_ns(op, device);
        estimate.end_ns = computing_[device].earliest(ready, cost) + cost;
        return estimate;
    }
    void commit(int32_t op, int device) {
        for (int32_t t : graph_.inputs(op)) {
            const int32_t producer = graph_.producer[t];
            if (producer >= 0 && ledger_.device(producer) == Ledger::kNowhere)
                ledger_.home_variable(producer, ledger_.home_for_reader(producer, t, device));
        }
        int64_t ready = 0;
        place_transfers(op, device, [&](int32_t t, int source, int64_t start, int64_t duration) {
            ready = std::max(ready, start + duration);
            reserve_channel(source, device, start, duration);
            ledger_.add_copy(t, device, start + duration);
        });
        ready = std::max(ready, present_ns_);
        const int64_t cost = platform_.cost_ns(op, device);
        const int64_t start = computing_[device].earliest(ready, cost);
        computing_[device].reserve(start, cost);
        end_ns_[op] = start + cost;
        makespan_ns_ = std::max({makespan_ns_, ready, end_ns_[op]});
        ledger_.place(op, device);
    }
    int64_t makespan_ns() const { return makespan_ns_; }

   private:
    struct Inbound {
        int64_t ready_ns;
        int32_t tensor;
        int source;
    };
    // Visits the transfers an op needs on a device, each with its start, in the order in which their tensors exist.
    // Those of one op never overlap on a channel they share: each starts after the one before it.
    template <class Visit>
    void place_transfers(int32_t op, int device, Visit visit) {
        inbound_.clear();
        present_ns_ = 0;
        for (int32_t t : graph_.inputs(op)) {
            const int32_t producer = graph_.producer[t];
            if (producer < 0) continue;
            int source = ledger_.device(producer);
            if (source == Ledger::kNowhere) source = ledger_.home_for_reader(producer, t, device);
            const int64_t copy_ready = source == device ? end_ns_[producer] : ledger_.copy_ready_ns(t, device);
            if (copy_ready >= 0)
                present_ns_ = std::max(present_ns_, copy_ready);
            else
                inbound_.push_back({end_ns_[producer], t, source});
        }
        const bool one_queue = platform_.channel == Channel::port;
        std::sort(inbound_.begin(), inbound_.end(), [one_queue](const Inbound& a, const Inbound& b) {
            return std::tuple(one_queue ? 0 : a.source, a.ready_ns, a.tensor) <
                   std::tuple(one_queue ? 0 : b.source, b.ready_ns, b.tensor);
        });
        int64_t previous_end = 0;
        int queue = -1;
        for (const Inbound& transfer : inbound_) {
            const int next = one_queue ? device : transfer.source;
            if (next != queue || platform_.channel == Channel::free) {
                queue = next;
                previous_end = 0;
            }
            const int64_t duration = ledger_.transfer_ns(transfer.tensor, transfer.source, device);
            const int64_t start =
                earliest_transfer(transfer.source, device, std::max(transfer.ready_ns, previous_end), duration);
            previous_end = start + duration;
            visit(transfer.tensor, transfer.source, start, duration);
        }
    }
    int64_t earliest_transfer(int source, int device, int64_t ready, int64_t duration) const {
        switch (platform_.channel) {
            case Channel::free:
                return ready;
            case Channel::send:
                return sending_[source].earliest(ready, duration);
            case Channel::link:
                return linking_[link(source, device)].earliest(ready, duration);
            case Channel::port:
                break;
        }
        for (;;) {  // until both ports are free at once
            const int64_t sent = sending_[source].earliest(ready, duration);
            const int64_t received = receiving_[device].earliest(sent, duration);
            if (received == sent) return sent;
            ready = received;
        }
    }
    void reserve_channel(int source, int device, int64_t start, int64_t duration) {
        if (!sending_.empty()) sending_[source].reserve(start, duration);
        if (!receiving_.empty()) receiving_[device].reserve(start, duration);
        if (!linking_.empty()) linking_[link(source, device)].reserve(start, duration);
    }
    size_t link(int source, int device) const {
        return static_cast<size_t>(source) * platform_.num_devices + device;
    }

    const Graph& graph_;
    const Platform& platform_;
    Ledger ledger_;
    std::vector<int64_t> end_ns_;                            // [ops]
    std::vector<BusyTimes> computing_, sending_, receiving_;  // [devices]
    std::vector<BusyTimes> linking_;                          // [devices, devices]
    std::vector<Inbound> inbound_;                            // scratch
    int64_t present_ns_ = 0;                                  // scratch: inputs that are there already
    int64_t makespan_ns_ = 0;
};

}  // namespace

Plan earliest_finish_with_insertion(const Graph& graph, const Platform& platform, const PlanRequest& request) {
    // A higher rank comes first; equal ranks by index, which is topological.
    std::vector<int32_t> order(graph.num_ops);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return request.rank[a] > request.rank[b]; });
    InsertingSchedule schedule(graph, platform, request);
    Ledger& ledger = schedule.ledger();
    Plan plan;
    plan.position.assign(graph.num_ops, -1);
    int32_t position = 0;
    for (int32_t op : order) {
        if (graph.is_variable[op]) continue;
        int best = -1;
        std::tuple<double, int64_t, int64_t> best_key;
        for (int d = 0; d < platform.num_devices; ++d) {
            if (!ledger.allowed(op, d)) continue;
            const double overfull = std::max(0.0, static_cast<double>(ledger.overflow_bytes(op, d)) /
                                                      static_cast<double>(ledger.capacity_bytes(d)));
            const auto estimate = schedule.estimate(op, d);
            const std::tuple key(overfull, estimate.end_ns, estimate.moved_bytes);
            if (best < 0 || key < best_key) {
                best = d;
                best_key = key;
            }
        }
        plan.forced += std::get<0>(best_key) > 0;
        schedule.commit(op, best);
        plan.position[op] = position++;
    }
    plan.makespan_ns = schedule.makespan_ns();
    plan.device = ledger.finish();
    return plan;
}

}  // namespace opgym
