#include "list_scheduling.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>
#include <tuple>

#include "list_scheduling_appending.hpp"

namespace opgym {
namespace {

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Ops whose inputs are all decided. Variables are never decided as ops: their tensors are there from the start.
class ReadySet {
   public:
    explicit ReadySet(const Graph& graph) : graph_(graph), missing_(graph.num_ops, 0) {
        for (int32_t op = 0; op < graph.num_ops; ++op)
            for (int32_t t : graph.inputs(op))
                if (!graph.is_source(t) && !graph.is_variable[graph.producer[t]]) ++missing_[op];
    }
    template <class Visit>
    void each_initial(Visit visit) const {
        for (int32_t op = 0; op < graph_.num_ops; ++op)
            if (missing_[op] == 0 && !graph_.is_variable[op]) visit(op);
    }
    template <class Visit>
    void each_new(int32_t decided, Visit visit) {
        for (int32_t t = graph_.output_ptr[decided]; t < graph_.output_ptr[decided + 1]; ++t)
            for (int32_t op : graph_.consumers(t))
                if (--missing_[op] == 0) visit(op);
    }
    bool ready(int32_t op) const { return missing_[op] == 0; }

   private:
    const Graph& graph_;
    std::vector<int32_t> missing_;
};

// A (ready op, device) pair; the device is that of the queue it waits in.
struct Pair {
    int64_t time_ns;  // when it could start, plus its slowdown; in a queue: less the free time of the queue's resource
    int64_t rank;
    int64_t remote_bytes;
    int32_t op;

    auto key() const { return std::tuple(time_ns, -rank, op, remote_bytes); }
    bool operator>(const Pair& other) const { return key() > other.key(); }
};
using PairQueue = std::priority_queue<Pair, std::vector<Pair>, std::greater<>>;

// A pair that found no room, by the bytes it would add.
struct Parked {
    int64_t added_bytes;
    int32_t op;
    bool operator>(const Parked& other) const {
        return std::tuple(added_bytes, op) > std::tuple(other.added_bytes, other.op);
    }
};
using ParkedQueue = std::priority_queue<Parked, std::vector<Parked>, std::greater<>>;

// m-ETF and m-SCT.
//
// Keys in the queues are old and can only be too small, because starts never decrease: the smallest key is
// recomputed, and if it has grown the pair goes back. What it starts is therefore the true minimum, without looking at
// every pair. So that an op started does not make thousands of keys stale, a device has one queue per resource that can
// hold a pair up (itself, its receive port, a source's port or link), with keys relative to when that is free, and one
// for pairs held up by none. Only a copy can make a relative key too large: then its readers queue anew.
class EarliestTaskFirst {
   public:
    EarliestTaskFirst(const Graph& graph, const Platform& platform, const PlanRequest& request)
        : graph_(graph),
          request_(request),
          schedule_(graph, platform, request),
          ready_(graph),
          devices_(platform.num_devices),
          resources_(schedule_.num_resources()),
          queues_(static_cast<size_t>(devices_) * (resources_ + 1)),
          parked_(devices_),
          last_op_(devices_, -1) {}

    Plan run() {
        Plan plan;
        plan.position.assign(graph_.num_ops, -1);
        int32_t position = 0;
        ready_.each_initial([&](int32_t op) { enqueue(op); });
        for (;;) {
            Choice choice = next();
            if (choice.device < 0) {
                choice = least_overfull();
                if (choice.device < 0) break;
                ++plan.forced;
            }
            schedule_.commit(choice.op, choice.device);
            plan.position[choice.op] = position++;
            last_op_[choice.device] = choice.op;
            requeue_readers(choice);
            wake();
            ready_.each_new(choice.op, [&](int32_t op) { enqueue(op); });
        }
        plan.makespan_ns = schedule_.makespan_ns();
        plan.device = schedule_.ledger().finish();
        return plan;
    }

   private:
    struct Choice {
        int32_t op = -1;
        int device = -1;
    };

