// The event simulator for up to 8 devices, specialised on their number and on the channel model. It equals
// plain_simulator.cpp bit for bit; read that one first, this one says only what it does differently.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "candidate_runner.hpp"
#include "compiled_graph.hpp"
#include "next_ends.hpp"
#include "rank_set.hpp"

namespace opgym {

// D: largest number of devices.
template <int D, Channel channel, class Id>
class FastRun {
    using Compiled = CompiledGraph<Id>;
    using Record = typename Compiled::Record;
    using Extra = typename Compiled::Extra;
    static constexpr bool kCopiesAreFree = channel == Channel::free;
    static constexpr bool kByPair = channel == Channel::port || channel == Channel::link;
    static constexpr int kQueues = kCopiesAreFree ? 0 : kByPair ? D * D : D;
    // What can be busy beside devices: send ports, or links.
    static constexpr int kChannels = kCopiesAreFree ? 0 : channel == Channel::link ? D * D : D;
    static constexpr uint32_t kDevices = (1u << D) - 1;
    // Whatever can end. A device is no link to itself, so with links an op takes the place of that pair: 8 devices
    // and their links are 64 resources.
    static constexpr int kResources = channel == Channel::link ? D * D : D + kChannels;
    static constexpr int op_resource(int device) { return channel == Channel::link ? device * (D + 1) : device; }
    static constexpr int lane_resource(int lane) { return channel == Channel::link ? lane : D + lane; }
    static constexpr uint32_t kNoKey = ~0u;

    // What is live of a tensor, and where. Uses on a device: consumers there that have not ended, plus at home
    // transfers that have not ended, plus one if it is never freed there.
    struct Tensor {
        int64_t bytes;
        uint16_t uses[D];
    };
    struct Sending {
        Id tensor;
        uint8_t source, destination;
    };

   public:
    FastRun(const Compiled& graph, const Platform& platform)
        : graph_(graph), devices_(platform.num_devices), state_(graph.num_ops + 1), tensors_(graph.num_slots) {
        for (uint32_t t = 0; t < graph.num_slots; ++t) tensors_[t] = Tensor{graph.slot_bytes[t], {}};
        for (auto& set : ready_) set.reserve(graph.num_ops + 1);
        for (auto& queue : waiting_) queue.reserve(4 * (static_cast<uint64_t>(graph.num_ops) + 1));
        tail_waiting_.assign(graph.tail_inputs.size(), 0);
        cost_stride_ = platform.num_classes;
        for (int d = 0; d < devices_; ++d) cost_[d] = graph.class_cost_ns.data() + platform.device_class[d];
        for (int s = 0; s < devices_; ++s)
            for (int d = 0; d < devices_; ++d)
                duration_[s * D + d] = graph.duration_ns.data() + graph.link_class[s * devices_ + d];
    }

    void begin(const Candidate& candidate) {
        order_ = candidate.order;
        for (uint32_t v = 0; v < graph_.num_ops; ++v)
            state_[v] = static_cast<uint32_t>(candidate.rank[v]) << (Compiled::kMissingBits + Compiled::kDeviceBits) |
                        static_cast<uint32_t>(candidate.device[v]) << Compiled::kMissingBits | graph_.missing[v];
        state_[graph_.num_ops] = Compiled::kDummyDevice << Compiled::kMissingBits;
        ends_.clear();
        live_.fill(0);
        peak_.fill(0);
        now_ = 0;
        idle_ = kDevices;
        ready_mask_ = 0;
        idle_channels_ = ~uint64_t{0};
        waiting_mask_ = 0;
        free_rows_ = free_columns_ = ~uint64_t{0};
        if constexpr (channel == Channel::port) head_.fill(kNoKey);
        for (Id v : graph_.ready_ops) {
            const int d = device_of(state_[v]);
            ready_[d].add(rank_of(state_[v]));
            ready_mask_ |= 1u << d;
        }
        for (Id v : graph_.variables) publish_outputs(v, graph_.records[v], device_of(state_[v]));
        start();
    }

    // Plays one round; false if nothing is left.
    bool step() {
        uint64_t hits;
        const double next = ends_.next(hits);
        if (next == NextEnds<kResources>::kNever) return false;
        now_ = next;
        do {
            const int resource = __builtin_ctzll(hits);
            hits &= hits - 1;
            ends_.set(resource, NextEnds<kResources>::kNever);
            if constexpr (channel == Channel::link) {
                if (resource % (D + 1) == 0)
                    end_op(resource / (D + 1));
                else
                    end_transfer(resource);
            } else {
                if (resource < D)
                    end_op(resource);
                else
                    end_transfer(resource - D);
            }
        } while (hits);
        start();
        return true;
    }

