// Devices, the channels between them, and what each op costs on each device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "graph.hpp"

namespace opgym {

inline constexpr int kMaxDevices = 64;

// How transfers share channels; the order is that of graphs.cluster.CHANNELS.
enum class Channel : int { port = 0, send = 1, link = 2, free = 3 };

class Platform {
   public:
    // class_cost_ns: [ops, classes]; device_class: [devices]; the matrices: [devices, devices], row = source.
    // Throws std::invalid_argument on a wrong shape, a negative cost, or times that could pass 2^63 - 1 ns.
    Platform(const Graph& graph, std::vector<int64_t> class_cost_ns, int num_classes, std::vector<int32_t> device_class,
             std::vector<int64_t> latency_ns, std::vector<int64_t> bytes_per_second, Channel channel);

    int num_devices = 0;
    int num_classes = 0;
    Channel channel = Channel::port;
    std::vector<int64_t> class_cost_ns;
    std::vector<int32_t> device_class;
    std::vector<int64_t> latency_ns, bytes_per_second;
    // No run can last longer: all ops on their slowest class and every possible transfer, one after the other.
    int64_t longest_run_ns = 0;

    int64_t cost_ns(int32_t op, int device) const {
        return class_cost_ns[static_cast<size_t>(op) * num_classes + device_class[device]];
    }

    int64_t transfer_ns(int64_t bytes, int source, int destination) const {
        if (channel == Channel::free) return 0;
        const size_t pair = static_cast<size_t>(source) * num_devices + destination;
        return latency_ns[pair] + stream_ns(bytes, bytes_per_second[pair]);
    }

    // ceil(bytes * 1e9 / bytes_per_second), saturated at the largest int64.
    static int64_t stream_ns(int64_t bytes, int64_t bytes_per_second) {
        uint64_t small;
        if (!__builtin_mul_overflow(static_cast<uint64_t>(bytes), uint64_t{1'000'000'000}, &small)) {
            const auto rate = static_cast<uint64_t>(bytes_per_second);
            const uint64_t ns = small / rate + (small % rate != 0);
            return static_cast<int64_t>(std::min<uint64_t>(ns, std::numeric_limits<int64_t>::max()));
        }
        const unsigned __int128 product = static_cast<unsigned __int128>(bytes) * 1'000'000'000u;
        const unsigned __int128 rate = static_cast<unsigned __int128>(bytes_per_second);
        const unsigned __int128 ns = (product + rate - 1) / rate;
        constexpr int64_t most = std::numeric_limits<int64_t>::max();
        return ns > static_cast<unsigned __int128>(most) ? most : static_cast<int64_t>(ns);
    }
};

}  // namespace opgym
