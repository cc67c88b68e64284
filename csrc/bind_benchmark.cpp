// What `opgym benchmark simulator` times: loops over rotated candidates, so that the branch predictor cannot learn one,
// each beside a first-in-first-out topological sort of the same graph, so that a ratio holds on a shared machine.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "generated_graph.hpp"
#include "order_peak.hpp"
#include "ranking.hpp"
#include "simulator.hpp"

namespace nb = nanobind;

namespace opgym {
namespace {

double thread_cpu_ns() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// A loop to time: runs `repeats` items and returns something that depends on all of them.
using Loop = std::function<uint64_t(int64_t repeats)>;

class Benchmark {
   public:
    Benchmark(int32_t ops, double seconds)
        : generated_(layered_random_graph(ops, 42)),
          graph_(std::make_shared<const Graph>(generated_.graph)),
          seconds_(seconds),
          candidates_(std::clamp<int64_t>(300'000 / ops, 8, 512)),
          random_(7),
          missing_(ops),
          queue_(ops + 1),
          next_queue_(ops + 1) {
        for (int32_t op = 0; op < ops; ++op) {
            parents_.push_back(static_cast<int32_t>(graph_->inputs(op).size()));
            if (parents_[op] == 0) sources_.push_back(op);
        }
        for (int64_t i = 0; i < candidates_; ++i) {
            const auto priority = random_priorities(ops, random_);
            priorities_.insert(priorities_.end(), priority.begin(), priority.end());
        }
    }

    // What the sort cannot do without: every row of the consumers, in order, and nothing else.
    std::pair<double, double> stream() {
        return beside_sort([&](int64_t repeats) {
            uint64_t sum = 0;
            const int32_t* consumer_ptr = graph_->consumer_ptr.data();
            const int32_t* consumer_op = graph_->consumer_op.data();
            for (int64_t i = 0; i < repeats; ++i)
                for (int32_t op = 0; op < graph_->num_ops; ++op)
                    for (int32_t c = consumer_ptr[op]; c < consumer_ptr[op + 1]; ++c)
                        sum += static_cast<uint64_t>(consumer_op[c]);
            return sum;
        });
    }

    std::pair<double, double> rank() {
        return beside_sort([&, ranker = Ranker(), ranking = Ranking()](int64_t repeats) mutable {
            uint64_t sum = 0;
            for (int64_t i = 0; i < repeats; ++i) {
                ranker.rank(std::span(next_priority(), graph_->num_ops), ranking);
                sum += ranking.rank[0];
            }
            return sum;
        });
    }

    std::pair<double, double> peak_of_orders(bool batch) {
        const auto ops = static_cast<size_t>(graph_->num_ops);
        std::vector<int32_t> orders;
        for (int64_t i = 0; i < candidates_; ++i) append_order(orders);
        const int64_t block = batch ? OrderPeak::kLanes : 1;
        const int64_t blocks = candidates_ / block;
        return beside_sort([&, evaluator = OrderPeak(*graph_), next = int64_t{0}](int64_t repeats) mutable {
            uint64_t sum = 0;
            int64_t peaks[OrderPeak::kLanes];
            for (int64_t i = 0; i < repeats; i += block) {
                const std::span rows(orders.data() + next * block * ops, block * ops);
                if (batch)
                    evaluator.peaks(rows, peaks);
                else
                    peaks[0] = evaluator.peak(rows);
                sum += static_cast<uint64_t>(peaks[0]);
                next = (next + 1) % blocks;
            }
            return sum;
        });
    }

    // Ranking included: what one evaluation costs a search.
    std::pair<double, double> simulate(int devices, int channel, bool clustered) {
        const auto ops = static_cast<size_t>(graph_->num_ops);
        const Simulator simulator(graph_, uniform_platform(generated_, devices, static_cast<Channel>(channel)));
        const auto kind = clustered ? PlacementKind::clustered : PlacementKind::random;
        std::vector<uint8_t> placements;
        for (int64_t i = 0; i < candidates_; ++i) {
            const auto device = generated_placement(graph_->num_ops, devices, kind, random_);
            placements.insert(placements.end(), device.begin(), device.end());
        }
        std::vector<int64_t> makespan(candidates_), peak(candidates_ * devices), resident(candidates_ * devices);
        return beside_sort([&, next = int64_t{0}](int64_t repeats) mutable {
            uint64_t sum = 0;
            while (repeats > 0) {
                const int64_t size = std::min(repeats, candidates_ - next);
                const Priority priority = std::span<const float>(priorities_.data() + next * ops, size * ops);
                simulator.run_batch(
                    {size, placements.data() + next * ops, priority, makespan.data(), peak.data(), resident.data()}, 1);
                sum += static_cast<uint64_t>(makespan[0]);
                next = (next + size) % candidates_;
                repeats -= size;
            }
            return sum;
        });
    }

   private:
    const float* next_priority() {
        next_ = (next_ + 1) % candidates_;
        return priorities_.data() + next_ * graph_->num_ops;
    }

    // The yardstick: Kahn's sort (1962), first in, first out. The queue is two lists, of which one is read while the
    // other is written, and an op is written to its end always but counted only when it is ready: without guesses
    // of the branch predictor, and without loads that wait for stores to the same list, the sort takes about twice as
    // long as reading the graph.
    uint64_t topological_sort(int64_t repeats) {
        uint64_t sum = 0;
        const int32_t* consumer_ptr = graph_->consumer_ptr.data();
        const int32_t* consumer_op = graph_->consumer_op.data();
        int32_t* missing = missing_.data();
        for (int64_t i = 0; i < repeats; ++i) {
            std::copy(parents_.begin(), parents_.end(), missing);
            std::copy(sources_.begin(), sources_.end(), queue_.begin());
            int32_t* now = queue_.data();
            int32_t* next = next_queue_.data();
            for (auto size = static_cast<int32_t>(sources_.size()); size > 0;) {
                int32_t next_size = 0;
                for (int32_t k = 0; k < size; ++k) {
                    const int32_t op = now[k];
                    for (int32_t c = consumer_ptr[op]; c < consumer_ptr[op + 1]; ++c) {
                        const int32_t consumer = consumer_op[c];
                        next[next_size] = consumer;
                        next_size += --missing[consumer] == 0;
                    }
                }
                sum += static_cast<uint64_t>(now[size - 1]);
                std::swap(now, next);
                size = next_size;
            }
        }
        return sum;
    }

    // A random topological order: by random priorities.
    void append_order(std::vector<int32_t>& orders) {
        const float* priority = next_priority();
        const auto worse = [&](int32_t a, int32_t b) { return priority[a] < priority[b]; };
        std::vector<int32_t> missing = parents_, ready;
        for (int32_t op = 0; op < graph_->num_ops; ++op)
            if (missing[op] == 0) ready.push_back(op);
        std::make_heap(ready.begin(), ready.end(), worse);
        while (!ready.empty()) {
            std::pop_heap(ready.begin(), ready.end(), worse);
            const int32_t op = ready.back();
            ready.pop_back();
            orders.push_back(op);
            for (int32_t consumer : graph_->consumers(op)) {
                if (--missing[consumer] > 0) continue;
                ready.push_back(consumer);
                std::push_heap(ready.begin(), ready.end(), worse);
            }
        }
    }

    // ns per op of the loop, and of the yardstick in the same moments: the two alternate in short units, and of each
    // the 20th percentile counts, which interruptions do not reach.
    std::pair<double, double> beside_sort(const Loop& loop) {
        const nb::gil_scoped_release release;
        const Loop sort = [&](int64_t repeats) { return topological_sort(repeats); };
        const int64_t loop_repeats = unit_of(loop), sort_repeats = unit_of(sort);
        std::vector<double> loop_ns, sort_ns;
        const double begin = thread_cpu_ns();
        while (thread_cpu_ns() - begin < seconds_ * 1e9 || loop_ns.size() < 5) {
            loop_ns.push_back(unit_ns(loop, loop_repeats));
            sort_ns.push_back(unit_ns(sort, sort_repeats));
        }
        return {low_quantile(loop_ns) / graph_->num_ops, low_quantile(sort_ns) / graph_->num_ops};
    }

    double unit_ns(const Loop& loop, int64_t repeats) {
        const double begin = thread_cpu_ns();
        sink_ = sink_ + loop(repeats);
        return (thread_cpu_ns() - begin) / static_cast<double>(repeats);
    }

    // Repeats that take about a millisecond, in whole blocks of orders; warms up on the way.
    int64_t unit_of(const Loop& loop) {
        unit_ns(loop, OrderPeak::kLanes);
        const double ns = unit_ns(loop, OrderPeak::kLanes);
        const auto repeats = static_cast<int64_t>(1e6 / ns) / OrderPeak::kLanes * OrderPeak::kLanes;
        return std::max<int64_t>(repeats, ns > 1e6 ? 2 : OrderPeak::kLanes);
    }

    static double low_quantile(std::vector<double>& values) {
        std::sort(values.begin(), values.end());
        return values[values.size() / 5];
    }

    const GeneratedGraph generated_;
    const std::shared_ptr<const Graph> graph_;
    const double seconds_;
    const int64_t candidates_;
    std::mt19937_64 random_;
    std::vector<int32_t> parents_, missing_, queue_, next_queue_;  // [ops]
    std::vector<int32_t> sources_;
    std::vector<float> priorities_;                   // [candidates, ops]
    int64_t next_ = 0;
    volatile uint64_t sink_ = 0;
};

}  // namespace
}  // namespace opgym

void bind_benchmark(nb::module_& m) {
    using namespace nb::literals;
    using opgym::Benchmark;
    nb::class_<Benchmark>(m, "Benchmark",
                          "Times the core on a generated graph; every method returns thread CPU time in ns per op, and "
                          "that of a first-in-first-out topological sort in the same moments.")
        .def(nb::init<int32_t, double>(), "ops"_a, "seconds"_a)
        .def("stream", &Benchmark::stream, "Reading the consumers of every op once, row by row.")
        .def("rank", &Benchmark::rank, "Ranking float32 priorities.")
        .def("peak_of_orders", &Benchmark::peak_of_orders, "batch"_a, "Peak memory of given orders.")
        .def("simulate", &Benchmark::simulate, "devices"_a, "channel"_a, "clustered"_a,
             "One evaluation with memory, ranking included.");
}
