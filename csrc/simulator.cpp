#include "simulator.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "parallel.hpp"
#include "plain_simulator.hpp"

namespace opgym {
namespace {

size_t length_of(const Priority& priority) {
    if (const auto* p = std::get_if<std::span<const float>>(&priority)) return p->size();
    if (const auto* p = std::get_if<std::span<const double>>(&priority)) return p->size();
    return 0;
}

Priority row_of(const Priority& priority, int64_t row, size_t ops) {
    if (const auto* p = std::get_if<std::span<const float>>(&priority))
        return p->size() == ops ? *p : p->subspan(row * ops, ops);
    if (const auto* p = std::get_if<std::span<const double>>(&priority))
        return p->size() == ops ? *p : p->subspan(row * ops, ops);
    return {};
}

// What one thread needs to run candidates one after the other.
struct Worker {
    Ranker ranker;
    Ranking ranking;
    std::vector<int64_t> upward;

    void rank(const Graph& graph, const Platform& platform, const uint8_t* device, const Priority& priority) {
        if (const auto* p = std::get_if<std::span<const float>>(&priority)) return ranker.rank(*p, ranking);
        if (const auto* p = std::get_if<std::span<const double>>(&priority)) return ranker.rank(*p, ranking);
        upward.resize(graph.num_ops);
        upward_rank(graph, platform, device, upward.data());
        ranker.rank(std::span<const int64_t>(upward), ranking);
    }
};

}  // namespace

Simulator::Simulator(std::shared_ptr<const Graph> graph, Platform platform)
    : graph_(std::move(graph)), platform_(std::move(platform)) {}

void Simulator::check_devices(std::span<const uint8_t> device) const {
    uint8_t most = 0;
    for (uint8_t d : device) most = std::max(most, d);
    if (most < platform_.num_devices) return;
    const auto bad = std::find_if(device.begin(), device.end(), [&](uint8_t d) { return d >= platform_.num_devices; });
    throw std::invalid_argument("op " + std::to_string((bad - device.begin()) % graph_->num_ops) + " is on device " +
                                std::to_string(*bad) + "; devices are 0 to " + std::to_string(platform_.num_devices - 1));
}

void Simulator::check_placement(std::span<const uint8_t> device) const {
    if (device.size() != static_cast<size_t>(graph_->num_ops))
        throw std::invalid_argument(std::to_string(device.size()) + " devices given; expected one for each of the " +
                                    std::to_string(graph_->num_ops) + " ops");
    check_devices(device);
}

void Simulator::check_priority(const Priority& priority, size_t length) const {
    if (std::holds_alternative<std::monostate>(priority)) return;
    const size_t given = length_of(priority), ops = graph_->num_ops;
    if (given != ops && given != length)
        throw std::invalid_argument(std::to_string(given) + " priorities; expected " + std::to_string(ops));
    bool nan = false;
    if (const auto* p = std::get_if<std::span<const float>>(&priority)) nan = has_nan(*p);
    if (const auto* p = std::get_if<std::span<const double>>(&priority)) nan = has_nan(*p);
    if (nan) throw std::invalid_argument("a priority is NaN, which has no place in an order");
}

RunResult Simulator::run(std::span<const uint8_t> device, const Priority& priority, const double* transfer_priority,
                         Timeline* timeline) const {
    check_placement(device);
    check_priority(priority, graph_->num_ops);
    if (transfer_priority &&
        has_nan(std::span(transfer_priority, static_cast<size_t>(graph_->num_tensors) * platform_.num_devices)))
        throw std::invalid_argument("a transfer priority is NaN, which has no place in an order");
    Worker worker;
    worker.rank(*graph_, platform_, device.data(), priority);
    const RunRequest request{device.data(), worker.ranking.rank.data(), worker.ranking.order.data(), transfer_priority};
    return run_plain(*graph_, platform_, request, timeline);
}

std::vector<int64_t> Simulator::upward_rank(std::span<const uint8_t> device) const {
    check_placement(device);
    std::vector<int64_t> out(graph_->num_ops);
    opgym::upward_rank(*graph_, platform_, device.data(), out.data());
    return out;
}

void Simulator::run_batch(const Batch& batch, int threads) const {
    const size_t ops = graph_->num_ops, devices = platform_.num_devices;
    check_devices({batch.device, batch.size * ops});
    check_priority(batch.priority, batch.size * ops);
    run_parallel(batch.size, threads, [&] {
        return [&, worker = Worker()](int64_t i) mutable {
            const uint8_t* device = batch.device + i * ops;
            worker.rank(*graph_, platform_, device, row_of(batch.priority, i, ops));
            const RunRequest request{device, worker.ranking.rank.data(), worker.ranking.order.data(), nullptr};
            const RunResult result = run_plain(*graph_, platform_, request, nullptr);
            batch.makespan_ns[i] = result.makespan_ns;
            std::copy_n(result.dynamic_peak_bytes.begin(), devices, batch.dynamic_peak_bytes + i * devices);
            std::copy_n(result.resident_bytes.begin(), devices, batch.resident_bytes + i * devices);
        };
    });
}

}  // namespace opgym
