// Keys in [0, 1] as a placement: which devices and priorities they stand for, and what these are worth.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator.hpp"

namespace opgym {

// peak: with resident bytes, on the worst device; dynamic_peak: without.
enum class KeyObjective : int { makespan = 0, peak = 1, dynamic_peak = 2 };

// Lower is better: what fits into memory by its value, then the rest by how little it does not fit.
struct Fitness {
    double overflow_share;  // bytes over capacity / capacity on the worst device; 0 if it fits
    int64_t value;

    bool fits() const { return overflow_share <= 0; }
    bool operator<(const Fitness& other) const {
        return overflow_share != other.overflow_share ? overflow_share < other.overflow_share : value < other.value;
    }
};

// A chromosome has, in this order: an affinity for each (unit, device), the largest of a unit names its device (none
// with one device); a priority for each op that is no variable; a priority for each (transfer tensor, device).
class KeyDecoder {
   public:
    struct Solution {
        std::vector<uint8_t> device;            // [ops]
        std::vector<float> priority;            // [ops]
        std::vector<double> transfer_priority;  // [tensors, devices], or empty
    };

    // unit: [ops] ops of one unit share a device; allowed: [units, devices], each unit somewhere;
    // transfer_tensor: tensors whose transfers have keys, none: transfers go by their best-ranked consumer;
    // capacity_bytes: [devices]. Throws std::invalid_argument if these do not fit together.
    KeyDecoder(const Simulator& simulator, KeyObjective objective, std::vector<int32_t> unit,
               std::vector<uint8_t> allowed, std::vector<int32_t> transfer_tensor, std::vector<int64_t> capacity_bytes);

    int64_t num_genes() const { return affinities_ + prioritised() + transfers_; }
    int num_devices() const { return simulator_.platform().num_devices; }
    int64_t num_units() const { return static_cast<int64_t>(allowed_.size()) / num_devices(); }
    // The first gene of the priorities, and how many there are.
    int64_t first_priority() const { return affinities_; }
    int64_t prioritised() const { return static_cast<int64_t>(prioritised_.size()); }
    bool is_allowed(int64_t unit, int device) const { return allowed_[unit * num_devices() + device] != 0; }

    Solution make_solution() const;
    int device_of(std::span<const float> keys, int64_t unit) const;
    // keys: [genes], no NaN.
    void decode(std::span<const float> keys, Solution& out) const;
    // Decodes into `scratch` and simulates it.
    Fitness evaluate(std::span<const float> keys, Solution& scratch) const;

   private:
    const Simulator& simulator_;
    KeyObjective objective_;
    std::vector<int32_t> unit_;         // [ops]
    std::vector<uint8_t> allowed_;      // [units, devices]
    std::vector<int32_t> prioritised_;  // ops that have a priority
    std::vector<int32_t> transfer_tensor_;
    std::vector<int64_t> capacity_bytes_;  // [devices]
    int64_t affinities_ = 0, transfers_ = 0;
    bool every_device_allowed_ = true;
};

}  // namespace opgym
