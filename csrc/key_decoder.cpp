#include "key_decoder.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace opgym {

KeyDecoder::KeyDecoder(const Simulator& simulator, KeyObjective objective, std::vector<int32_t> unit,
                       std::vector<uint8_t> allowed, std::vector<int32_t> transfer_tensor,
                       std::vector<int64_t> capacity_bytes)
    : simulator_(simulator), objective_(objective), unit_(std::move(unit)), allowed_(std::move(allowed)),
      transfer_tensor_(std::move(transfer_tensor)), capacity_bytes_(std::move(capacity_bytes)) {
    const Graph& graph = simulator.graph();
    const auto devices = static_cast<size_t>(num_devices());
    if (unit_.size() != static_cast<size_t>(graph.num_ops) || capacity_bytes_.size() != devices ||
        allowed_.size() % devices != 0)
        throw std::invalid_argument("unit, allowed or capacity_bytes has the wrong length");
    for (int32_t u : unit_)
        if (u < 0 || u >= num_units()) throw std::invalid_argument("an op is in a unit that does not exist");
    for (int64_t u = 0; u < num_units(); ++u)
        if (std::find(&allowed_[u * devices], &allowed_[u * devices] + devices, 1) == &allowed_[u * devices] + devices)
            throw std::invalid_argument("a unit may run nowhere");
    for (int32_t t : transfer_tensor_)
        if (t < 0 || t >= graph.num_tensors) throw std::invalid_argument("a transfer of a tensor that does not exist");
    for (int32_t op = 0; op < graph.num_ops; ++op)
        if (!graph.is_variable[op]) prioritised_.push_back(op);
    if (devices > 1) affinities_ = num_units() * static_cast<int64_t>(devices);
    transfers_ = static_cast<int64_t>(transfer_tensor_.size() * devices);
    every_device_allowed_ = std::find(allowed_.begin(), allowed_.end(), 0) == allowed_.end();
}

KeyDecoder::Solution KeyDecoder::make_solution() const {
    Solution solution;
    solution.device.assign(unit_.size(), 0);
    solution.priority.assign(unit_.size(), 0.0f);
    if (transfers_ > 0)
        solution.transfer_priority.assign(static_cast<size_t>(simulator_.graph().num_tensors) * num_devices(), 0.0);
    return solution;
}

// The allowed device of the largest affinity, the lowest of equals.
int KeyDecoder::device_of(std::span<const float> keys, int64_t unit) const {
    const int devices = num_devices();
    const float* affinity = &keys[unit * devices];
    int best = -1;
    for (int d = 0; d < devices; ++d)
        if (is_allowed(unit, d) && (best < 0 || affinity[d] > affinity[best])) best = d;
    return best;
}

void KeyDecoder::decode(std::span<const float> keys, Solution& out) const {
    const int devices = num_devices();
    if (devices == 2 && every_device_allowed_) {
        for (size_t op = 0; op < unit_.size(); ++op) out.device[op] = keys[2 * unit_[op] + 1] > keys[2 * unit_[op]];
    } else if (devices > 1) {
        for (size_t op = 0; op < unit_.size(); ++op) out.device[op] = static_cast<uint8_t>(device_of(keys, unit_[op]));
    }
    const float* priority = keys.data() + affinities_;
    for (size_t i = 0; i < prioritised_.size(); ++i) out.priority[prioritised_[i]] = priority[i];
    const float* transfer = priority + prioritised_.size();
    for (size_t i = 0; i < transfer_tensor_.size(); ++i)
        std::copy_n(transfer + i * devices, devices,
                    out.transfer_priority.begin() + static_cast<int64_t>(transfer_tensor_[i]) * devices);
}

Fitness KeyDecoder::evaluate(std::span<const float> keys, Solution& scratch) const {
    decode(keys, scratch);
    std::array<int64_t, kMaxDevices> dynamic, resident;
    const int64_t makespan_ns = simulator_.evaluate(scratch.device.data(), std::span<const float>(scratch.priority),
                                                    transfers_ > 0 ? scratch.transfer_priority.data() : nullptr,
                                                    dynamic.data(), resident.data());
    int64_t peak = 0, dynamic_peak = 0;
    double overflow_share = 0;
    for (int d = 0; d < num_devices(); ++d) {
        const int64_t bytes = dynamic[d] + resident[d];
        peak = std::max(peak, bytes);
        dynamic_peak = std::max(dynamic_peak, dynamic[d]);
        if (bytes > capacity_bytes_[d])
            overflow_share = std::max(overflow_share, static_cast<double>(bytes - capacity_bytes_[d]) /
                                                          static_cast<double>(capacity_bytes_[d]));
    }
    const int64_t value = objective_ == KeyObjective::makespan ? makespan_ns
                          : objective_ == KeyObjective::peak   ? peak
                                                               : dynamic_peak;
    return {overflow_share, value};
}

}  // namespace opgym
