#include "platform.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace opgym {
namespace {

void require(bool holds, const std::string& message) {
    if (!holds) throw std::invalid_argument(message);
}

}  // namespace

Platform::Platform(const Graph& graph, std::vector<int64_t> class_cost, int classes, std::vector<int32_t> class_of,
                   std::vector<int64_t> latency, std::vector<int64_t> rate, Channel channel_model)
    : num_devices(static_cast<int>(class_of.size())),
      num_classes(classes),
      channel(channel_model),
      class_cost_ns(std::move(class_cost)),
      device_class(std::move(class_of)),
      latency_ns(std::move(latency)),
      bytes_per_second(std::move(rate)) {
    require(1 <= num_devices && num_devices <= kMaxDevices,
            std::to_string(num_devices) + " devices; expected 1 to " + std::to_string(kMaxDevices));
    require(class_cost_ns.size() == static_cast<size_t>(graph.num_ops) * num_classes, "costs have the wrong shape");
    const size_t pairs = static_cast<size_t>(num_devices) * num_devices;
    require(latency_ns.size() == pairs && bytes_per_second.size() == pairs, "link matrices have the wrong shape");
    for (int32_t c : device_class) require(0 <= c && c < num_classes, "a device has an unknown class");

    auto add_ns = [&](int64_t ns) {
        require(!__builtin_add_overflow(longest_run_ns, ns, &longest_run_ns),
                "op and transfer times could add up to more than 2^63 - 1 ns; use smaller times, or faster links");
    };
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        const int64_t* row = class_cost_ns.data() + static_cast<size_t>(op) * num_classes;
        int64_t slowest = 0;
        for (int c = 0; c < num_classes; ++c) {
            require(row[c] >= 0, "op " + std::to_string(op) + " has a negative cost of " + std::to_string(row[c]) + " ns");
            slowest = std::max(slowest, row[c]);
        }
        if (!graph.is_variable[op]) add_ns(slowest);
    }
    if (channel == Channel::free || num_devices == 1) return;

    int64_t worst_latency = 0, worst_rate = std::numeric_limits<int64_t>::max();
    for (int s = 0; s < num_devices; ++s)
        for (int d = 0; d < num_devices; ++d) {
            if (s == d) continue;
            const size_t pair = static_cast<size_t>(s) * num_devices + d;
            require(latency_ns[pair] >= 0, "a link has a negative latency");
            require(bytes_per_second[pair] > 0, "a link has a bandwidth of 0 or less");
            worst_latency = std::max(worst_latency, latency_ns[pair]);
            worst_rate = std::min(worst_rate, bytes_per_second[pair]);
        }
    for (int32_t t = graph.num_sources; t < graph.num_tensors; ++t) {
        const int64_t copies = std::min<int64_t>(static_cast<int64_t>(graph.consumers(t).size()), num_devices - 1);
        for (int64_t copy = 0; copy < copies; ++copy) {
            add_ns(worst_latency);
            add_ns(stream_ns(graph.tensor_bytes[t], worst_rate));
        }
    }
}

}  // namespace opgym
