#include "plain_simulator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace opgym {
namespace {

// A transfer that waits for its channel, in the order in which transfers are considered.
struct Waiting {
    double key;  // rank of the best consumer, or minus the explicit priority
    int32_t tensor;
    int destination;
    auto operator<=>(const Waiting&) const = default;
};

struct RunningTransfer {
    int64_t end_ns;
    int32_t tensor;
    int source, destination;
};

class PlainRun {
   public:
    PlainRun(const Graph& graph, const Platform& platform, const RunRequest& request, Timeline* timeline)
        : graph_(graph),
          platform_(platform),
          request_(request),
          timeline_(timeline),
          devices_(platform.num_devices),
          result_(devices_),
          missing_inputs_(graph.num_ops, 0),
          taken_over_(static_cast<size_t>(graph.num_ops), -1),
          uses_(static_cast<size_t>(graph.num_tensors) * devices_, 0),
          ready_(devices_),
          running_op_(devices_, -1),
          running_until_(devices_, 0),
          send_busy_(devices_, false),
          receive_busy_(devices_, false),
          link_busy_(static_cast<size_t>(devices_) * devices_, false),
          live_(devices_, 0),
          sampled_(devices_, 0) {
        resident_bytes(graph, devices_, request.device, result_.resident_bytes.data());
        if (timeline_) {
            timeline_->op_start_ns.assign(graph.num_ops, -1);
            timeline_->op_end_ns.assign(graph.num_ops, -1);
        }
    }

    RunResult run() {
        begin();
        start_everything();
        while (advance_to_next_end()) {  // one turn is one round
            end_everything();
            start_everything();
        }
        if (timeline_) sort_transfers();
        return std::move(result_);
    }

   private:
    int home(int32_t tensor) const { return request_.device[graph_.producer[tensor]]; }
    int32_t& uses(int32_t tensor, int device) { return uses_[static_cast<size_t>(tensor) * devices_ + device]; }

    // --- the first round of time 0

    void begin() {
        for (int32_t op = 0; op < graph_.num_ops; ++op)
            for (int32_t t : graph_.inputs(op)) missing_inputs_[op] += !graph_.is_source(t);
        for (int32_t op = 0; op < graph_.num_ops; ++op)
            if (!graph_.is_variable[op] && missing_inputs_[op] == 0) mark_ready(op);
        for (int32_t op = 0; op < graph_.num_ops; ++op)
            if (graph_.is_variable[op]) publish_outputs(op);
        receive_free_copies();
    }

    void mark_ready(int32_t op) { ready_[request_.device[op]].insert(request_.rank[op]); }

    // --- phase (a): ends

    bool advance_to_next_end() {
        int64_t next = -1;
        auto consider = [&](int64_t end) { next = next < 0 ? end : std::min(next, end); };
        for (int d = 0; d < devices_; ++d)
            if (running_op_[d] >= 0) consider(running_until_[d]);
        for (const RunningTransfer& transfer : transfers_) consider(transfer.end_ns);
        if (next < 0) return false;
        now_ = next;
        result_.makespan_ns = now_;
        return true;
    }

    void end_everything() {
        for (int d = 0; d < devices_; ++d)
            if (running_op_[d] >= 0 && running_until_[d] == now_) end_op(d);
        std::vector<RunningTransfer> ended;
        std::erase_if(transfers_, [&](const RunningTransfer& transfer) {
            if (transfer.end_ns != now_) return false;
            ended.push_back(transfer);
            return true;
        });
        for (const RunningTransfer& transfer : ended) end_transfer(transfer);
        receive_free_copies();
    }

    void end_op(int device) {
        const int32_t op = running_op_[device];
        running_op_[device] = -1;
        live_[device] -= graph_.workspace_bytes[op];
        for (int32_t t : graph_.inputs(op)) release(t, device, /*keep=*/taken_over_[op] == t);
        publish_outputs(op);
    }

    void end_transfer(const RunningTransfer& transfer) {
        send_busy_[transfer.source] = false;
        receive_busy_[transfer.destination] = false;
        link_busy_[transfer.source * devices_ + transfer.destination] = false;
        release(transfer.tensor, transfer.source, /*keep=*/false);
        arrive(transfer.tensor, transfer.destination);
    }

    // One use of a tensor on a device is over; the last one frees it. `keep`: its buffer lives on in an output.
    void release(int32_t tensor, int device, bool keep) {
        if (graph_.is_source(tensor)) return;
        if (--uses(tensor, device) == 0 && !keep) free_storage(tensor, device);
    }

