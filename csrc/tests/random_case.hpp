// Random cases with everything in them, for tests of the core without Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "../graph.hpp"
#include "../platform.hpp"

namespace opgym::testing {

class Dice {
   public:
    explicit Dice(uint64_t seed) : random_(seed) {}
    // Uniform in [0, count).
    int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
    bool one_in(int64_t count) { return below(count) == 0; }
    double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

   private:
    std::mt19937_64 random_;
};

// Variables, updates, outputs, workspaces, elementwise ops, zero sizes, ops without inputs or outputs, several outputs,
// some tensors that many read and some ops that read many.
inline Graph random_graph(Dice& dice, int32_t ops) {
    GraphArrays a;
    a.in_place = dice.one_in(2);
    const int64_t sources = dice.below(4), sizes = 1 + dice.below(4);
    const bool wide_reads = dice.one_in(3), popular = dice.one_in(3), plain = dice.one_in(4);
    auto size = [&] { return dice.one_in(8) ? 0 : plain ? 1 + dice.below(1'000'000) : 100 * (1 + dice.below(sizes)); };
    a.input_ptr.push_back(0);
    a.output_ptr.push_back(static_cast<int32_t>(sources));
    for (int64_t t = 0; t < sources; ++t) a.tensor_bytes.push_back(size());
    std::vector<int32_t> variables;
    for (int32_t op = 0; op < ops; ++op) {
        const bool variable = !plain && dice.one_in(8);
        const auto known = static_cast<int64_t>(a.tensor_bytes.size());
        std::vector<int32_t> inputs;
        if (!variable && known > 0) {
            const int64_t reads = wide_reads && dice.one_in(10) ? dice.below(12) : dice.below(4);
            for (int64_t i = 0; i < reads; ++i) {
                const int64_t recent = std::min<int64_t>(known, 2 + dice.below(30));
                const int64_t t = popular && dice.one_in(3) ? std::min<int64_t>(sources, known - 1) : known - 1 - dice.below(recent);
                if (std::find(inputs.begin(), inputs.end(), t) == inputs.end()) inputs.push_back(static_cast<int32_t>(t));
            }
        }
        a.input_tensor.insert(a.input_tensor.end(), inputs.begin(), inputs.end());
        a.input_ptr.push_back(static_cast<int32_t>(a.input_tensor.size()));
        const int64_t outputs = plain ? 1 : dice.one_in(6) ? dice.below(4) : 1;
        for (int64_t i = 0; i < outputs; ++i) a.tensor_bytes.push_back(size());
        a.output_ptr.push_back(static_cast<int32_t>(a.tensor_bytes.size()));
        a.is_variable.push_back(variable);
        a.update_of.push_back(!variable && !variables.empty() && dice.one_in(8)
                                  ? variables[dice.below(static_cast<int64_t>(variables.size()))]
                                  : -1);
        if (variable) variables.push_back(op);
        a.workspace_bytes.push_back(!plain && dice.one_in(4) ? dice.below(500) : 0);
        a.elementwise.push_back(dice.one_in(2));
    }
    for (size_t t = 0; t < a.tensor_bytes.size(); ++t) a.is_output.push_back(!plain && dice.one_in(10));
    return Graph(std::move(a));
}

inline Platform random_platform(Dice& dice, const Graph& graph, int devices, Channel channel) {
    const auto classes = static_cast<int>(1 + dice.below(std::min(devices, 3)));
    // Few distinct times make many events fall on one instant.
    const int64_t scale = dice.one_in(2) ? 3 : dice.one_in(8) ? int64_t{1} << 33 : 100'000;
    std::vector<int64_t> cost(static_cast<size_t>(graph.num_ops) * classes);
    for (int64_t& ns : cost) ns = dice.one_in(6) ? 0 : dice.below(scale);
    std::vector<int32_t> device_class(devices);
    for (int32_t& c : device_class) c = static_cast<int32_t>(dice.below(classes));
    const size_t pairs = static_cast<size_t>(devices) * devices;
    std::vector<int64_t> latency(pairs), rate(pairs);
    const bool uniform = dice.one_in(2);
    for (size_t i = 0; i < pairs; ++i) {
        latency[i] = uniform && i > 0 ? latency[0] : dice.below(3);
        rate[i] = uniform && i > 0 ? rate[0] : (1 + dice.below(4)) * (scale < 10 ? 100'000'000'000 : 1'000'000'000);
    }
    return Platform(graph, std::move(cost), classes, std::move(device_class), std::move(latency), std::move(rate), channel);
}

inline std::vector<uint8_t> random_placement(Dice& dice, int32_t ops, int devices) {
    std::vector<uint8_t> device(ops);
    const bool clustered = dice.one_in(2);
    for (int32_t op = 0; op < ops; ++op)
        device[op] = static_cast<uint8_t>(clustered && !dice.one_in(10) ? static_cast<int64_t>(op) * devices / ops
                                                                        : dice.below(devices));
    return device;
}

// Ties, both zeros and infinities among them.
template <class Float>
std::vector<Float> random_priority(Dice& dice, size_t count) {
    std::vector<Float> priority(count);
    const int64_t kind = dice.below(3);
    for (Float& p : priority) {
        if (kind == 0) p = static_cast<Float>(dice.unit());
        if (kind == 1) p = static_cast<Float>(dice.below(4));
        if (kind == 2) {
            constexpr double kSpecial[] = {0.0, -0.0, 1.5, -1e30, std::numeric_limits<double>::infinity(),
                                           -std::numeric_limits<double>::infinity()};
            p = static_cast<Float>(kSpecial[dice.below(6)]);
        }
    }
    return priority;
}

}  // namespace opgym::testing
