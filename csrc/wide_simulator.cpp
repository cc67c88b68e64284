#include "wide_simulator.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include "rank_set.hpp"

namespace opgym {
namespace {

// A transfer that waits, in the order in which transfers are considered.
struct Waiting {
    uint64_t key;  // rank of the best consumer, or what falls as the explicit priority rises
    uint32_t tensor;
    uint32_t destination;
    auto operator<=>(const Waiting&) const = default;
};

struct End {
    int64_t ns;
    uint32_t resource;  // a device, or devices + lane
    auto operator<=>(const End&) const = default;
};

// Smallest first; keeps its memory.
template <class Item>
class MinHeap {
   public:
    bool empty() const { return items_.empty(); }
    const Item& first() const { return items_.front(); }
    void add(const Item& item) {
        items_.push_back(item);
        std::push_heap(items_.begin(), items_.end(), std::greater<>());
    }
    Item take_first() {
        std::pop_heap(items_.begin(), items_.end(), std::greater<>());
        const Item item = items_.back();
        items_.pop_back();
        return item;
    }

   private:
    std::vector<Item> items_;
};

struct Sending {
    uint32_t tensor;
    uint8_t source, destination;
};

class WideRunner final : public CandidateRunner {
   public:
    WideRunner(const Graph& graph, const Platform& platform)
        : graph_(graph),
          platform_(platform),
          devices_(platform.num_devices),
          by_pair_(platform.channel == Channel::port || platform.channel == Channel::link),
          first_missing_(graph.num_ops, 0),
          missing_(graph.num_ops),
          taken_over_(graph.num_ops, -1),
          uses_(static_cast<size_t>(graph.num_tensors) * devices_),
          ready_(devices_),
          waiting_(by_pair_ ? devices_ * devices_ : devices_),
          sending_(waiting_.size()),
          running_(devices_) {
        for (int32_t op = 0; op < graph.num_ops; ++op)
            for (int32_t t : graph.inputs(op)) first_missing_[op] += !graph.is_source(t);
        for (auto& queue : ready_) queue.reserve(graph.num_ops);
    }

    void run(const Candidate& candidate) override {
        begin(candidate);
        start();
        while (!ends_.empty()) {
            now_ = ends_.first().ns;
            while (!ends_.empty() && ends_.first().ns == now_) end(ends_.take_first().resource);
            receive_free_copies();
            start();
        }
        *candidate.makespan_ns = now_;
        std::copy_n(peak_.begin(), devices_, candidate.dynamic_peak_bytes);
    }

   private:
    int home(int32_t tensor) const { return candidate_.device[graph_.producer[tensor]]; }
    int32_t& uses(int32_t tensor, int device) { return uses_[static_cast<size_t>(tensor) * devices_ + device]; }

    void begin(const Candidate& candidate) {
        candidate_ = candidate;
        missing_ = first_missing_;
        now_ = 0;
        live_.fill(0);
        peak_.fill(0);
        idle_ = idle_sends_ = idle_receives_ = ~uint64_t{0} >> (64 - devices_);
        idle_links_.fill(idle_);
        waits_.fill(0);
        has_ready_ = 0;
        for (int32_t op = 0; op < graph_.num_ops; ++op)
            if (missing_[op] == 0 && !graph_.is_variable[op]) mark_ready(op);
        for (int32_t op = 0; op < graph_.num_ops; ++op)
            if (graph_.is_variable[op]) publish_outputs(op);
        receive_free_copies();
    }

    void mark_ready(int32_t op) {
        ready_[candidate_.device[op]].add(candidate_.rank[op]);
        has_ready_ |= uint64_t{1} << candidate_.device[op];
    }

    // --- ends

    void end(uint32_t resource) {
        if (resource < static_cast<uint32_t>(devices_))
            end_op(static_cast<int>(resource));
        else
            end_transfer(sending_[resource - devices_]);
    }

    void end_op(int device) {
        const int32_t op = running_[device];
        idle_ |= uint64_t{1} << device;
        live_[device] -= graph_.workspace_bytes[op];
        for (int32_t t : graph_.inputs(op))
            if (!graph_.is_source(t)) release(t, device, taken_over_[op] == t);
        publish_outputs(op);
    }

