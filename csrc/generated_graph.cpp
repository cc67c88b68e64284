#include "generated_graph.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace opgym {

GeneratedGraph layered_random_graph(int32_t ops, uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto mean_width = std::max<uint64_t>(4, static_cast<uint64_t>(std::sqrt(ops) / 2));
    std::vector<std::pair<int32_t, int32_t>> layers;  // first op, one past the last
    for (int32_t begin = 0; begin < ops;) {
        const auto width = static_cast<int32_t>(std::min<uint64_t>(ops - begin, 1 + random() % (2 * mean_width)));
        layers.emplace_back(begin, begin + width);
        begin += width;
    }

    GraphArrays arrays;
    arrays.input_ptr.push_back(0);
    for (size_t layer = 0; layer < layers.size(); ++layer) {
        for (int32_t op = layers[layer].first; op < layers[layer].second; ++op) {
            std::vector<int32_t> parents;
            const uint64_t reads = layer == 0 ? 0 : 1 + random() % 4;
            for (uint64_t i = 0; i < reads; ++i) {
                size_t back = 1;  // 70 %: the layer before; 21 %: two before; 9 %: three before
                if (random() % 10 >= 7) back = random() % 10 < 7 ? 2 : 3;
                const auto [begin, end] = layers[layer - std::min(back, layer)];
                parents.push_back(begin + static_cast<int32_t>(random() % (end - begin)));
            }
            std::sort(parents.begin(), parents.end());
            parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
            arrays.input_tensor.insert(arrays.input_tensor.end(), parents.begin(), parents.end());
            arrays.input_ptr.push_back(static_cast<int32_t>(arrays.input_tensor.size()));
        }
    }
    for (int32_t op = 0; op <= ops; ++op) arrays.output_ptr.push_back(op);
    std::lognormal_distribution<double> lognormal(0, 1);
    std::vector<int64_t> cost_ns(ops);
    for (int64_t& ns : cost_ns) ns = static_cast<int64_t>(lognormal(random) * 1e5);
    arrays.tensor_bytes.resize(ops);
    for (int64_t& bytes : arrays.tensor_bytes) bytes = static_cast<int64_t>(lognormal(random) * 1e6) + 1;
    arrays.workspace_bytes.assign(ops, 0);
    arrays.is_variable.assign(ops, 0);
    arrays.update_of.assign(ops, -1);
    arrays.is_output.assign(ops, 0);
    arrays.elementwise.assign(ops, 0);
    return {Graph(std::move(arrays)), std::move(cost_ns)};
}

Platform uniform_platform(const GeneratedGraph& generated, int devices, Channel channel) {
    const size_t pairs = static_cast<size_t>(devices) * devices;
    return Platform(generated.graph, generated.cost_ns, 1, std::vector<int32_t>(devices, 0),
                    std::vector<int64_t>(pairs, 10'000), std::vector<int64_t>(pairs, 12'000'000'000), channel);
}

std::vector<uint8_t> generated_placement(int32_t ops, int devices, PlacementKind kind, std::mt19937_64& random) {
    std::vector<uint8_t> device(ops);
    for (int32_t op = 0; op < ops; ++op) {
        const bool anywhere = kind == PlacementKind::random || random() % 20 == 0;
        device[op] = static_cast<uint8_t>(anywhere ? random() % devices : static_cast<int64_t>(op) * devices / ops);
    }
    return device;
}

std::vector<float> random_priorities(int32_t ops, std::mt19937_64& random) {
    std::vector<float> priority(ops);
    for (float& p : priority) p = static_cast<float>(random() >> 40) * 0x1p-24f;
    return priority;
}

}  // namespace opgym