    void free_storage(int32_t tensor, int device) {
        const bool at_home = device == home(tensor);
        if (at_home && (graph_.is_output[tensor] || !graph_.is_dynamic_at_home(tensor))) return;
        live_[device] -= graph_.tensor_bytes[tensor];
    }

    // The outputs of an op are present on its device, and their transfers wait.
    void publish_outputs(int32_t op) {
        const int source = request_.device[op];
        for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t) {
            std::vector<int32_t> best_rank(devices_, graph_.num_ops);
            for (int32_t consumer : graph_.consumers(t)) {
                const int device = request_.device[consumer];
                ++uses(t, device);
                best_rank[device] = std::min(best_rank[device], request_.rank[consumer]);
            }
            for (int d = 0; d < devices_; ++d) {
                if (d == source || uses(t, d) == 0) continue;
                ++uses(t, source);
                if (platform_.channel == Channel::free) {
                    free_copies_.push_back({now_, t, source, d});
                } else {
                    const double* priority = request_.transfer_priority;
                    const double key = priority ? -priority[static_cast<size_t>(t) * devices_ + d] : best_rank[d];
                    waiting_[{source, d}].insert({key, t, d});
                }
            }
            if (uses(t, source) == 0) free_storage(t, source);
            arrive(t, source);
        }
    }

    // A tensor becomes present on a device.
    void arrive(int32_t tensor, int device) {
        for (int32_t consumer : graph_.consumers(tensor))
            if (request_.device[consumer] == device && --missing_inputs_[consumer] == 0) mark_ready(consumer);
    }

    // Channel model "free": copies arrive in this round, after all its frees.
    void receive_free_copies() {
        for (const RunningTransfer& copy : free_copies_) release(copy.tensor, copy.source, /*keep=*/false);
        for (const RunningTransfer& copy : free_copies_) {
            allocate(copy.destination, graph_.tensor_bytes[copy.tensor]);
            record_transfer(copy, now_);
            arrive(copy.tensor, copy.destination);
        }
        free_copies_.clear();
    }

    // --- phase (b): starts

    void start_everything() {
        for (int d = 0; d < devices_; ++d) {
            if (running_op_[d] >= 0 || ready_[d].empty()) continue;
            const int32_t op = request_.order[*ready_[d].begin()];
            ready_[d].erase(ready_[d].begin());
            start_op(op, d);
        }
        while (start_best_transfer()) {
        }
        sample_memory();
    }

