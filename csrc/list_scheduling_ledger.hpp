// What the list schedulers share: where ops and tensors are so far, and the memory committed on each device.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "list_scheduling.hpp"
#include "platform.hpp"

namespace opgym {

// A tensor is committed on a device from the decision that brings it there until all its consumers are decided
// (nobody knows before where the others will run); what is resident in the simulator stays. Decision order stands in
// for time, so a plan may overflow by a little when simulated, and its caller plans again with less capacity.
class Ledger {
   public:
    Ledger(const Graph& graph, const Platform& platform, const PlanRequest& request);

    static constexpr int kNowhere = -1;

    int device(int32_t op) const { return device_[op]; }
    bool allowed(int32_t op, int device) const {
        return allowed_[static_cast<size_t>(op) * num_devices_ + device] != 0 &&
               (unit_device_[unit_[op]] == kNowhere || unit_device_[unit_[op]] == device);
    }
    // When a copy of a tensor is on a device other than its producer's, or -1.
    int64_t copy_ready_ns(int32_t tensor, int device) const {
        for (int32_t c = first_copy_[tensor]; c >= 0; c = copies_[c].next)
            if (copies_[c].device == device) return copies_[c].ready_ns;
        return -1;
    }
    int64_t transfer_ns(int32_t tensor, int source, int destination) const {
        if (link_class_.empty()) return platform_.transfer_ns(graph_.tensor_bytes[tensor], source, destination);
        const size_t link = link_class_[static_cast<size_t>(source) * num_devices_ + destination];
        return class_transfer_ns_[link * graph_.num_tensors + tensor];
    }
    // The home that a variable gets when an op on `device` is the first to need it: that device, or the allowed one
    // from which the tensor is there soonest.
    int home_for_reader(int32_t variable, int32_t tensor, int device) const;

    // Bytes that starting an op on a device would add there, its workspace included.
    int64_t added_bytes(int32_t op, int device) const;
    // Bytes over capacity if it did; 0 or less: it fits.
    int64_t overflow_bytes(int32_t op, int device) const {
        return committed_bytes_[device] + added_bytes(op, device) - capacity_bytes_[device];
    }
    int64_t committed_bytes(int device) const { return committed_bytes_[device]; }
    int64_t capacity_bytes(int device) const { return capacity_bytes_[device]; }

    void home_variable(int32_t variable, int device) { place_unit(unit_[variable], device); }
    // Decides an op: places its unit and commits its memory. Its copies must have been added before.
    void place(int32_t op, int device);
    void add_copy(int32_t tensor, int device, int64_t ready_ns);
    // Homes variables that nothing read; returns the finished device map.
    std::vector<uint8_t> finish();
    // Devices on which memory was freed by the last place().
    const std::vector<uint8_t>& freed() const { return freed_; }
    // Devices to which other ops may add less than before, because variables found a home or source tensors came:
    // since the flag was last cleared.
    std::vector<uint8_t>& settled() { return settled_; }

   private:
    struct Copy {
        int64_t ready_ns;
        int32_t next;
        int16_t device;
    };
    void place_unit(int32_t unit, int device);
    void release(int32_t tensor);

    const Graph& graph_;
    const Platform& platform_;
    const std::vector<uint8_t>& allowed_;
    const std::vector<int32_t>& unit_;
    const std::vector<int64_t>& capacity_bytes_;
    int num_devices_;
    std::vector<int16_t> device_;       // [ops]
    std::vector<int16_t> unit_device_;  // [units]
    std::vector<int64_t> unit_variable_bytes_;
    std::vector<int32_t> unit_variable_ptr_, unit_variable_;  // CSR: variables of a unit
    std::vector<int32_t> undecided_readers_;                  // [tensors]
    std::vector<int32_t> first_copy_;                         // [tensors]
    std::vector<Copy> copies_;
    std::vector<int64_t> committed_bytes_;
    std::vector<uint8_t> freed_, settled_;
    std::vector<uint16_t> link_class_;        // [devices, devices]; empty if there are too many different links
    std::vector<int64_t> class_transfer_ns_;  // [link classes, tensors]
};

}  // namespace opgym