    bool waiting(int32_t op, int device) const {
        return schedule_.ledger().device(op) == Ledger::kNowhere && schedule_.ledger().allowed(op, device);
    }
    void enqueue(int32_t op) {
        for (int d = 0; d < devices_; ++d)
            if (waiting(op, d)) enqueue(op, d);
    }
    PairQueue& queue(int device, int resource) {
        const int position = resource == Arrival::kFixed ? resources_ : resource;
        return queues_[static_cast<size_t>(device) * (resources_ + 1) + position];
    }
    int64_t base_ns(int device, int resource) const {
        return resource == Arrival::kFixed ? 0 : schedule_.resource_free_ns(resource, device);
    }
    Pair pair(int32_t op, int device, const Arrival& arrival) const {
        const int64_t start = std::max(arrival.ready_ns, schedule_.free_ns(device));
        return {start + schedule_.slowdown_ns(op, device), request_.rank[op], arrival.remote_bytes, op};
    }
    void enqueue(Pair pair, int device, int resource) {
        pair.time_ns -= base_ns(device, resource);
        queue(device, resource).push(pair);
    }
    void enqueue(int32_t op, int device) {
        const Arrival arrival = schedule_.arrival(op, device);
        enqueue(pair(op, device, arrival), device, arrival.resource);
    }
    // A copy spares other readers on the device a transfer.
    void requeue_readers(const Choice& choice) {
        for (int32_t t : schedule_.copied())
            for (int32_t op : graph_.consumers(t))
                if (ready_.ready(op) && waiting(op, choice.device)) enqueue(op, choice.device);
    }
    // The smallest key on a device as its queues have it, and from which queue.
    bool top(int device, Pair& best, int& best_resource) {
        bool any = false;
        for (int resource = Arrival::kFixed; resource < resources_; ++resource) {
            PairQueue& waiting_here = queue(device, resource);
            while (!waiting_here.empty() && !waiting(waiting_here.top().op, device)) waiting_here.pop();
            if (waiting_here.empty()) continue;
            Pair candidate = waiting_here.top();
            candidate.time_ns += base_ns(device, resource);
            if (any && candidate.key() >= best.key()) continue;
            any = true;
            best = candidate;
            best_resource = resource;
        }
        return any;
    }
    // The pair that starts first, removed from its queue; device -1 if memory has room for none.
    Choice next() {
        for (;;) {
            Pair best{};
            int device = -1, resource = Arrival::kFixed;
            bool is_favourite = false;
            for (int d = 0; d < devices_; ++d) {
                Pair candidate{};
                int from = Arrival::kFixed;
                bool favourite = false;
                const bool any = top(d, candidate, from);
                Pair awaited{};
                if (awaits_favourite(d, awaited) && (!any || !urgent(candidate.op, d))) {
                    candidate = awaited;
                    favourite = true;
                } else if (!any) {
                    continue;
                }
                if (device < 0 || candidate.key() < best.key()) {
                    best = candidate;
                    device = d;
                    resource = from;
                    is_favourite = favourite;
                }
            }
            if (device < 0) return {};
            if (is_favourite) return {best.op, device};  // fresh, and known to fit
            queue(device, resource).pop();
            const Arrival arrival = schedule_.arrival(best.op, device);
            const Pair fresh = pair(best.op, device, arrival);
            if (fresh.key() != best.key()) {
                enqueue(fresh, device, arrival.resource);
                continue;
            }
            if (schedule_.ledger().overflow_bytes(best.op, device) > 0) {
                parked_[device].push({schedule_.ledger().added_bytes(best.op, device), best.op});
                continue;
            }
            return {best.op, device};
        }
    }
    // Whether a device keeps itself for the favourite child of its last op: the child is ready, nowhere started, fits,
    // and can start nowhere sooner.
    bool awaits_favourite(int device, Pair& awaited) {
        if (request_.favourite.empty() || last_op_[device] < 0) return false;
        const int32_t child = request_.favourite[last_op_[device]];
        if (child < 0 || !ready_.ready(child) || !waiting(child, device)) return false;
        if (schedule_.ledger().overflow_bytes(child, device) > 0) return false;
        const Arrival arrival = schedule_.arrival(child, device);
        const int64_t start = std::max(arrival.ready_ns, schedule_.free_ns(device)) + schedule_.slowdown_ns(child, device);
        for (int d = 0; d < devices_; ++d) {
            if (d == device || !waiting(child, d)) continue;
            const int64_t there = std::max(schedule_.arrival(child, d).ready_ns, schedule_.free_ns(d));
            if (there + schedule_.slowdown_ns(child, d) < start) return false;
        }
        awaited = pair(child, device, arrival);
        return true;
    }
    // Whether an op's inputs are on every device by the time it would start on this one, so that it may use the gap
    // before a favourite child (Hanen and Munier 1995).
    bool urgent(int32_t op, int device) {
        const int64_t start = std::max(schedule_.arrival(op, device).ready_ns, schedule_.free_ns(device));
        for (int d = 0; d < devices_; ++d)
            if (waiting(op, d) && schedule_.arrival(op, d).ready_ns > start) return false;
        return true;
    }
    void wake() {
        Ledger& ledger = schedule_.ledger();
        for (int d = 0; d < devices_; ++d) {
            if (ledger.settled()[d]) {
                ledger.settled()[d] = 0;
                park_anew(d);
            }
            if (!ledger.freed()[d]) continue;
            while (!parked_[d].empty()) {
                const Parked parked = parked_[d].top();
                if (waiting(parked.op, d)) {
                    if (ledger.committed_bytes(d) + parked.added_bytes > ledger.capacity_bytes(d)) break;
                    enqueue(parked.op, d);
                }
                parked_[d].pop();
            }
        }
    }
    void park_anew(int device) {
        if (parked_[device].empty()) return;
        ParkedQueue old;
        std::swap(old, parked_[device]);
        for (; !old.empty(); old.pop()) {
            const int32_t op = old.top().op;
            if (!waiting(op, device)) continue;
            if (schedule_.ledger().overflow_bytes(op, device) > 0)
                parked_[device].push({schedule_.ledger().added_bytes(op, device), op});
            else
                enqueue(op, device);
        }
    }
    Choice least_overfull() {
        Choice choice;
        double least = std::numeric_limits<double>::infinity();
        for (int d = 0; d < devices_; ++d) {
            while (!parked_[d].empty() && !waiting(parked_[d].top().op, d)) parked_[d].pop();
            if (parked_[d].empty()) continue;
            const int32_t op = parked_[d].top().op;
            const double share = static_cast<double>(schedule_.ledger().overflow_bytes(op, d)) /
                                 static_cast<double>(schedule_.ledger().capacity_bytes(d));
            if (share < least) {
                least = share;
                choice = {op, d};
            }
        }
        return choice;
    }