    void finish(const Candidate& candidate) const {
        *candidate.makespan_ns = static_cast<int64_t>(now_);
        std::copy_n(peak_.begin(), devices_, candidate.dynamic_peak_bytes);
    }

   private:
    static uint32_t rank_of(uint32_t state) { return state >> (Compiled::kMissingBits + Compiled::kDeviceBits); }
    static int device_of(uint32_t state) { return (state >> Compiled::kMissingBits) & Compiled::kDeviceMask; }

    // --- ends

    void end_op(int d) {
        const Id v = running_[d];
        const Record& record = graph_.records[v];
        idle_ |= 1u << d;
        int64_t freed = 0;
        for (int i = 0; i < Compiled::kInline; ++i) freed += release(record.input[i], d);
        if (record.extra()) [[unlikely]] {
            const Extra& extra = graph_.extras[record.extra()];
            freed += extra.end_bytes;
            for (uint32_t i = extra.tail_begin + 1; i < extra.tail_end; ++i) freed += release(graph_.tail_inputs[i], d);
        }
        live_[d] -= freed;
        publish_outputs(v, record, d);
    }

    // One use of a tensor on a device is over; returns the bytes that this frees.
    int64_t release(Id tensor, int d) {
        Tensor& t = tensors_[tensor];
        const uint16_t left = --t.uses[d];
        return t.bytes & -static_cast<int64_t>(left == 0);
    }

    void publish_outputs(Id v, const Record& record, int d) {
        publish(v, record, d);
        if (record.extra()) [[unlikely]] {
            const Extra& extra = graph_.extras[record.extra()];
            for (uint32_t slot = extra.outputs_begin; slot < extra.outputs_end; ++slot)
                publish(static_cast<Id>(slot), graph_.records[slot], d);
        }
    }

    // A tensor is present at home, device d, and its transfers wait.
    void publish(Id tensor, const Record& record, int d) {
        std::array<uint32_t, 16> best;  // [devices] key of the best consumer
        for (int i = 0; i < D; ++i) best[i] = kNoKey;
        Counts counts;
        uint32_t where = 0;
        uint64_t any_ready = 0;
        auto visit = [&](Id consumer, uint32_t slot) {
            uint32_t state = state_[consumer];
            const int on = device_of(state);
            const uint32_t rank = rank_of(state);
            where |= 1u << on;
            if constexpr (!kCopiesAreFree) {
                const uint32_t key = rank << 2 | slot;
                best[on] = key < best[on] ? key : best[on];
            }
            const uint32_t arrives = kCopiesAreFree ? on != Compiled::kDummyDevice : on == d;
            state -= arrives;
            state_[consumer] = state;
            const uint64_t is_ready = arrives & ((state & Compiled::kMissingMask) == 0);
            if constexpr (kCopiesAreFree) {
                ready_[on & (D - 1)].add_if(rank, is_ready);
                ready_mask_ |= static_cast<uint32_t>(is_ready) << (on & (D - 1));
            } else {
                ready_[d].add_if(rank, is_ready);
                any_ready |= is_ready;
            }
            return on;
        };
        for (int i = 0; i < Compiled::kInline; ++i) counts.add(visit(record.consumer[i], record.slot(i)));
        Tensor& t = tensors_[tensor];
        counts.store(t.uses);
        if (record.extra()) [[unlikely]] {
            const Extra& extra = graph_.extras[record.extra()];
            for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i)
                ++t.uses[visit(graph_.more_consumers[i].op, graph_.more_consumers[i].slot)];
            t.uses[d] += extra.pinned;
        }
        ready_mask_ |= static_cast<uint32_t>(any_ready) << d;
        uint32_t destinations = where & kDevices & ~(1u << d);
        if constexpr (kCopiesAreFree) {
            // Outgoing copies end at once; what nobody at home reads is freed. Unread outputs are in end_bytes.
            if (destinations) {
                if (t.uses[d] == 0) live_[d] -= t.bytes;
                free_copies_.push_back({t.bytes, destinations});
            }
        } else {
            for (; destinations; destinations &= destinations - 1) {
                const int to = __builtin_ctz(destinations);
                ++t.uses[d];
                wait(tensor, d, to, best[to]);
            }
        }
    }

