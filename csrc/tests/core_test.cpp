// Tests of the core without Python, so that it can run under the address and undefined-behaviour sanitizers: on random
// cases, every fast way of computing something equals the plain one. Prints "N passed", or the first failure.
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "../generated_graph.hpp"
#include "../incremental_peak.hpp"
#include "../order_peak.hpp"
#include "../plain_simulator.hpp"
#include "../simulator.hpp"
#include "../wide_simulator.hpp"
#include "key_search_case.hpp"
#include "order_program_case.hpp"
#include "placement_case.hpp"
#include "random_case.hpp"
#include "scheduling_case.hpp"

namespace opgym::testing {
namespace {

int passed = 0;

void expect(bool holds, const char* what, uint64_t seed) {
    if (!holds) {
        std::printf("FAILED: %s, seed %llu\n", what, static_cast<unsigned long long>(seed));
        std::exit(1);
    }
    ++passed;
}

Ranking rank_plainly(const Graph& graph, const Platform& platform, const uint8_t* device, const Priority& priority) {
    Ranking out;
    out.order.resize(graph.num_ops);
    out.rank.resize(graph.num_ops);
    std::iota(out.order.begin(), out.order.end(), 0);
    auto sort = [&](const auto& p) {
        std::stable_sort(out.order.begin(), out.order.end(), [&](int32_t a, int32_t b) { return p[a] > p[b]; });
    };
    if (const auto* p = std::get_if<std::span<const float>>(&priority)) sort(*p);
    if (const auto* p = std::get_if<std::span<const double>>(&priority)) sort(*p);
    if (std::holds_alternative<std::monostate>(priority)) {
        std::vector<int64_t> upward(graph.num_ops);
        upward_rank(graph, platform, device, upward.data());
        sort(upward);
    }
    for (int32_t i = 0; i < graph.num_ops; ++i) out.rank[out.order[i]] = i;
    return out;
}

bool equal(const RunResult& a, const RunResult& b) {
    return a.makespan_ns == b.makespan_ns && a.dynamic_peak_bytes == b.dynamic_peak_bytes &&
           a.resident_bytes == b.resident_bytes && a.busy_ns == b.busy_ns && a.transfer_ns == b.transfer_ns;
}

void check_simulators(uint64_t seed, int devices, Channel channel) {
    Dice dice(seed);
    const auto ops = static_cast<int32_t>(1 + dice.below(dice.one_in(4) ? 400 : 60));
    const auto graph = std::make_shared<const Graph>(random_graph(dice, ops));
    const Simulator simulator(graph, random_platform(dice, *graph, devices, channel));
    const Platform& platform = simulator.platform();

    constexpr int kCandidates = 5;
    std::vector<uint8_t> device;
    for (int i = 0; i < kCandidates; ++i) {
        const auto one = random_placement(dice, ops, devices);
        device.insert(device.end(), one.begin(), one.end());
    }
    const auto floats = random_priority<float>(dice, static_cast<size_t>(kCandidates) * ops);
    const auto doubles = random_priority<double>(dice, ops);
    const auto transfer_priority = random_priority<double>(dice, static_cast<size_t>(graph->num_tensors) * devices);
    for (const Priority& priority : {Priority{}, Priority{std::span(floats)}, Priority{std::span(doubles)}}) {
        std::vector<int64_t> makespan(kCandidates), peak(kCandidates * devices), resident(kCandidates * devices);
        simulator.run_batch({kCandidates, device.data(), priority, makespan.data(), peak.data(), resident.data()},
                            1 + static_cast<int>(dice.below(2)));
        for (int i = 0; i < kCandidates; ++i) {
            const std::span<const uint8_t> placed(device.data() + static_cast<size_t>(i) * ops, ops);
            Priority own = priority;
            if (const auto* p = std::get_if<std::span<const float>>(&priority)) own = p->subspan(static_cast<size_t>(i) * ops, ops);
            const Ranking ranking = rank_plainly(*graph, platform, placed.data(), own);
            const RunRequest request{placed.data(), ranking.rank.data(), ranking.order.data(), nullptr};
            const RunResult plain = run_plain(*graph, platform, request, nullptr);
            expect(equal(simulator.run(placed, own, nullptr, nullptr), plain), "run == plain", seed);
            expect(makespan[i] == plain.makespan_ns &&
                       std::equal(plain.dynamic_peak_bytes.begin(), plain.dynamic_peak_bytes.end(), &peak[i * devices]) &&
                       std::equal(plain.resident_bytes.begin(), plain.resident_bytes.end(), &resident[i * devices]),
                   "run_batch == plain", seed);

            RunResult wide(devices);
            make_wide_runner(*graph, platform)
                ->run({placed.data(), ranking.rank.data(), ranking.order.data(), &wide.makespan_ns,
                       wide.dynamic_peak_bytes.data()});
            expect(wide.makespan_ns == plain.makespan_ns && wide.dynamic_peak_bytes == plain.dynamic_peak_bytes,
                   "wide == plain", seed);
            RunRequest with_transfers = request;
            with_transfers.transfer_priority = transfer_priority.data();
            expect(equal(simulator.run(placed, own, transfer_priority.data(), nullptr),
                         run_plain(*graph, platform, with_transfers, nullptr)),
                   "run with transfer priorities == plain", seed);
        }
    }
}

// Queues that spill out of their vectors, 32-bit indices, long tail lists.
void check_large(uint64_t seed, int32_t ops, int devices, Channel channel) {
    Dice dice(seed);
    const GeneratedGraph generated = layered_random_graph(ops, seed);
    const auto graph = std::make_shared<const Graph>(generated.graph);
    const Simulator simulator(graph, uniform_platform(generated, devices, channel));
    const auto device = random_placement(dice, ops, devices);
    const auto priority = random_priority<float>(dice, ops);
    const Ranking ranking = rank_plainly(*graph, simulator.platform(), device.data(), std::span(priority));
    const RunRequest request{device.data(), ranking.rank.data(), ranking.order.data(), nullptr};
    expect(equal(simulator.run(device, std::span(priority), nullptr, nullptr),
                 run_plain(*graph, simulator.platform(), request, nullptr)),
           "large run == plain", seed);
}

// All ops ready at once, read by one op: hundreds wait.
void check_fan(uint64_t seed, int32_t width, int devices, Channel channel) {
    Dice dice(seed);
    GraphArrays a;
    for (int32_t op = 0; op <= width; ++op) a.input_ptr.push_back(0);
    for (int32_t t = 0; t < width; ++t) a.input_tensor.push_back(t);
    a.input_ptr.push_back(width);
    for (int32_t op = 0; op <= width + 1; ++op) a.output_ptr.push_back(op);
    const size_t ops = static_cast<size_t>(width) + 1;
    for (size_t t = 0; t < ops; ++t) a.tensor_bytes.push_back(dice.below(1000));
    a.workspace_bytes.assign(ops, 0);
    a.is_variable.assign(ops, 0);
    a.update_of.assign(ops, -1);
    a.is_output.assign(ops, 0);
    a.elementwise.assign(ops, 0);
    const auto graph = std::make_shared<const Graph>(std::move(a));
    const Simulator simulator(graph, random_platform(dice, *graph, devices, channel));
    const auto device = random_placement(dice, graph->num_ops, devices);
    const auto priority = random_priority<float>(dice, ops);
    const Ranking ranking = rank_plainly(*graph, simulator.platform(), device.data(), std::span(priority));
    const RunRequest request{device.data(), ranking.rank.data(), ranking.order.data(), nullptr};
    expect(equal(simulator.run(device, std::span(priority), nullptr, nullptr),
                 run_plain(*graph, simulator.platform(), request, nullptr)),
           "fan == plain", seed);
}

template <class Number>
void check_ranker(uint64_t seed, const std::vector<Number>& priority) {
    Ranker ranker;
    Ranking got;
    ranker.rank(std::span<const Number>(priority), got);
    std::vector<int32_t> order(priority.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return priority[a] > priority[b]; });
    expect(got.order == order, "radix order == stable sort", seed);
    bool inverse = true;
    for (size_t i = 0; i < order.size(); ++i) inverse = inverse && got.rank[order[i]] == static_cast<int32_t>(i);
    expect(inverse, "rank is the inverse of order", seed);
}

void check_rankers(uint64_t seed) {
    Dice dice(seed);
    const auto count = static_cast<size_t>(1 + dice.below(dice.one_in(5) ? 20'000 : 300));
    check_ranker(seed, random_priority<float>(dice, count));
    check_ranker(seed, random_priority<double>(dice, count));
    std::vector<double> close(count);  // agree in all leading digits, one far away
    for (double& p : close) p = 1 + dice.unit() * 1e-9;
    close[dice.below(static_cast<int64_t>(count))] = -1e300;
    check_ranker(seed, close);
    std::vector<int64_t> integers(count);
    for (int64_t& p : integers) p = dice.one_in(3) ? dice.below(5) : dice.below(std::numeric_limits<int64_t>::max());
    check_ranker(seed, integers);
}

// The peak of an order equals the peak of a run in that order on one device, and its moves equal a new evaluation.
void check_orders(uint64_t seed) {
    Dice dice(seed);
    const auto ops = static_cast<int32_t>(1 + dice.below(dice.one_in(4) ? 300 : 40));
    const Graph graph = random_graph(dice, ops);
    const Platform platform = random_platform(dice, graph, 1, Channel::port);
    const std::vector<uint8_t> device(ops, 0);
    const auto priority = random_priority<float>(dice, ops);
    const Ranking ranking = rank_plainly(graph, platform, device.data(), std::span(priority));
    Timeline timeline;
    const RunResult run =
        run_plain(graph, platform, {device.data(), ranking.rank.data(), ranking.order.data(), nullptr}, &timeline);
    std::vector<int32_t> order;
    for (int32_t op = 0; op < ops; ++op)
        if (!graph.is_variable[op]) order.push_back(op);
    const std::vector<int32_t> program = order;
    std::vector<int32_t> started = timeline.op_order;
    expect(started.size() == order.size(), "every op starts once", seed);
    expect(OrderPeak(graph).peak(started) == run.dynamic_peak_bytes[0], "peak of an order == simulated peak", seed);

    IncrementalPeak incremental(graph, program);
    std::vector<int32_t> expected = program;
    OrderPeak full(graph);
    for (int i = 0; i < 30 && !program.empty(); ++i) {
        const auto size = static_cast<int64_t>(expected.size());
        const int64_t from = dice.below(size);
        const int64_t to = dice.one_in(2) ? dice.below(size) : std::clamp<int64_t>(from + dice.below(9) - 4, 0, size - 1);
        std::vector<int32_t> moved = expected;
        moved.erase(moved.begin() + from);
        moved.insert(moved.begin() + to, expected[from]);
        bool legal = true;
        try {
            full.peak(moved);
        } catch (const std::invalid_argument&) {
            legal = false;
        }
        expect(incremental.move(from, to) == legal, "a move is legal if the new order is", seed);
        if (legal) expected = moved;
        expect(incremental.order() == expected, "a move moves one op", seed);
        expect(incremental.peak() == full.peak(expected), "incremental peak == full peak", seed);
    }

    std::vector<int64_t> peaks(19);
    std::vector<int32_t> orders;
    for (size_t i = 0; i < peaks.size(); ++i) orders.insert(orders.end(), i % 2 ? started.begin() : expected.begin(), i % 2 ? started.end() : expected.end());
    peaks_of_orders(graph, orders, program.size(), peaks, 2);
    bool same = true;
    for (size_t i = 0; i < peaks.size(); ++i) same = same && peaks[i] == (i % 2 ? run.dynamic_peak_bytes[0] : full.peak(expected));
    expect(same, "batch of orders == one by one", seed);
}

// The exact search for the order of least peak, on some graphs.
void check_order_program(uint64_t seed) {
    expect(wrong_with_early_byte().empty(), wrong_with_early_byte().c_str(), seed);
    for (uint64_t graph = 0; graph < 8; ++graph) {
        const std::string wrong = wrong_with_order_program(8 * seed + graph);
        expect(wrong.empty(), wrong.c_str(), 8 * seed + graph);
    }
}

// Searches over keys, on some graphs.
void check_key_searches(uint64_t seed) {
    for (uint64_t graph = 0; graph < 4; ++graph) {
        const std::string wrong = wrong_with_key_searches(4 * seed + graph);
        expect(wrong.empty(), wrong.c_str(), 4 * seed + graph);
    }
}

void check_placement_batches(uint64_t seed) {
    for (uint64_t graph = 0; graph < 4; ++graph) {
        const std::string wrong = wrong_with_placement_batches(4 * seed + graph);
        expect(wrong.empty(), wrong.c_str(), 4 * seed + graph);
    }
    expect(divides_exactly(seed), "quotients are rounded correctly", seed);
}

void check_scheduling_batches(uint64_t seed) {
    for (uint64_t graph = 0; graph < 8; ++graph) {
        const std::string wrong = wrong_with_scheduling_batches(8 * seed + graph);
        expect(wrong.empty(), wrong.c_str(), 8 * seed + graph);
    }
}

}  // namespace
}  // namespace opgym::testing

int main(int argc, char** argv) {
    using namespace opgym;
    using namespace opgym::testing;
    const uint64_t cases = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 12;
    for (uint64_t seed = 0; seed < cases; ++seed) {
        for (int devices : {1, 2, 3, 4, 6, 8, 11})
            for (Channel channel : {Channel::port, Channel::send, Channel::link, Channel::free})
                check_simulators(seed, devices, channel);
        check_orders(seed);
        check_rankers(seed);
        check_order_program(seed);
        check_key_searches(seed);
        check_placement_batches(seed);
        check_scheduling_batches(seed);
    }
    for (Channel channel : {Channel::port, Channel::send, Channel::link, Channel::free}) {
        for (int devices : {1, 2, 4, 8}) {
            check_large(1, 3'000, devices, channel);
            check_fan(2, 300, devices, channel);
        }
        check_large(3, 70'000, 4, channel);
        check_fan(4, 1'500, 2, channel);
    }
    check_large(5, 70'000, 1, Channel::send);
    std::printf("%d passed\n", passed);
    return 0;
}