    void end_transfer(const Sending& sent) {
        idle_sends_ |= uint64_t{1} << sent.source;
        idle_receives_ |= uint64_t{1} << sent.destination;
        idle_links_[sent.source] |= uint64_t{1} << sent.destination;
        release(static_cast<int32_t>(sent.tensor), sent.source, false);
        arrive(static_cast<int32_t>(sent.tensor), sent.destination);
    }

    void release(int32_t tensor, int device, bool keep) {
        if (--uses(tensor, device) == 0 && !keep) free_storage(tensor, device);
    }

    void free_storage(int32_t tensor, int device) {
        const bool never = device == home(tensor) && (graph_.is_output[tensor] || !graph_.is_dynamic_at_home(tensor));
        if (!never) live_[device] -= graph_.tensor_bytes[tensor];
    }

    void publish_outputs(int32_t op) {
        for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t) publish(t, candidate_.device[op]);
    }

    void publish(int32_t tensor, int source) {
        std::array<int32_t, kMaxDevices> best_rank;
        uint64_t where = 0;
        for (int32_t consumer : graph_.consumers(tensor)) {
            const int device = candidate_.device[consumer];
            const uint64_t bit = uint64_t{1} << device;
            if ((where & bit) == 0) {
                best_rank[device] = graph_.num_ops;
                uses(tensor, device) = 0;
            }
            where |= bit;
            ++uses(tensor, device);
            best_rank[device] = std::min(best_rank[device], candidate_.rank[consumer]);
        }
        if ((where >> source & 1) == 0) uses(tensor, source) = 0;
        for (uint64_t m = where & ~(uint64_t{1} << source); m; m &= m - 1) {
            const int to = __builtin_ctzll(m);
            ++uses(tensor, source);
            if (platform_.channel == Channel::free)
                free_copies_.push_back({static_cast<uint32_t>(tensor), static_cast<uint8_t>(source), static_cast<uint8_t>(to)});
            else
                wait(tensor, source, to, best_rank[to]);
        }
        if (uses(tensor, source) == 0) free_storage(tensor, source);
        arrive(tensor, source);
    }

    void wait(int32_t tensor, int source, int destination, int32_t best_rank) {
        const double* priority = candidate_.transfer_priority;
        const uint64_t key = priority ? descending_key(priority[static_cast<size_t>(tensor) * devices_ + destination])
                                      : static_cast<uint64_t>(best_rank);
        waiting_[by_pair_ ? source * devices_ + destination : source].add(
            {key, static_cast<uint32_t>(tensor), static_cast<uint32_t>(destination)});
        waits_[source] |= uint64_t{1} << destination;
    }

    static uint64_t descending_key(double priority) {
        const auto bits = std::bit_cast<int64_t>(priority + 0.0);  // -0 becomes 0
        const int64_t ascending = bits ^ ((bits >> 63) & std::numeric_limits<int64_t>::max());
        return static_cast<uint64_t>(~ascending) ^ (uint64_t{1} << 63);
    }

    void arrive(int32_t tensor, int device) {
        for (int32_t consumer : graph_.consumers(tensor))
            if (candidate_.device[consumer] == device && --missing_[consumer] == 0) mark_ready(consumer);
    }

    void receive_free_copies() {
        for (const Sending& copy : free_copies_) release(static_cast<int32_t>(copy.tensor), copy.source, false);
        for (const Sending& copy : free_copies_) {
            allocate(copy.destination, graph_.tensor_bytes[copy.tensor]);
            arrive(static_cast<int32_t>(copy.tensor), copy.destination);
        }
        free_copies_.clear();
    }

    // --- starts

    void start() {
        for (uint64_t m = idle_ & has_ready_; m; m &= m - 1) start_op(__builtin_ctzll(m));
        switch (platform_.channel) {
            case Channel::port:
                while (start_best_between_free_ports()) {
                }
                break;
            case Channel::send:
                for (int s = 0; s < devices_; ++s)
                    if (idle_sends_ >> s & 1 && !waiting_[s].empty()) start_transfer(s, s);
                break;
            case Channel::link:
                for (int s = 0; s < devices_; ++s)
                    for (uint64_t m = waits_[s] & idle_links_[s]; m; m &= m - 1) {
                        const int pair = s * devices_ + __builtin_ctzll(m);
                        start_transfer(pair, pair);
                    }
                break;
            case Channel::free:
                break;
        }
    }

