// The event simulator for up to 8 devices, specialised on their number and on the channel model. It equals
// plain_simulator.cpp bit for bit; read that one first, this one says only what it does differently.
//
// What costs time is the serial chain of events and branches that the processor guesses wrong, so: queues of a few
// keys live in vectors, lists are padded to four and handled without loops, one record holds what an event needs, and
// everything is inlined into one loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "candidate_runner.hpp"
#include "compiled_graph.hpp"
#include "inline.hpp"
#include "next_ends.hpp"
#include "small_queues.hpp"
#include "state_quad.hpp"

namespace opgym {

// D: largest number of devices.
template <int D, Channel channel, class Id>
class FastRun {
    using Compiled = CompiledGraph<Id>;
    using Record = typename Compiled::Record;
    using Extra = typename Compiled::Extra;
    using MoreConsumers = typename Compiled::MoreConsumers;
    using Quad = StateQuad<D, Compiled::missing_bits(D)>;
    static constexpr bool kSmall = sizeof(Id) == 2;
    using ReadyQueue = std::conditional_t<kSmall, SmallQueue16, SmallQueue32<4, 3>>;
    using WaitingQueue = SmallQueue32<2, kSmall ? 3 : 4>;

    static constexpr bool kCopiesAreFree = channel == Channel::free;
    static constexpr bool kByPair = channel == Channel::port || channel == Channel::link;
    static constexpr int kQueues = kCopiesAreFree ? 0 : kByPair ? D * D : D;
    // What can be busy beside devices: send ports, or links.
    static constexpr int kLanes = kCopiesAreFree ? 0 : channel == Channel::link ? D * D : D;
    // Whatever can end. A device is no link to itself, so with links an op takes the place of that pair: 8 devices
    // and their links are 64 resources.
    static constexpr int kResources = channel == Channel::link ? D * D : D + kLanes;
    static constexpr int op_resource(int device) { return channel == Channel::link ? device * (D + 1) : device; }
    static constexpr int lane_resource(int lane) { return channel == Channel::link ? lane : D + lane; }
    using Ends = NextEnds<kResources>;
    static constexpr uint64_t kBitCounts = 0x4332322132212110;  // of 0 to 15, 4 bits each

    // What is live of a tensor, and where. Uses on a device: consumers there that have not ended, plus at home
    // transfers that have not ended, plus one if it is never freed there.
    struct Tensor {
        int64_t bytes;
        uint16_t uses[D];
    };
    struct Sending {
        uint32_t tensor;
        uint16_t source, destination;
    };
    struct FreeCopies {
        int64_t bytes;
        uint32_t destinations;
    };

   public:
    FastRun(const Compiled& graph, const Platform& platform)
        : graph_(graph),
          devices_(platform.num_devices),
          records_(graph.records.data()),
          extras_(graph.extras.data()),
          more_consumers_(graph.more_consumers.data()),
          link_classes_(graph.num_link_classes),
          cost_stride_(graph.cost_stride()),
          prefetch_(graph.outgrows_near_caches()),
          has_tails_(!graph.tail_inputs.empty()),
          has_in_place_(!graph.in_place_inputs.empty()),
          state_memory_(graph.num_ops + 1),
          tensor_memory_(graph.num_slots),
          device_bits_(graph.num_ops),
          tail_waiting_(graph.tail_inputs.size(), 0) {
        states_ = state_memory_.data();
        tensors_ = tensor_memory_.data();
        for (uint32_t t = 0; t < graph.num_slots; ++t) tensors_[t] = Tensor{graph.slot_bytes[t], {}};
        for (auto& queue : ready_) queue.reserve(graph.num_ops);
        for (auto& queue : waiting_) queue.reserve(4 * static_cast<uint64_t>(graph.num_ops));
        for (int d = 0; d < devices_; ++d) cost_[d] = graph.cost_of_class(platform.device_class[d]);
        for (int s = 0; s < devices_; ++s)
            for (int d = 0; d < devices_; ++d)
                duration_[s * D + d] = graph.duration_ns.data() + graph.link_class[s * devices_ + d];
    }

    void begin(const Candidate& candidate) {
        order_ = candidate.order;
        pack_states(candidate);
        ends_.clear();
        live_.fill(0);
        peak_.fill(0);
        now_ = 0;
        idle_ = (1u << D) - 1;
        ready_mask_ = 0;
        idle_lanes_ = ~uint64_t{0};
        waiting_mask_ = 0;
        free_rows_ = free_columns_ = ~uint64_t{0};
        for (Id v : graph_.ready_ops) {
            const int d = candidate.device[v];
            ready_[d].add(Quad::rank_of(states_[v]));
            ready_mask_ |= 1u << d;
        }
        for (Id v : graph_.variables) publish_outputs(v, records_[v], candidate.device[v]);
        start();
    }

