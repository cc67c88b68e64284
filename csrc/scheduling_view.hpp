// What an observation shows of a partial order. The fields, in this order, are explained in envs/scheduling/features.py.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "partial_order.hpp"

namespace opgym {

struct SchedulingScales {
    double reference_bytes = 1;  // what bytes are in units of
    double bound = 0;            // largest footprint of an op / reference
    double most_reads = 1;       // held tensors that one node reads
    double most_children = 1;    // readers of one node
};

class SchedulingView {
   public:
    static constexpr int kFixedFields = 9, kChangingFields = 8, kGlobalFields = 6;
    static constexpr int kSlotFields = kFixedFields + kChangingFields;

    // fixed: fields that never change, [nodes * kFixedFields]. num_slots: 0 where actions are nodes. Throws
    // std::invalid_argument if the lengths do not fit.
    SchedulingView(std::shared_ptr<const SchedulingLayout> layout, std::vector<float> fixed,
                   const SchedulingScales& scales, int32_t num_slots);

    const PartialOrder& start() const { return start_; }
    int32_t num_nodes() const { return start_.num_nodes(); }
    int32_t num_slots() const { return num_slots_; }
    const std::vector<float>& fixed() const { return fixed_; }
    const SchedulingScales& scales() const { return scales_; }
    size_t slots_length() const { return static_cast<size_t>(num_slots_) * kSlotFields + kGlobalFields; }

    // The peak so far / reference.
    double potential(const PartialOrder& partial) const {
        return static_cast<double>(partial.peak_bytes()) / scales_.reference_bytes;
    }
    // Fields of the nodes in slots, in order of rank, slot by slot, 0 for those that are empty; the global fields.
    void write_slots(const PartialOrder& partial, const int32_t* nodes, int32_t shown, float* out) const;
    // Changing fields of all ready nodes; the rows of others are left alone, [nodes, kChangingFields].
    void write_figures(const PartialOrder& partial, float* out) const;
    void write_globals(const PartialOrder& partial, int32_t shown, float* out) const;

   private:
    // What the changing fields are made with, for nodes between two net sizes.
    struct Factors {
        double scale[kChangingFields];
        int64_t live_minus_peak;
        int32_t step;
    };
    Factors factors(const PartialOrder& partial, int64_t most_net_bytes, int64_t least_net_bytes) const;
    static void write_changing(const PartialOrder& partial, const Factors& factors, int32_t node, float* out);

    PartialOrder start_;
    std::vector<float> fixed_;
    SchedulingScales scales_;
    std::vector<float> log_share_;  // of so many nodes, [nodes + 1]
    int32_t num_slots_;
};

}  // namespace opgym