    // The best transfer of those whose two ports are free; the same as going through all that wait in order.
    bool start_best_between_free_ports() {
        int best = -1;
        for (uint64_t senders = idle_sends_; senders; senders &= senders - 1) {
            const int s = __builtin_ctzll(senders);
            for (uint64_t m = waits_[s] & idle_receives_; m; m &= m - 1) {
                const int pair = s * devices_ + __builtin_ctzll(m);
                if (best < 0 || waiting_[pair].first() < waiting_[best].first()) best = pair;
            }
        }
        if (best < 0) return false;
        start_transfer(best, best);
        return true;
    }

    void start_op(int device) {
        const int32_t op = candidate_.order[ready_[device].take_first()];
        if (ready_[device].empty()) has_ready_ &= ~(uint64_t{1} << device);
        idle_ &= ~(uint64_t{1} << device);
        running_[device] = op;
        ends_.add({now_ + platform_.cost_ns(op, device), static_cast<uint32_t>(device)});
        taken_over_[op] = graph_.may_run_in_place(op) ? input_to_take_over(op, device) : -1;
        int64_t bytes = graph_.workspace_bytes[op];
        if (taken_over_[op] < 0 && !graph_.is_update(op))
            for (int32_t t = graph_.output_ptr[op]; t < graph_.output_ptr[op + 1]; ++t) bytes += graph_.tensor_bytes[t];
        allocate(device, bytes);
    }

    int32_t input_to_take_over(int32_t op, int device) {
        for (int32_t t : graph_.inputs(op))
            if (!graph_.is_source(t) && graph_.may_take_over(op, t, device == home(t)) && uses(t, device) == 1) return t;
        return -1;
    }

    void start_transfer(int queue, int lane) {
        const Waiting waiting = waiting_[queue].take_first();
        const int source = by_pair_ ? queue / devices_ : queue;
        const auto destination = static_cast<int>(waiting.destination);
        const uint64_t bit = uint64_t{1} << destination;
        if (by_pair_ && waiting_[queue].empty()) waits_[source] &= ~bit;
        idle_sends_ &= ~(uint64_t{1} << source);
        idle_receives_ &= ~bit;
        idle_links_[source] &= ~bit;
        const int64_t bytes = graph_.tensor_bytes[waiting.tensor];
        sending_[lane] = {waiting.tensor, static_cast<uint8_t>(source), static_cast<uint8_t>(destination)};
        ends_.add({now_ + platform_.transfer_ns(bytes, source, destination), static_cast<uint32_t>(devices_ + lane)});
        allocate(destination, bytes);
    }

    void allocate(int device, int64_t bytes) {
        live_[device] += bytes;
        peak_[device] = std::max(peak_[device], live_[device]);
    }

    const Graph& graph_;
    const Platform& platform_;
    const int devices_;
    const bool by_pair_;
    Candidate candidate_{};
    int64_t now_ = 0;
    std::vector<int32_t> first_missing_, missing_;
    std::vector<int32_t> taken_over_;       // [ops] input whose buffer the op took over, or -1
    std::vector<int32_t> uses_;             // [tensors, devices]
    std::vector<RankSet<4>> ready_;         // [devices]
    std::vector<MinHeap<Waiting>> waiting_;  // [devices], or [devices, devices] where each pair waits for itself
    std::vector<Sending> sending_;          // what each lane carries
    std::vector<int32_t> running_;          // [devices]
    std::vector<Sending> free_copies_;
    MinHeap<End> ends_;
    std::array<int64_t, kMaxDevices> live_{}, peak_{};
    uint64_t idle_ = 0, has_ready_ = 0, idle_sends_ = 0, idle_receives_ = 0;
    std::array<uint64_t, kMaxDevices> idle_links_{}, waits_{};  // by source: a bit for each destination
};

}  // namespace

std::unique_ptr<CandidateRunner> make_wide_runner(const Graph& graph, const Platform& platform) {
    return std::make_unique<WideRunner>(graph, platform);
}

}  // namespace opgym