    void start_op(int32_t op, int device) {
        const int64_t cost = platform_.cost_ns(op, device);
        running_op_[device] = op;
        running_until_[device] = now_ + cost;
        result_.busy_ns[device] += cost;
        int64_t bytes = graph_.workspace_bytes[op];
        taken_over_[op] = input_to_take_over(op, device);
        if (taken_over_[op] < 0 && !graph_.is_update(op))
            for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t) bytes += graph_.tensor_bytes[t];
        allocate(device, bytes);
        if (timeline_) {
            timeline_->op_start_ns[op] = now_;
            timeline_->op_end_ns[op] = now_ + cost;
            timeline_->op_order.push_back(op);
        }
    }

    int32_t input_to_take_over(int32_t op, int device) {
        if (!graph_.may_run_in_place(op)) return -1;
        for (int32_t t : graph_.inputs(op)) {
            if (graph_.is_source(t)) continue;
            if (graph_.may_take_over(op, t, device == home(t)) && uses(t, device) == 1) return t;
        }
        return -1;
    }

    // Starts the first of the waiting transfers whose channel is free. Repeated until there is none, that is the same as
    // going through all of them in order: a start only takes channels away. All transfers of a pair of devices need the
    // same channels, so that only the first of each pair has to be looked at.
    bool start_best_transfer() {
        auto best = waiting_.end();
        for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
            const auto [source, destination] = it->first;
            if (!channel_is_free(source, destination)) continue;
            if (best == waiting_.end() || *it->second.begin() < *best->second.begin()) best = it;
        }
        if (best == waiting_.end()) return false;
        const Waiting first = *best->second.begin();
        best->second.erase(best->second.begin());
        if (best->second.empty()) waiting_.erase(best);
        start_transfer(first);
        return true;
    }

    bool channel_is_free(int source, int destination) const {
        switch (platform_.channel) {
            case Channel::port:
                return !send_busy_[source] && !receive_busy_[destination];
            case Channel::send:
                return !send_busy_[source];
            case Channel::link:
                return !link_busy_[static_cast<size_t>(source) * devices_ + destination];
            case Channel::free:
                break;
        }
        return true;
    }

    void start_transfer(const Waiting& waiting) {
        const int source = home(waiting.tensor), destination = waiting.destination;
        send_busy_[source] = receive_busy_[destination] = true;
        link_busy_[static_cast<size_t>(source) * devices_ + destination] = true;
        const int64_t bytes = graph_.tensor_bytes[waiting.tensor];
        const int64_t duration = platform_.transfer_ns(bytes, source, destination);
        const RunningTransfer transfer{now_ + duration, waiting.tensor, source, destination};
        transfers_.push_back(transfer);
        result_.transfer_ns[source] += duration;
        allocate(destination, bytes);
        record_transfer(transfer, now_);
    }

    // --- books

    // All frees of a round come before its allocations, so the running maximum is the maximum after the round.
    void allocate(int device, int64_t bytes) {
        live_[device] += bytes;
        result_.dynamic_peak_bytes[device] = std::max(result_.dynamic_peak_bytes[device], live_[device]);
    }

    void record_transfer(const RunningTransfer& transfer, int64_t start_ns) {
        if (!timeline_) return;
        timeline_->transfer_tensor.push_back(transfer.tensor);
        timeline_->transfer_source.push_back(transfer.source);
        timeline_->transfer_destination.push_back(transfer.destination);
        timeline_->transfer_start_ns.push_back(start_ns);
        timeline_->transfer_end_ns.push_back(transfer.end_ns);
    }

    void sample_memory() {
        if (!timeline_) return;
        for (int d = 0; d < devices_; ++d) {
            if (live_[d] == sampled_[d]) continue;
            sampled_[d] = live_[d];
            timeline_->memory_time_ns.push_back(now_);
            timeline_->memory_device.push_back(d);
            timeline_->memory_bytes.push_back(result_.resident_bytes[d] + live_[d]);
        }
    }

    // By start, tensor, destination: an order that does not depend on how channels are visited.
    void sort_transfers() {
        Timeline& line = *timeline_;
        std::vector<size_t> by(line.transfer_tensor.size());
        for (size_t i = 0; i < by.size(); ++i) by[i] = i;
        std::sort(by.begin(), by.end(), [&](size_t a, size_t b) {
            return std::tuple(line.transfer_start_ns[a], line.transfer_tensor[a], line.transfer_destination[a]) <
                   std::tuple(line.transfer_start_ns[b], line.transfer_tensor[b], line.transfer_destination[b]);
        });
        auto permute = [&](auto& values) {
            auto old = values;
            for (size_t i = 0; i < by.size(); ++i) values[i] = old[by[i]];
        };
        permute(line.transfer_tensor);
        permute(line.transfer_source);
        permute(line.transfer_destination);
        permute(line.transfer_start_ns);
        permute(line.transfer_end_ns);
    }

    const Graph& graph_;
    const Platform& platform_;
    const RunRequest& request_;
    Timeline* timeline_;
    const int devices_;
    RunResult result_;
    int64_t now_ = 0;
    std::vector<int32_t> missing_inputs_;  // [ops] produced inputs that are not yet present on the op's device
    std::vector<int32_t> taken_over_;      // [ops] input whose buffer the running op's output took over, or -1
    // [tensors, devices] consumers there that have not ended, plus, at home, transfers that have not ended
    std::vector<int32_t> uses_;
    std::vector<std::set<int32_t>> ready_;  // [devices] ranks
    std::map<std::pair<int, int>, std::set<Waiting>> waiting_;  // by source and destination; no set is empty
    std::vector<RunningTransfer> transfers_, free_copies_;
    std::vector<int32_t> running_op_;     // [devices] -1: idle
    std::vector<int64_t> running_until_;  // [devices]
    std::vector<bool> send_busy_, receive_busy_, link_busy_;
    std::vector<int64_t> live_, sampled_;  // [devices] dynamic bytes
};

}  // namespace

void resident_bytes(const Graph& graph, int num_devices, const uint8_t* device, int64_t* out) {
    std::fill(out, out + num_devices, 0);
    for (int32_t t = 0; t < graph.num_sources; ++t) {
        uint64_t readers = 0;  // bit d: a consumer on device d
        for (int32_t consumer : graph.consumers(t)) readers |= uint64_t{1} << device[consumer];
        for (; readers; readers &= readers - 1) out[__builtin_ctzll(readers)] += graph.tensor_bytes[t];
    }
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        if (!graph.is_variable[op]) continue;
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) out[device[op]] += graph.tensor_bytes[t];
    }
}

RunResult run_plain(const Graph& graph, const Platform& platform, const RunRequest& request, Timeline* timeline) {
    return PlainRun(graph, platform, request, timeline).run();
}

}  // namespace opgym