    // A transfer waits, from the instant at which its tensor exists.
    void wait(Id tensor, int source, int destination, uint32_t key) {
        const int queue = kByPair ? source * D + destination : source;
        waiting_[queue].add(key);
        waiting_mask_ |= uint64_t{1} << queue;
        if constexpr (channel == Channel::port) head_[queue] = key < head_[queue] ? key : head_[queue];
        if ((key & 3) == 3) [[unlikely]] {
            const Extra& extra = graph_.extras[graph_.records[order_[key >> 2]].extra()];
            for (uint32_t i = extra.tail_begin; i < extra.tail_end; ++i)
                if (graph_.tail_inputs[i] == tensor) tail_waiting_[i] = static_cast<uint8_t>(source + 1);
        }
    }

    void end_transfer(int lane) {
        const Sending sent = sending_[lane];
        if constexpr (channel == Channel::port) {
            free_rows_ |= row(sent.source);
            free_columns_ |= column(sent.destination);
        } else {
            idle_channels_ |= uint64_t{1} << lane;
        }
        live_[sent.source] -= release(sent.tensor, sent.source);
        arrive(graph_.records[sent.tensor], sent.destination);
    }

    // A copy is present on device d.
    void arrive(const Record& record, int d) {
        uint64_t any_ready = 0;
        auto visit = [&](Id consumer) {
            uint32_t state = state_[consumer];
            const uint32_t here = device_of(state) == d;
            state -= here;
            state_[consumer] = state;
            const uint64_t is_ready = here & ((state & Compiled::kMissingMask) == 0);
            ready_[d].add_if(rank_of(state), is_ready);
            any_ready |= is_ready;
        };
        for (int i = 0; i < Compiled::kInline; ++i) visit(record.consumer[i]);
        if (record.extra()) [[unlikely]] {
            const Extra& extra = graph_.extras[record.extra()];
            for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i) visit(graph_.more_consumers[i].op);
        }
        ready_mask_ |= static_cast<uint32_t>(any_ready) << d;
    }

    // --- starts

    void start() {
        if constexpr (kCopiesAreFree) {
            for (const FreeCopies& copies : free_copies_)
                for (uint32_t to = copies.destinations; to; to &= to - 1) allocate(__builtin_ctz(to), copies.bytes);
            free_copies_.clear();
        }
        for (uint32_t m = idle_ & ready_mask_; m; m &= m - 1) start_op(__builtin_ctz(m));
        if constexpr (channel == Channel::port) {
            for (uint64_t open = waiting_mask_ & free_rows_ & free_columns_; open;) {
                int best = __builtin_ctzll(open);
                uint32_t best_key = head_[best];
                for (uint64_t m = open & (open - 1); m; m &= m - 1) {
                    const int queue = __builtin_ctzll(m);
                    const bool better = head_[queue] < best_key;
                    best = better ? queue : best;
                    best_key = better ? head_[queue] : best_key;
                }
                const int source = best / D, destination = best % D;
                start_transfer(best, source);
                free_rows_ &= ~row(source);
                free_columns_ &= ~column(destination);
                open &= ~(row(source) | column(destination));
            }
        } else if constexpr (!kCopiesAreFree) {
            for (uint64_t m = idle_channels_ & waiting_mask_; m; m &= m - 1) {
                const int lane = __builtin_ctzll(m);
                idle_channels_ &= ~(uint64_t{1} << lane);
                start_transfer(lane, lane);
            }
        }
    }

    void start_op(int d) {
        const Id v = static_cast<Id>(order_[ready_[d].take_first()]);
        ready_mask_ &= ~(static_cast<uint32_t>(ready_[d].empty()) << d);
        idle_ &= ~(1u << d);
        running_[d] = v;
        ends_.set(op_resource(d), now_ + cost_[d][static_cast<size_t>(v) * cost_stride_]);
        const Record& record = graph_.records[v];
        int64_t bytes = record.start_bytes;
        if (record.extra()) [[unlikely]]
            bytes -= take_over(v, graph_.extras[record.extra()], d);
        allocate(d, bytes);
    }

    // In place: returns the bytes that need not be allocated. The input taken over gets one use more, so that it is
    // not freed when the op ends.
    int64_t take_over(Id v, const Extra& extra, int d) {
        for (uint32_t i = extra.in_place_begin; i < extra.in_place_end; ++i) {
            Tensor& t = tensors_[graph_.in_place_inputs[i]];
            if (t.uses[d] != 1) continue;
            ++t.uses[d];
            return tensors_[v].bytes;
        }
        return 0;
    }

    void start_transfer(int queue, int lane) {
        const uint32_t key = waiting_[queue].take_first();
        waiting_mask_ &= ~(static_cast<uint64_t>(waiting_[queue].empty()) << queue);
        const uint32_t consumer = order_[key >> 2];
        const int source = kByPair ? queue / D : queue;
        const int destination = kByPair ? queue % D : device_of(state_[consumer]);
        const Record& record = graph_.records[consumer];
        Id tensor = record.input[key & 3];
        if ((key & 3) == 3) [[unlikely]]
            tensor = next_of_tail(tensor, record, queue, source, key);
        if constexpr (channel == Channel::port)
            head_[queue] = waiting_[queue].empty() ? kNoKey : waiting_[queue].first();
        sending_[lane] = {tensor, static_cast<uint8_t>(source), static_cast<uint8_t>(destination)};
        const size_t at = static_cast<size_t>(tensor) * graph_.num_link_classes;
        ends_.set(lane_resource(lane), now_ + duration_[source * D + destination][at]);
        allocate(destination, tensors_[tensor].bytes);
    }

    // All inputs of an op from the fourth on share a key: the first of them that waits for this source goes.
    Id next_of_tail(Id fourth, const Record& record, int queue, int source, uint32_t key) {
        const Extra& extra = graph_.extras[record.extra()];
        if (extra.tail_begin == extra.tail_end) return fourth;
        Id tensor = fourth;
        int found = 0;
        for (uint32_t i = extra.tail_begin; i < extra.tail_end && found < 2; ++i) {
            if (tail_waiting_[i] != source + 1) continue;
            if (found++ == 0) {
                tensor = graph_.tail_inputs[i];
                tail_waiting_[i] = 0;
            }
        }
        if (found == 2) {
            waiting_[queue].add(key);
            waiting_mask_ |= uint64_t{1} << queue;
        }
        return tensor;
    }

    void allocate(int d, int64_t bytes) {
        live_[d] += bytes;
        peak_[d] = live_[d] > peak_[d] ? live_[d] : peak_[d];
    }

    static constexpr uint64_t row(int source) { return ((uint64_t{1} << D) - 1) << (source * D); }
    static constexpr uint64_t column(int destination) {
        uint64_t bits = 0;
        for (int s = 0; s < D; ++s) bits |= uint64_t{1} << (s * D);
        return bits << destination;
    }

    // Consumers per device, counted in the lanes of one word; the dummy's lane is cut off.
    struct Counts {
        static constexpr int kLane = D <= 4 ? 16 : 8;
        uint64_t lanes = 0;
        static constexpr std::array<uint64_t, 16> kOne = [] {
            std::array<uint64_t, 16> one{};
            for (int i = 0; i < D; ++i) one[i] = uint64_t{1} << (kLane * i);
            return one;
        }();
        void add(int device) { lanes += kOne[device]; }
        void store(uint16_t* uses) const {
            if constexpr (D <= 4)
                std::memcpy(uses, &lanes, sizeof(uint16_t) * D);
            else
                for (int i = 0; i < D; ++i) uses[i] = static_cast<uint8_t>(lanes >> (8 * i));
        }
    };
    struct FreeCopies {
        int64_t bytes;
        uint32_t destinations;
    };

    const Compiled& graph_;
    const int devices_;
    const int32_t* order_ = nullptr;
    std::vector<uint32_t> state_;  // [ops + 1] packed
    std::vector<Tensor> tensors_;  // [slots]
    std::array<RankSet<3>, D> ready_;
    std::array<RankSet<sizeof(Id) == 2 ? 3 : 4>, kQueues> waiting_;
    std::array<uint32_t, channel == Channel::port ? D * D : 1> head_;  // [pairs] best waiting key
    std::vector<uint8_t> tail_waiting_;  // [tail inputs] 1 + source from which the tensor waits with this best consumer
    std::vector<FreeCopies> free_copies_;
    NextEnds<kResources> ends_;
    double now_ = 0;
    std::array<Id, D> running_;
    std::array<Sending, kChannels + 1> sending_;
    std::array<int64_t, D> live_, peak_;
    uint32_t idle_ = 0, ready_mask_ = 0;
    uint64_t idle_channels_ = 0, waiting_mask_ = 0;
    uint64_t free_rows_ = 0, free_columns_ = 0;  // bit source * D + destination: that port is free
    size_t cost_stride_ = 1;
    std::array<const uint32_t*, D> cost_{};
    std::array<const uint32_t*, D * D> duration_{};
};

}  // namespace opgym