    // Plays one round; false if nothing is left.
    OPGYM_INLINE bool step() {
        uint64_t hits;
        const double next = ends_.next(hits);
        if (next == Ends::kNever) return false;
        now_ = next;
        do {
            const int resource = __builtin_ctzll(hits);
            hits &= hits - 1;
            ends_.set(resource, Ends::kNever);
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
        } while (__builtin_expect(hits != 0, 0));
        start();
        return true;
    }

    void finish(const Candidate& candidate) const {
        *candidate.makespan_ns = static_cast<int64_t>(now_);
        std::copy_n(peak_.begin(), devices_, candidate.dynamic_peak_bytes);
    }

   private:
    // In two loops that the compiler turns into vector code.
    void pack_states(const Candidate& candidate) {
        const uint32_t ops = graph_.num_ops;
        const uint8_t* const __restrict device = candidate.device;
        uint8_t* const __restrict bits = device_bits_.data();
        for (uint32_t v = 0; v < ops; ++v) {
            uint8_t bit = 0;
            for (int d = 0; d < D; ++d) bit |= static_cast<uint8_t>((device[v] == d) << d);
            bits[v] = bit;
        }
        const int32_t* const __restrict rank = candidate.rank;
        const uint16_t* const __restrict missing = graph_.missing.data();
        uint32_t* const __restrict states = states_;
        for (uint32_t v = 0; v < ops; ++v)
            states[v] = ((static_cast<uint32_t>(rank[v]) << D | bits[v]) << Compiled::missing_bits(D)) | missing[v];
        states_[ops] = 0;  // the dummy is on no device
    }

    // --- ends

    OPGYM_INLINE void end_op(int d) {
        const uint32_t v = running_[d];
        const Record& record = records_[v];
        idle_ |= 1u << d;
        int64_t freed = 0;
        for (int i = 0; i < Compiled::kInline; ++i) freed += release(record.input[i], d);
        if (record.extra()) [[unlikely]]
            freed += end_more(extras_[record.extra()], d);
        live_[d] -= freed;
        publish_outputs(v, record, d);
    }

    int64_t end_more(const Extra& extra, int d) {
        int64_t freed = extra.end_bytes;
        for (uint32_t i = extra.tail_begin + 1; i < extra.tail_end; ++i) freed += release(graph_.tail_inputs[i], d);
        return freed;
    }

    // One use of a tensor on a device is over; returns the bytes that this frees.
    OPGYM_INLINE int64_t release(uint32_t tensor, int d) {
        Tensor& t = tensors_[tensor];
        const uint16_t left = --t.uses[d];
        return t.bytes & -static_cast<int64_t>(left == 0);  // no branch: it would be a coin toss
    }

    OPGYM_INLINE void publish_outputs(uint32_t v, const Record& record, int d) {
        publish(v, record, d);
        if (record.extra()) [[unlikely]]
            publish_more_outputs(extras_[record.extra()], d);
    }

    void publish_more_outputs(const Extra& extra, int d) {
        for (uint32_t slot = extra.outputs_begin; slot < extra.outputs_end; ++slot) publish(slot, records_[slot], d);
    }

    // A tensor is present at home, device d, and its transfers wait.
    OPGYM_INLINE void publish(uint32_t tensor, const Record& record, int d) {
        if constexpr (kCopiesAreFree) return publish_everywhere(tensors_[tensor], record, d);
        Tensor& t = tensors_[tensor];
        Quad quad(states_, record.consumer);
        uint32_t where = quad.devices();
        t.uses[d] = static_cast<uint16_t>(arrive_four(quad, record.consumer, d));
        const Extra* extra = nullptr;
        if (record.extra()) [[unlikely]] {
            extra = &extras_[record.extra()];
            where |= publish_more(t, *extra, d);
        }
        where &= ~(1u << d);
        if (where == 0) return;
        quad.make_keys(record.slots());
        do {
            const int to = __builtin_ctz(where);
            where &= where - 1;
            ++t.uses[d];
            uint32_t key = quad.best_key(to);
            if (extra) [[unlikely]]
                key = std::min(key, best_of_more(*extra, to));
            wait(tensor, d, to, key);
        } while (where);
    }

