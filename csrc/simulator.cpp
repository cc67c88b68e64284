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

// Sums over all ops and transfers; they do not depend on when things happen.
void busy_times(const Graph& graph, const Platform& platform, const uint8_t* device, int64_t* busy_ns, int64_t* transfer_ns) {
    std::fill_n(busy_ns, platform.num_devices, int64_t{0});
    std::fill_n(transfer_ns, platform.num_devices, int64_t{0});
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        const int source = device[op];
        if (!graph.is_variable[op]) busy_ns[source] += platform.cost_ns(op, source);
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) {
            uint64_t destinations = 0;
            for (int32_t consumer : graph.consumers(t)) destinations |= uint64_t{1} << device[consumer];
            for (uint64_t m = destinations & ~(uint64_t{1} << source); m; m &= m - 1)
                transfer_ns[source] += platform.transfer_ns(graph.tensor_bytes[t], source, __builtin_ctzll(m));
        }
    }
}

}  // namespace

// What one thread needs to run candidates one after the other, or two at a time.
struct Simulator::Worker {
    Ranker ranker;
    Ranking first, second;
    std::vector<int64_t> upward;
    std::unique_ptr<CandidateRunner> runner;
    std::unique_ptr<CandidateRunner> wide_runner;  // made when the first transfer priorities come

    void rank(const Graph& graph, const Platform& platform, const uint8_t* device, const Priority& priority, Ranking& out) {
        if (const auto* p = std::get_if<std::span<const float>>(&priority)) return ranker.rank(*p, out);
        if (const auto* p = std::get_if<std::span<const double>>(&priority)) return ranker.rank(*p, out);
        upward.resize(graph.num_ops);
        opgym::upward_rank(graph, platform, device, upward.data());
        ranker.rank(std::span<const int64_t>(upward), out);
    }
};

// A worker for the time of one call.
class Simulator::WorkerLoan {
   public:
    explicit WorkerLoan(const Simulator& simulator) : simulator_(simulator) {
        {
            const std::lock_guard lock(simulator.idle_workers_mutex_);
            if (!simulator.idle_workers_.empty()) {
                worker_ = std::move(simulator.idle_workers_.back());
                simulator.idle_workers_.pop_back();
            }
        }
        if (worker_) return;
        worker_ = std::make_unique<Worker>();
        worker_->runner = simulator.factory_->make_runner();
    }
    WorkerLoan(WorkerLoan&&) = default;
    ~WorkerLoan() {
        if (!worker_) return;
        const std::lock_guard lock(simulator_.idle_workers_mutex_);
        simulator_.idle_workers_.push_back(std::move(worker_));
    }
    Worker* operator->() const { return worker_.get(); }

   private:
    const Simulator& simulator_;
    std::unique_ptr<Worker> worker_;
};

Simulator::Simulator(std::shared_ptr<const Graph> graph, Platform platform)
    : graph_(std::move(graph)),
      platform_(std::make_unique<const Platform>(std::move(platform))),
      factory_(std::make_unique<const RunnerFactory>(*graph_, *platform_)),
      residents_(std::make_unique<const Residents>(*graph_)) {}

Simulator::~Simulator() = default;

