// The simulator of one graph on one platform: checks candidates, ranks their ops and runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include "fast_runners.hpp"
#include "graph.hpp"
#include "platform.hpp"
#include "ranking.hpp"
#include "residents.hpp"
#include "run_result.hpp"

namespace opgym {

// Priorities as a caller gives them: none (upward rank), or one float per op.
using Priority = std::variant<std::monostate, std::span<const float>, std::span<const double>>;

// Candidates that share nothing but the graph; every row of an array is one candidate.
struct Batch {
    int64_t size = 0;
    const uint8_t* device = nullptr;  // [size, ops]
    Priority priority;                // [ops] or [size, ops]
    int64_t* makespan_ns = nullptr;         // out [size]
    int64_t* dynamic_peak_bytes = nullptr;  // out [size, devices]
    int64_t* resident_bytes = nullptr;      // out [size, devices]
    int64_t* busy_ns = nullptr;             // out [size, devices], or null
    int64_t* transfer_ns = nullptr;         // out [size, devices], null if busy_ns is
};

// All methods are safe to call from several threads at once.
class Simulator {
   public:
    Simulator(std::shared_ptr<const Graph> graph, Platform platform);
    ~Simulator();

    const Graph& graph() const { return *graph_; }
    const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }
    const Platform& platform() const { return *platform_; }

    // Throw std::invalid_argument for a device out of range, a NaN or a wrong length, before anything runs.
    RunResult run(std::span<const uint8_t> device, const Priority& priority, const double* transfer_priority,
                  Timeline* timeline) const;
    void run_batch(const Batch& batch, int threads) const;
    // One candidate of known lengths: returns the makespan; both outputs are [devices]. transfer_priority may be null.
    int64_t evaluate(const uint8_t* device, const Priority& priority, const double* transfer_priority,
                     int64_t* dynamic_peak_bytes, int64_t* resident_bytes) const;
    std::vector<int64_t> upward_rank(std::span<const uint8_t> device) const;

   private:
    struct Worker;
    class WorkerLoan;
    void check_placement(std::span<const uint8_t> device) const;
    void check_devices(std::span<const uint8_t> device) const;
    void check_priority(const Priority& priority, size_t length) const;
    void check_transfer_priority(const double* transfer_priority) const;
    CandidateRunner& runner_for(const double* transfer_priority, const WorkerLoan& worker) const;

    std::shared_ptr<const Graph> graph_;
    std::unique_ptr<const Platform> platform_;  // does not move: runners refer to it
    std::unique_ptr<const RunnerFactory> factory_;
    std::unique_ptr<const Residents> residents_;
    // Scratch of past calls, for the next ones.
    mutable std::mutex idle_workers_mutex_;
    mutable std::vector<std::unique_ptr<Worker>> idle_workers_;
};

}  // namespace opgym
