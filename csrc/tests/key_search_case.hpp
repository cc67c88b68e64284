// Searches over keys on random cases: what they find is worth what they say, for any number of threads and of calls.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "../brkga.hpp"
#include "../key_reconciliation.hpp"
#include "../key_search.hpp"
#include "../plain_simulator.hpp"
#include "random_case.hpp"

namespace opgym::testing {

// What keys are worth in the plain simulator.
inline Fitness plain_fitness(const Simulator& simulator, const KeyDecoder& decoder, const std::vector<float>& keys,
                             const std::vector<int64_t>& capacity_bytes) {
    KeyDecoder::Solution solution = decoder.make_solution();
    decoder.decode(keys, solution);
    Ranker ranker;
    Ranking ranking;
    ranker.rank(std::span<const float>(solution.priority), ranking);
    const RunResult run = run_plain(simulator.graph(), simulator.platform(),
                                    {solution.device.data(), ranking.rank.data(), ranking.order.data(),
                                     solution.transfer_priority.empty() ? nullptr : solution.transfer_priority.data()},
                                    nullptr);
    double overflow_share = 0;
    for (size_t d = 0; d < capacity_bytes.size(); ++d)
        overflow_share = std::max(overflow_share,
                                  static_cast<double>(run.dynamic_peak_bytes[d] + run.resident_bytes[d] - capacity_bytes[d]) /
                                      static_cast<double>(capacity_bytes[d]));
    return {overflow_share, run.makespan_ns};
}

inline bool same(const Fitness& a, const Fitness& b) { return !(a < b) && !(b < a); }

// Empty if nothing is.
inline std::string wrong_with_key_searches(uint64_t seed) {
    Dice dice(seed);
    const auto ops = static_cast<int32_t>(1 + dice.below(60));
    const auto devices = static_cast<int>(1 + dice.below(4));
    const auto graph = std::make_shared<const Graph>(random_graph(dice, ops));
    const Simulator simulator(graph, random_platform(dice, *graph, devices, static_cast<Channel>(dice.below(4))));
    const int64_t units = 1 + dice.below(ops);
    std::vector<int32_t> unit(ops), transfers;
    for (int32_t& u : unit) u = static_cast<int32_t>(dice.below(units));
    std::vector<uint8_t> allowed(units * devices, 1);
    for (uint8_t& a : allowed) a = !dice.one_in(4);
    for (int64_t u = 0; u < units; ++u) allowed[u * devices + dice.below(devices)] = 1;
    for (int32_t t = graph->num_sources; t < graph->num_tensors; ++t)
        if (dice.one_in(2)) transfers.push_back(t);
    const std::vector<int64_t> capacity_bytes(devices, dice.one_in(2) ? 500 : std::numeric_limits<int64_t>::max());
    const KeyDecoder decoder(simulator, KeyObjective::makespan, unit, allowed, transfers, capacity_bytes);

    const Fitness unreachable{0, -1};
    std::vector<std::vector<float>> found;
    for (const int threads : {1, 3}) {
        BrkgaOptions options{12, 4, 3, 0.7, 2, 2, 1, 4, threads};
        Brkga search(decoder, options, seed, unreachable, std::vector<float>(decoder.num_genes(), 0.5f), GeneSampler(),
                     GeneSampler({0, 0.25f, 1}, 3, std::vector<int32_t>(decoder.num_genes(), 0), 0.1), {});
        for (const int64_t call : {1, 30, 169})
            if (search.run(call, 1e9) != call) return "BRKGA spends what it may";
        if (!same(search.best_score(), plain_fitness(simulator, decoder, search.best(), capacity_bytes)))
            return "BRKGA's best == plain";
        found.push_back(search.best());
    }
    if (found[0] != found[1]) return "BRKGA is the same for any number of threads";

    KeyAnnealing annealing(decoder, found[0], seed, unreachable, 0.05, 200);
    if (annealing.run(200, 1e9) != 200) return "annealing spends what it may";
    if (!same(annealing.best_score(), plain_fitness(simulator, decoder, annealing.best(), capacity_bytes)))
        return "annealing's best == plain";
    if (plain_fitness(simulator, decoder, found[0], capacity_bytes) < annealing.best_score())
        return "annealing is no worse than its start";

    const Reconciled reconciled = reconcile(decoder, annealing.best(), found[0], seed);
    if (annealing.best_score() < reconciled.fitness) return "reconciled keys are no worse";
    if (!same(reconciled.fitness, plain_fitness(simulator, decoder, reconciled.keys, capacity_bytes)))
        return "reconciled keys == plain";
    for (size_t gene = 0; gene < found[0].size(); ++gene)
        if (reconciled.keys[gene] != found[0][gene] && reconciled.keys[gene] != annealing.best()[gene])
            return "reconciled keys are one or the other";
    return "";
}

}  // namespace opgym::testing