void Simulator::check_devices(std::span<const uint8_t> device) const {
    uint8_t most = 0;
    for (uint8_t d : device) most = std::max(most, d);
    if (most < platform_->num_devices) return;
    const auto bad = std::find_if(device.begin(), device.end(), [&](uint8_t d) { return d >= platform_->num_devices; });
    throw std::invalid_argument("op " + std::to_string((bad - device.begin()) % graph_->num_ops) + " is on device " +
                                std::to_string(*bad) + "; devices are 0 to " + std::to_string(platform_->num_devices - 1));
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

void Simulator::check_transfer_priority(const double* transfer_priority) const {
    if (transfer_priority &&
        has_nan(std::span(transfer_priority, static_cast<size_t>(graph_->num_tensors) * platform_->num_devices)))
        throw std::invalid_argument("a transfer priority is NaN, which has no place in an order");
}

// Only the wide runner reads priorities of transfers, where transfers wait for each other at all.
CandidateRunner& Simulator::runner_for(const double* transfer_priority, const WorkerLoan& worker) const {
    if (!transfer_priority || platform_->num_devices == 1 || platform_->channel == Channel::free) return *worker->runner;
    if (!worker->wide_runner) worker->wide_runner = factory_->make_wide_runner();
    return *worker->wide_runner;
}

RunResult Simulator::run(std::span<const uint8_t> device, const Priority& priority, const double* transfer_priority,
                         Timeline* timeline) const {
    check_placement(device);
    check_priority(priority, graph_->num_ops);
    check_transfer_priority(transfer_priority);

    const WorkerLoan worker(*this);
    Ranking& ranking = worker->first;
    worker->rank(*graph_, *platform_, device.data(), priority, ranking);
    if (timeline)
        return run_plain(*graph_, *platform_, {device.data(), ranking.rank.data(), ranking.order.data(), transfer_priority},
                         timeline);
    RunResult result(platform_->num_devices);
    const Candidate candidate{device.data(),       ranking.rank.data(),
                              ranking.order.data(), &result.makespan_ns,
                              result.dynamic_peak_bytes.data(), transfer_priority};
    runner_for(transfer_priority, worker).run(candidate);
    residents_->bytes(device.data(), platform_->num_devices, result.resident_bytes.data());
    busy_times(*graph_, *platform_, device.data(), result.busy_ns.data(), result.transfer_ns.data());
    return result;
}

std::vector<int64_t> Simulator::upward_rank(std::span<const uint8_t> device) const {
    check_placement(device);
    std::vector<int64_t> out(graph_->num_ops);
    opgym::upward_rank(*graph_, *platform_, device.data(), out.data());
    return out;
}

int64_t Simulator::evaluate(const uint8_t* device, const Priority& priority, const double* transfer_priority,
                            int64_t* dynamic_peak_bytes, int64_t* resident_bytes) const {
    check_devices({device, static_cast<size_t>(graph_->num_ops)});
    check_priority(priority, graph_->num_ops);
    check_transfer_priority(transfer_priority);
    const WorkerLoan worker(*this);
    Ranking& ranking = worker->first;
    worker->rank(*graph_, *platform_, device, priority, ranking);
    int64_t makespan_ns = 0;
    runner_for(transfer_priority, worker)
        .run({device, ranking.rank.data(), ranking.order.data(), &makespan_ns, dynamic_peak_bytes, transfer_priority});
    residents_->bytes(device, platform_->num_devices, resident_bytes);
    return makespan_ns;
}

void Simulator::run_batch(const Batch& batch, int threads) const {
    const size_t ops = graph_->num_ops;
    const int devices = platform_->num_devices;
    check_devices({batch.device, batch.size * ops});
    check_priority(batch.priority, batch.size * ops);
    auto prepare = [&](const WorkerLoan& worker, int64_t i, Ranking& ranking) {
        const uint8_t* device = batch.device + i * ops;
        worker->rank(*graph_, *platform_, device, row_of(batch.priority, i, ops), ranking);
        residents_->bytes(device, devices, batch.resident_bytes + i * devices);
        if (batch.busy_ns)
            busy_times(*graph_, *platform_, device, batch.busy_ns + i * devices, batch.transfer_ns + i * devices);
        return Candidate{device, ranking.rank.data(), ranking.order.data(), batch.makespan_ns + i,
                         batch.dynamic_peak_bytes + i * devices};
    };
    run_parallel((batch.size + 1) / 2, threads, [&] {
        return [&, worker = WorkerLoan(*this)](int64_t pair) {
            const Candidate first = prepare(worker, 2 * pair, worker->first);
            if (2 * pair + 1 == batch.size) return worker->runner->run(first);
            worker->runner->run_two(first, prepare(worker, 2 * pair + 1, worker->second));
        };
    });
}

}  // namespace opgym
