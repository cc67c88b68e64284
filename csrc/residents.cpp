#include "residents.hpp"

#include <algorithm>

namespace opgym {

Residents::Residents(const Graph& graph) {
    std::vector<int64_t> owned(graph.num_ops, 0);
    for (int32_t t = 0; t < graph.num_sources; ++t) {
        const auto consumers = graph.consumers(t);
        if (consumers.size() == 1) owned[consumers.front()] += graph.tensor_bytes[t];
        if (consumers.size() < 2) continue;
        const auto first = static_cast<int32_t>(consumers_.size());
        consumers_.insert(consumers_.end(), consumers.begin(), consumers.end());
        shared_.push_back({graph.tensor_bytes[t], first, static_cast<int32_t>(consumers_.size())});
    }
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        if (graph.is_variable[op])
            for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) owned[op] += graph.tensor_bytes[t];
        if (owned[op] != 0) owners_.push_back({op, owned[op]});
    }
}

void Residents::bytes(const uint8_t* device, int num_devices, int64_t* out) const {
    std::fill(out, out + num_devices, 0);
    for (const Owner& owner : owners_) out[device[owner.op]] += owner.bytes;
    for (const Shared& shared : shared_) {
        uint64_t where = 0;
        for (int32_t i = shared.first_consumer; i < shared.end_consumer; ++i) where |= uint64_t{1} << device[consumers_[i]];
        for (; where; where &= where - 1) out[__builtin_ctzll(where)] += shared.bytes;
    }
}

}  // namespace opgym
