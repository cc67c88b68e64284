// A schedule that only grows at its end: each device and channel goes on after what it did last.
#pragma once

#include <cstdint>
#include <vector>

#include "list_scheduling_ledger.hpp"

namespace opgym {

// When an op's inputs could be on a device, and how many of their bytes come from elsewhere (copies already made count
// too, so that the figure never decreases).
struct Arrival {
    int64_t ready_ns = 0;
    int64_t remote_bytes = 0;
    // Which resource sets ready_ns: ready_ns = its free time + relative_ns, and as long as the op needs the same
    // transfers it cannot be ready before that, however the free time grows.
    int resource = kFixed;
    int64_t relative_ns = 0;

    static constexpr int kFixed = -1;  // no resource: inputs that are there, or tensors that are still to be made
};

// The transfers of an op to one device share that device's receive port (`port`) or go through one channel per source
// (`send`, `link`). On one machine, jobs in order of their release end soonest, and whatever else is started later
// only delays them: so neither figure of an Arrival ever decreases as the schedule grows. One exception is a variable
// without a home that may not live beside its reader; it is estimated from the home nearest to the reader.
class AppendingSchedule {
   public:
    AppendingSchedule(const Graph& graph, const Platform& platform, const PlanRequest& request);

    Ledger& ledger() { return ledger_; }
    const Ledger& ledger() const { return ledger_; }
    int64_t free_ns(int device) const { return free_ns_[device]; }
    // What the op costs on the device beyond its fastest one; counted as a delay, so that an idle slow device does
    // not attract every op. 0 everywhere on equal devices.
    int64_t slowdown_ns(int32_t op, int device) const { return platform_.cost_ns(op, device) - fastest_ns_[op]; }
    Arrival arrival(int32_t op, int device);
    // The resources that can hold up an op on a device: the device itself, its receive port, and the way from each
    // source (both ports, the send port, or the link).
    int num_resources() const { return 2 + platform_.num_devices; }
    static constexpr int kDevice = 0, kReceivePort = 1, kFirstSource = 2;
    int64_t resource_free_ns(int resource, int device) const;
    // Tensors whose copies the last commit() made, on the op's device.
    const std::vector<int32_t>& copied() const { return copied_; }
    // Starts the op as estimated; the start.
    int64_t commit(int32_t op, int device);
    int64_t makespan_ns() const { return makespan_ns_; }

   private:
    struct Inbound {
        int64_t release_ns, duration_ns;
        int32_t tensor;
        int source;
    };
    int64_t& channel_free_ns(int source, int destination);
    void find_resource(Arrival& arrival, int device);
    void collect(int32_t op, int device);

    const Graph& graph_;
    const Platform& platform_;
    Ledger ledger_;
    std::vector<int64_t> fastest_ns_;   // [ops]
    std::vector<int64_t> end_ns_;       // [ops]
    std::vector<int64_t> free_ns_;      // [devices] end of its last op
    std::vector<int64_t> send_free_ns_, receive_free_ns_;  // [devices]
    std::vector<int64_t> link_free_ns_;                    // [devices, devices]
    std::vector<Inbound> inbound_;                         // scratch
    std::vector<int64_t> source_ns_;                       // scratch [devices]: all transfers from a source
    std::vector<int32_t> copied_;
    int64_t present_ns_ = 0, remote_bytes_ = 0;            // scratch: of inputs there already; of all from elsewhere
    int64_t makespan_ns_ = 0;
};

}  // namespace opgym
