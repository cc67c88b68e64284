#include "ranking.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace opgym {
namespace {

template <class T>
bool any_nan(std::span<const T> values) {
    bool found = false;
    for (T value : values) found |= value != value;  // no early exit: this loop is vectorised
    return found;
}

}  // namespace

bool has_nan(std::span<const float> priority) { return any_nan(priority); }
bool has_nan(std::span<const double> priority) { return any_nan(priority); }

void upward_rank(const Graph& graph, const Platform& platform, const uint8_t* device, int64_t* out) {
    for (int32_t op = graph.num_ops - 1; op >= 0; --op) {
        const int source = device[op];
        int64_t longest_tail = 0;
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) {
            for (int32_t consumer : graph.consumers(t)) {
                const int destination = device[consumer];
                const int64_t hop =
                    source == destination ? 0 : platform.transfer_ns(graph.tensor_bytes[t], source, destination);
                longest_tail = std::max(longest_tail, hop + out[consumer]);
            }
        }
        out[op] = (graph.is_variable[op] ? 0 : platform.cost_ns(op, source)) + longest_tail;
    }
}

template <class Key, class Priority>
void Ranker::sort(std::span<const Priority> priority, Ranking& out) {
    out.order.resize(priority.size());
    out.rank.resize(priority.size());
    std::iota(out.order.begin(), out.order.end(), 0);
    std::stable_sort(out.order.begin(), out.order.end(), [&](int32_t a, int32_t b) { return priority[a] > priority[b]; });
    for (size_t i = 0; i < out.order.size(); ++i) out.rank[out.order[i]] = static_cast<int32_t>(i);
}

void Ranker::rank(std::span<const float> priority, Ranking& out) { sort<uint32_t>(priority, out); }
void Ranker::rank(std::span<const double> priority, Ranking& out) { sort<uint64_t>(priority, out); }
void Ranker::rank(std::span<const int64_t> priority, Ranking& out) { sort<uint64_t>(priority, out); }

}  // namespace opgym