    uint32_t publish_more(Tensor& t, const Extra& extra, int d) {
        uint32_t where = 0, uses = extra.pinned;
        for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i) {
            Quad quad(states_, more_consumers_[i].op);
            where |= quad.devices();
            uses += arrive_four(quad, more_consumers_[i].op, d);
        }
        t.uses[d] = static_cast<uint16_t>(t.uses[d] + uses);
        return where;
    }

    uint32_t best_of_more(const Extra& extra, int to) const {
        uint32_t best = ~0u;
        for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i) {
            Quad quad(states_, more_consumers_[i].op);
            quad.make_keys(more_consumers_[i].slots);
            best = std::min(best, quad.best_key(to));
        }
        return best;
    }

    // The consumers that are on device d find the tensor there. Returns how many they are.
    OPGYM_INLINE uint32_t arrive_four(Quad& quad, const Id* consumer, int d) {
        uint32_t ready;
        const uint32_t here = quad.arrive(d, ready);
        quad.store(states_, consumer);
        // Mostly none or one becomes ready: the first is added whether there is one or not.
        const int first = __builtin_ctz(ready | 16);
        ready_[d].add_if(quad.rank(first & 3), ready != 0);
        ready_mask_ |= static_cast<uint32_t>(ready != 0) << d;
        if (prefetch_) {  // it may start soon
            __builtin_prefetch(&records_[consumer[first & 3]]);
            __builtin_prefetch(&order_[quad.rank(first & 3)]);
        }
        for (uint32_t m = ready & (ready - 1); m; m &= m - 1) ready_[d].add(quad.rank(__builtin_ctz(m)));
        return kBitCounts >> (4 * here) & 15;
    }

    // Channel model "free": the tensor is present wherever it is read.
    void publish_everywhere(Tensor& t, const Record& record, int d) {
        typename Quad::Tally readers;
        arrive_four_everywhere(record.consumer, readers);
        uint32_t pinned = 0;
        if (record.extra()) [[unlikely]] {
            const Extra& extra = extras_[record.extra()];
            pinned = extra.pinned;
            for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i)
                arrive_four_everywhere(more_consumers_[i].op, readers);
        }
        uint32_t where = 0;
        for (int on = 0; on < D; ++on) {
            t.uses[on] = static_cast<uint16_t>(readers.on(on));
            where |= static_cast<uint32_t>(t.uses[on] != 0) << on;
        }
        t.uses[d] = static_cast<uint16_t>(t.uses[d] + pinned);
        where &= ~(1u << d);
        if (where == 0) return;
        if (t.uses[d] == 0) live_[d] -= t.bytes;  // outgoing copies end at once (end_bytes has what nobody reads)
        free_copies_.push_back({t.bytes, where});
    }

    OPGYM_INLINE void arrive_four_everywhere(const Id* consumer, typename Quad::Tally& readers) {
        Quad quad(states_, consumer);
        readers.add(quad);
        uint32_t ready;
        quad.arrive_everywhere(ready);
        quad.store(states_, consumer);
        for (; ready; ready &= ready - 1) {
            const int i = __builtin_ctz(ready), on = quad.device(i);
            ready_[on].add(quad.rank(i));
            ready_mask_ |= 1u << on;
        }
    }

    // A transfer waits, from the instant at which its tensor exists.
    OPGYM_INLINE void wait(uint32_t tensor, int source, int destination, uint32_t biased_key) {
        if (has_tails_ && (biased_key & 3) == 3) [[unlikely]]
            if (mark_tail(tensor, source, biased_key - kKeyBias)) return;
        const int queue = kByPair ? source * D + destination : source;
        waiting_[queue].add_biased(biased_key);
        waiting_mask_ |= uint64_t{1} << queue;
    }

    // All inputs of an op from the fourth on share a key, which waits once for each source. Returns whether it already
    // does.
    bool mark_tail(uint32_t tensor, int source, uint32_t key) {
        const Extra& extra = extras_[records_[order_[key >> 2]].extra()];
        const auto mark = static_cast<uint8_t>(source + 1);
        bool waits = false;
        for (uint32_t i = extra.tail_begin; i < extra.tail_end; ++i) {
            if (graph_.tail_inputs[i] == tensor)
                tail_waiting_[i] = mark;
            else
                waits |= tail_waiting_[i] == mark;
        }
        return waits;
    }

    OPGYM_INLINE void end_transfer(int lane) {
        const Sending sent = sending_[lane];
        if constexpr (channel == Channel::port) {
            free_rows_ |= row(sent.source);
            free_columns_ |= column(sent.destination);
        } else {
            idle_lanes_ |= uint64_t{1} << lane;
        }
        live_[sent.source] -= release(sent.tensor, sent.source);
        arrive(sent.tensor, records_[sent.tensor], sent.destination);
    }

    // A copy is present on device d.
    OPGYM_INLINE void arrive(uint32_t tensor, const Record& record, int d) {
        Quad quad(states_, record.consumer);
        uint32_t uses = arrive_four(quad, record.consumer, d);
        if (record.extra()) [[unlikely]]
            uses += arrive_more(extras_[record.extra()], d);
        tensors_[tensor].uses[d] = static_cast<uint16_t>(uses);
    }

    uint32_t arrive_more(const Extra& extra, int d) {
        uint32_t uses = 0;
        for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i) {
            Quad quad(states_, more_consumers_[i].op);
            uses += arrive_four(quad, more_consumers_[i].op, d);
        }
        return uses;
    }

    // --- starts

    OPGYM_INLINE void start() {
        if constexpr (kCopiesAreFree) allocate_free_copies();
        for (uint32_t m = idle_ & ready_mask_; m; m &= m - 1) start_op(__builtin_ctz(m));
        if constexpr (channel == Channel::port) {
            for (uint64_t open = waiting_mask_ & free_rows_ & free_columns_; open;) {
                const int queue = best_queue(open);
                const int source = queue / D, destination = queue % D;
                start_transfer(queue, source);
                free_rows_ &= ~row(source);
                free_columns_ &= ~column(destination);
                open &= ~(row(source) | column(destination));
            }
        } else if constexpr (!kCopiesAreFree) {
            for (uint64_t m = idle_lanes_ & waiting_mask_; m; m &= m - 1) {
                const int lane = __builtin_ctzll(m);
                idle_lanes_ &= ~(uint64_t{1} << lane);
                start_transfer(lane, lane);
            }
        }
    }

    // The queue with the best transfer. Taking the best of those whose ports are free, again and again, is the same as
    // going through all that wait in order: a start only closes ports.
    OPGYM_INLINE int best_queue(uint64_t open) const {
        int best = __builtin_ctzll(open);
        uint32_t best_key = waiting_[best].first_or_none();
        for (uint64_t m = open & (open - 1); m; m &= m - 1) {
            const int queue = __builtin_ctzll(m);
            const uint32_t key = waiting_[queue].first_or_none();
            if (has_tails_ && key == best_key) [[unlikely]]
                best = tail_position(key, queue / D) < tail_position(key, best / D) ? queue : best;
            best = key < best_key ? queue : best;
            best_key = std::min(key, best_key);
        }
        return best;
    }

    // Of tensors that share a key because they are all in the tail of one op, the first goes first.
    uint32_t tail_position(uint32_t key, int source) const {
        const Extra& extra = extras_[records_[order_[key >> 2]].extra()];
        const auto begin = tail_waiting_.begin();
        return static_cast<uint32_t>(std::find(begin + extra.tail_begin, begin + extra.tail_end, source + 1) - begin);
    }

    OPGYM_INLINE void start_op(int d) {
        const auto v = static_cast<uint32_t>(order_[ready_[d].take_first()]);
        ready_mask_ &= ~(static_cast<uint32_t>(ready_[d].empty()) << d);
        idle_ &= ~(1u << d);
        running_[d] = v;
        ends_.set(op_resource(d), now_ + cost_at(v, d));
        const Record& record = records_[v];
        if (prefetch_) {  // what the end of the op will touch
            __builtin_prefetch(&tensors_[v], 1);
            for (int i = 0; i < Compiled::kInline; ++i) __builtin_prefetch(&states_[record.consumer[i]], 1);
            for (int i = 0; i < Compiled::kInline; ++i) __builtin_prefetch(&tensors_[record.input[i]], 1);
        }
        int64_t bytes = record.start_bytes;
        if (has_in_place_) [[unlikely]]
            bytes -= take_over(v, extras_[record.extra()], d);
        allocate(d, bytes);
    }

    OPGYM_INLINE uint32_t cost_at(uint32_t v, int d) const {
        uint32_t cost;
        std::memcpy(&cost, cost_[d] + v * cost_stride_, sizeof cost);
        return cost;
    }

    // In place: returns the bytes that need not be allocated. The input taken over gets one use more, so that it is
    // not freed when the op ends.
    int64_t take_over(uint32_t v, const Extra& extra, int d) {
        for (uint32_t i = extra.in_place_begin; i < extra.in_place_end; ++i) {
            Tensor& t = tensors_[graph_.in_place_inputs[i]];
            if (t.uses[d] != 1) continue;
            ++t.uses[d];
            return tensors_[v].bytes;
        }
        return 0;
    }

    OPGYM_INLINE void start_transfer(int queue, int lane) {
        const uint32_t key = waiting_[queue].take_first();
        waiting_mask_ &= ~(static_cast<uint64_t>(waiting_[queue].empty()) << queue);
        const int32_t consumer = order_[key >> 2];
        const int source = kByPair ? queue / D : queue;
        const int destination = kByPair ? queue % D : __builtin_ctz(states_[consumer] >> Compiled::missing_bits(D));
        const Record& record = records_[consumer];
        uint32_t tensor = record.input[key & 3];
        if (has_tails_ && (key & 3) == 3) [[unlikely]]
            tensor = next_of_tail(tensor, extras_[record.extra()], queue, source, key);
        sending_[lane] = {tensor, static_cast<uint16_t>(source), static_cast<uint16_t>(destination)};
        ends_.set(lane_resource(lane), now_ + duration_[source * D + destination][tensor * link_classes_]);
        allocate(destination, tensors_[tensor].bytes);
    }

    // The first input of the tail that waits for this source goes; the key waits again if there is another one.
    uint32_t next_of_tail(uint32_t fourth, const Extra& extra, int queue, int source, uint32_t key) {
        if (extra.tail_begin == extra.tail_end) return fourth;
        uint32_t tensor = fourth;
        int found = 0;
        for (uint32_t i = extra.tail_begin; i < extra.tail_end && found < 2; ++i) {
            if (tail_waiting_[i] != source + 1) continue;
            if (found++ == 0) {
                tensor = graph_.tail_inputs[i];
                tail_waiting_[i] = 0;
            }
        }
        if (found == 2) {
            waiting_[queue].add_biased(key + kKeyBias);
            waiting_mask_ |= uint64_t{1} << queue;
        }
        return tensor;
    }

    void allocate_free_copies() {
        for (const FreeCopies& copies : free_copies_)
            for (uint32_t to = copies.destinations; to; to &= to - 1) allocate(__builtin_ctz(to), copies.bytes);
        free_copies_.clear();
    }

    OPGYM_INLINE void allocate(int d, int64_t bytes) {
        const int64_t live = live_[d] + bytes;
        live_[d] = live;
        peak_[d] = std::max(peak_[d], live);
    }

    static constexpr uint64_t row(int source) { return ((uint64_t{1} << D) - 1) << (source * D); }
    static constexpr uint64_t column(int destination) {
        uint64_t bits = 0;
        for (int s = 0; s < D; ++s) bits |= uint64_t{1} << (s * D);
        return bits << destination;
    }

    // What an event touches comes first, the rest after.
    Ends ends_;
    double now_ = 0;
    std::array<uint32_t, D> running_{};
    std::array<int64_t, D> live_{}, peak_{};
    uint32_t idle_ = 0, ready_mask_ = 0;
    uint64_t idle_lanes_ = 0, waiting_mask_ = 0;
    uint64_t free_rows_ = 0, free_columns_ = 0;  // bit source * D + destination: that port is free
    std::array<Sending, kLanes + 1> sending_{};
    const int32_t* order_ = nullptr;
    uint32_t* states_ = nullptr;  // [ops + 1]
    Tensor* tensors_ = nullptr;   // [slots]
    const Compiled& graph_;
    const int devices_;
    const Record* const records_;
    const Extra* const extras_;
    const MoreConsumers* const more_consumers_;
    const size_t link_classes_, cost_stride_;
    const bool prefetch_, has_tails_, has_in_place_;
    std::array<const char*, D> cost_{};  // of op 0; cost_stride_ bytes on is the next op
    std::array<const uint32_t*, D * D> duration_{};
    std::array<ReadyQueue, D> ready_;
    std::array<WaitingQueue, kQueues> waiting_;
    std::vector<uint32_t> state_memory_;
    std::vector<Tensor> tensor_memory_;
    std::vector<uint8_t> device_bits_;
    std::vector<uint8_t> tail_waiting_;  // [tail inputs] 1 + source from which the tensor waits with this best consumer
    std::vector<FreeCopies> free_copies_;
};

}  // namespace opgym