    const Graph& graph_;
    const PlanRequest& request_;
    AppendingSchedule schedule_;
    ReadySet ready_;
    int devices_;
    int resources_;
    std::vector<PairQueue> queues_;    // [devices, resources + 1]; the last: held up by no resource
    std::vector<ParkedQueue> parked_;  // [devices]
    std::vector<int32_t> last_op_;     // [devices]
};

}  // namespace

void check_plan_request(const Graph& graph, const Platform& platform, const PlanRequest& request) {
    const size_t ops = graph.num_ops, devices = platform.num_devices;
    require(request.allowed.size() == ops * devices, "allowed has the wrong length");
    require(request.unit.size() == ops, "unit has the wrong length");
    require(request.capacity_bytes.size() == devices, "capacity_bytes has the wrong length");
    require(request.rank.size() == ops, "rank has the wrong length");
    require(request.favourite.empty() || request.favourite.size() == ops, "favourite has the wrong length");
    require(graph.total_bytes < int64_t{1} << 61, "all tensors together pass 2^61 bytes");
    std::vector<uint8_t> unit_allowed(ops * devices, 1);
    for (size_t op = 0; op < ops; ++op) {
        require(request.unit[op] >= 0 && static_cast<size_t>(request.unit[op]) < ops, "a unit is out of range");
        for (size_t d = 0; d < devices; ++d)
            unit_allowed[request.unit[op] * devices + d] &= request.allowed[op * devices + d];
        if (request.favourite.empty()) continue;
        const int32_t child = request.favourite[op];
        require(child >= -1 && child < graph.num_ops, "a favourite child does not exist");
    }
    for (size_t op = 0; op < ops; ++op) {
        bool anywhere = false;
        for (size_t d = 0; d < devices; ++d) {
            anywhere = anywhere || request.allowed[op * devices + d];
            require(request.allowed[op * devices + d] == unit_allowed[request.unit[op] * devices + d],
                    "ops of one unit are allowed on different devices");
        }
        require(anywhere, "an op is allowed on no device");
    }
    for (int64_t capacity : request.capacity_bytes) require(capacity > 0, "a capacity is 0 or less");
}

Plan earliest_task_first(const Graph& graph, const Platform& platform, const PlanRequest& request) {
    return EarliestTaskFirst(graph, platform, request).run();
}

Plan highest_level_first(const Graph& graph, const Platform& platform, const PlanRequest& request) {
    AppendingSchedule schedule(graph, platform, request);
    const Ledger& ledger = schedule.ledger();
    ReadySet ready(graph);
    std::priority_queue<std::pair<int64_t, int32_t>> queue;  // (rank, -op)
    auto push = [&](int32_t op) { queue.emplace(request.rank[op], -op); };
    ready.each_initial(push);
    Plan plan;
    plan.position.assign(graph.num_ops, -1);
    int32_t position = 0;
    while (!queue.empty()) {
        const int32_t op = -queue.top().second;
        queue.pop();
        int best = -1;
        std::tuple<double, int64_t, int64_t> best_key;
        for (int d = 0; d < platform.num_devices; ++d) {
            if (!ledger.allowed(op, d)) continue;
            const double overfull = std::max(0.0, static_cast<double>(ledger.overflow_bytes(op, d)) /
                                                      static_cast<double>(ledger.capacity_bytes(d)));
            const Arrival arrival = schedule.arrival(op, d);
            const int64_t start = std::max(schedule.free_ns(d), arrival.ready_ns) + schedule.slowdown_ns(op, d);
            const std::tuple key(overfull, start, arrival.remote_bytes);
            if (best < 0 || key < best_key) {
                best = d;
                best_key = key;
            }
        }
        plan.forced += std::get<0>(best_key) > 0;
        schedule.commit(op, best);
        plan.position[op] = position++;
        ready.each_new(op, push);
    }
    plan.makespan_ns = schedule.makespan_ns();
    plan.device = schedule.ledger().finish();
    return plan;
}

std::vector<int64_t> static_upward_rank(const Graph& graph, const std::vector<int64_t>& cost_ns,
                                        const std::vector<int64_t>& transfer_ns) {
    require(cost_ns.size() == static_cast<size_t>(graph.num_ops), "cost_ns has the wrong length");
    require(transfer_ns.size() == static_cast<size_t>(graph.num_tensors), "transfer_ns has the wrong length");
    std::vector<int64_t> rank(graph.num_ops, 0);
    for (int32_t op = graph.num_ops - 1; op >= 0; --op) {
        int64_t after = 0;
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t)
            for (int32_t consumer : graph.consumers(t)) {
                int64_t path;
                require(!__builtin_add_overflow(transfer_ns[t], rank[consumer], &path), "ranks pass 2^63 - 1 ns");
                after = std::max(after, path);
            }
        require(!__builtin_add_overflow(cost_ns[op], after, &rank[op]), "ranks pass 2^63 - 1 ns");
    }
    return rank;
}

}  // namespace opgym
