// The event simulator for one device: no transfers, and every round starts one op. What is left is a topological sort
// by rank that books memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "candidate_runner.hpp"
#include "compiled_graph.hpp"
#include "inline.hpp"
#include "small_queues.hpp"
#include "state_quad.hpp"

namespace opgym {

template <class Id>
class OneDeviceRun {
    using Compiled = CompiledGraph<Id>;
    using Record = typename Compiled::Record;
    using Extra = typename Compiled::Extra;
    using Quad = StateQuad<1, Compiled::missing_bits(1)>;
    using ReadyQueue = std::conditional_t<sizeof(Id) == 2, SmallQueue16, SmallQueue32<4, 3>>;

   public:
    OneDeviceRun(const Compiled& graph, const Platform& platform)
        : graph_(graph),
          records_(graph.records.data()),
          prefetch_(graph.outgrows_near_caches()),
          has_in_place_(!graph.in_place_inputs.empty()),
          first_missing_(graph.missing),
          first_uses_(graph.num_slots, 0),
          states_(graph.num_ops + 1),
          uses_(graph.num_slots) {
        std::vector<bool> is_variable(graph.num_ops, false);
        for (Id v : graph.variables) is_variable[v] = true;
        for (uint32_t slot = 0; slot < graph.num_slots; ++slot) count_uses(slot);
        for (Id v : graph.variables) {  // their tensors are there from the start
            for_each_consumer(v, [&](uint32_t consumer) { --first_missing_[consumer]; });
            const Extra& extra = graph.extras[records_[v].extra()];
            for (uint32_t slot = extra.outputs_begin; slot < extra.outputs_end; ++slot)
                for_each_consumer(slot, [&](uint32_t consumer) { --first_missing_[consumer]; });
        }
        for (uint32_t v = 0; v < graph.num_ops; ++v) {
            if (is_variable[v]) continue;
            ++steps_;
            makespan_ns_ += platform.cost_ns(static_cast<int32_t>(v), 0);
            if (first_missing_[v] == 0) ready_ops_.push_back(v);
        }
        ready_.reserve(graph.num_ops + 1);
    }

    uint32_t steps() const { return steps_; }

    void begin(const Candidate& candidate) {
        order_ = candidate.order;
        const uint16_t* const __restrict missing = first_missing_.data();
        const int32_t* const __restrict rank = candidate.rank;
        uint32_t* const __restrict states = states_.data();
        for (uint32_t v = 0; v < graph_.num_ops; ++v)
            states[v] = ((static_cast<uint32_t>(rank[v]) << 1 | 1) << Compiled::missing_bits(1)) | missing[v];
        states[graph_.num_ops] = 0;
        std::memcpy(uses_.data(), first_uses_.data(), uses_.size() * sizeof(uint16_t));
        live_ = peak_ = 0;
        for (uint32_t v : ready_ops_) ready_.add(rank[v]);
    }

    OPGYM_INLINE void step() {
        const auto v = static_cast<uint32_t>(order_[ready_.take_first()]);
        const Record& record = records_[v];
        int64_t live = live_ + record.start_bytes;
        if (has_in_place_) [[unlikely]]
            live -= take_over(v, graph_.extras[record.extra()]);
        peak_ = std::max(peak_, live);
        for (Id input : record.input) live -= release(input);
        live_ = live;
        arrive_four(record.consumer);
        if (record.extra()) [[unlikely]]
            end_more(graph_.extras[record.extra()]);
    }

    void finish(const Candidate& candidate) const {
        *candidate.makespan_ns = makespan_ns_;
        *candidate.dynamic_peak_bytes = peak_;
    }

   private:
    template <class Visit>
    void for_each_consumer(uint32_t slot, Visit visit) const {
        for (Id consumer : records_[slot].consumer)
            if (consumer != graph_.num_ops) visit(consumer);
        const Extra& extra = graph_.extras[records_[slot].extra()];
        for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i)
            for (Id consumer : graph_.more_consumers[i].op)
                if (consumer != graph_.num_ops) visit(consumer);
    }

    void count_uses(uint32_t slot) {
        first_uses_[slot] = graph_.extras[records_[slot].extra()].pinned;
        for_each_consumer(slot, [&](uint32_t) { ++first_uses_[slot]; });
    }

    OPGYM_INLINE void arrive_four(const Id* consumer) {
        Quad quad(states_.data(), consumer);
        uint32_t ready;
        quad.arrive(0, ready);
        quad.store(states_.data(), consumer);
        const int first = __builtin_ctz(ready | 16);
        ready_.add_if(quad.rank(first & 3), ready != 0);
        if (prefetch_) {  // it may start soon
            __builtin_prefetch(&records_[consumer[first & 3]]);
            __builtin_prefetch(&order_[quad.rank(first & 3)]);
        }
        for (uint32_t m = ready & (ready - 1); m; m &= m - 1) ready_.add(quad.rank(__builtin_ctz(m)));
    }

    OPGYM_INLINE int64_t release(uint32_t tensor) {
        const uint16_t left = --uses_[tensor];
        return graph_.slot_bytes[tensor] & -static_cast<int64_t>(left == 0);
    }

    void end_more(const Extra& extra) {
        live_ -= extra.end_bytes;
        for (uint32_t i = extra.tail_begin + 1; i < extra.tail_end; ++i) live_ -= release(graph_.tail_inputs[i]);
        arrive_more(extra);
        for (uint32_t slot = extra.outputs_begin; slot < extra.outputs_end; ++slot) {
            arrive_four(records_[slot].consumer);
            arrive_more(graph_.extras[records_[slot].extra()]);
        }
    }
    void arrive_more(const Extra& extra) {
        for (uint32_t i = extra.consumers_begin; i < extra.consumers_end; ++i)
            arrive_four(graph_.more_consumers[i].op);
    }

    int64_t take_over(uint32_t v, const Extra& extra) {
        for (uint32_t i = extra.in_place_begin; i < extra.in_place_end; ++i) {
            const uint32_t tensor = graph_.in_place_inputs[i];
            if (uses_[tensor] != 1) continue;
            ++uses_[tensor];
            return graph_.slot_bytes[v];
        }
        return 0;
    }

    const Compiled& graph_;
    const Record* const records_;
    const bool prefetch_, has_in_place_;
    const int32_t* order_ = nullptr;
    int64_t live_ = 0, peak_ = 0, makespan_ns_ = 0;
    uint32_t steps_ = 0;
    std::vector<uint16_t> first_missing_, first_uses_;
    std::vector<uint32_t> states_;
    std::vector<uint16_t> uses_;
    std::vector<uint32_t> ready_ops_;
    ReadyQueue ready_;
};

}  // namespace opgym
