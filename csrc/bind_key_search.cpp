#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>

#include "brkga.hpp"
#include "key_decoder.hpp"
#include "key_reconciliation.hpp"
#include "key_search.hpp"
#include "numpy_arrays.hpp"

namespace opgym {
namespace {

using namespace nb::literals;
using FitnessPair = std::tuple<double, int64_t>;  // overflow share, value

Fitness to_fitness(const FitnessPair& pair) { return {std::get<0>(pair), std::get<1>(pair)}; }
FitnessPair to_pair(const Fitness& fitness) { return {fitness.overflow_share, fitness.value}; }

std::vector<float> keys_of(const KeyDecoder& decoder, const In1<float>& keys) {
    expect_shape(keys, {static_cast<size_t>(decoder.num_genes())}, "keys");
    return to_vector<float>(keys);
}

nb::tuple decode(const KeyDecoder& decoder, const In1<float>& keys) {
    KeyDecoder::Solution solution = decoder.make_solution();
    decoder.decode(keys_of(decoder, keys), solution);
    return nb::make_tuple(to_numpy(std::move(solution.device)), to_numpy(std::move(solution.priority)),
                          to_numpy(std::move(solution.transfer_priority)));
}

// Runs without the GIL, so that callers can share chromosomes out over threads.
nb::tuple evaluate_all(const KeyDecoder& decoder, const In2<float>& keys) {
    const auto genes = static_cast<size_t>(decoder.num_genes());
    expect_shape(keys, {keys.shape(0), genes}, "keys");
    std::vector<double> overflow_share(keys.shape(0));
    std::vector<int64_t> value(keys.shape(0));
    {
        const nb::gil_scoped_release released;
        KeyDecoder::Solution scratch = decoder.make_solution();
        for (size_t i = 0; i < value.size(); ++i) {
            const Fitness fitness = decoder.evaluate(std::span(keys.data() + i * genes, genes), scratch);
            overflow_share[i] = fitness.overflow_share;
            value[i] = fitness.value;
        }
    }
    return nb::make_tuple(to_numpy(std::move(overflow_share)), to_numpy(std::move(value)));
}

nb::tuple reconciled(const KeyDecoder& decoder, const In1<float>& keys, const In1<float>& preferred, uint64_t seed) {
    std::vector<float> from = keys_of(decoder, keys);
    const std::vector<float> to = keys_of(decoder, preferred);
    Reconciled result;
    {
        const nb::gil_scoped_release released;
        result = reconcile(decoder, std::move(from), to, seed);
    }
    return nb::make_tuple(to_numpy(std::move(result.keys)), to_pair(result.fitness), result.evaluations);
}

void bind_key_decoder(nb::module_& m) {
    nb::class_<KeyDecoder>(m, "KeyDecoder", "Keys in [0, 1] as a placement with priorities.")
        .def("__init__",
             [](KeyDecoder* self, const Simulator& simulator, int objective, const In1<int32_t>& unit,
                const In2<bool>& allowed, const In1<int32_t>& transfer_tensor, const In1<int64_t>& capacity_bytes) {
                 if (objective < 0 || objective > 2) throw std::invalid_argument("an unknown objective");
                 if (allowed.shape(1) != static_cast<size_t>(simulator.platform().num_devices))
                     throw std::invalid_argument("allowed has the wrong number of columns");
                 new (self) KeyDecoder(simulator, static_cast<KeyObjective>(objective), to_vector<int32_t>(unit),
                                       to_vector<uint8_t>(allowed), to_vector<int32_t>(transfer_tensor),
                                       to_vector<int64_t>(capacity_bytes));
             },
             nb::keep_alive<1, 2>(), "simulator"_a, "objective"_a, "unit"_a.noconvert(), "allowed"_a.noconvert(),
             "transfer_tensor"_a.noconvert(), "capacity_bytes"_a.noconvert())
        .def_prop_ro("num_genes", &KeyDecoder::num_genes)
        .def("decode", &decode, "keys"_a.noconvert(),
             nb::sig("def decode(self, keys: NDArray[numpy.float32]) -> tuple[NDArray[numpy.uint8], "
                     "NDArray[numpy.float32], NDArray[numpy.float64]]"),
             "Device and priority of each op, and priority of each (tensor, device), flat; empty without such keys.")
        .def(
            "evaluate",
            [](const KeyDecoder& decoder, const In1<float>& keys) {
                KeyDecoder::Solution scratch = decoder.make_solution();
                return to_pair(decoder.evaluate(keys_of(decoder, keys), scratch));
            },
            "keys"_a.noconvert(), "Overflow share (0: it fits) and value.")
        .def("evaluate_all", &evaluate_all, "keys"_a.noconvert(),
             nb::sig("def evaluate_all(self, keys: NDArray[numpy.float32]) -> tuple[NDArray[numpy.float64], "
                     "NDArray[numpy.int64]]"),
             "The same of every row of ``keys``, ``[rows, genes]``: overflow shares and values, each ``[rows]``.")
        .def("reconcile", &reconciled, "keys"_a.noconvert(), "preferred"_a.noconvert(), "seed"_a,
             nb::sig("def reconcile(self, keys: NDArray[numpy.float32], preferred: NDArray[numpy.float32], seed: int) "
                     "-> tuple[NDArray[numpy.float32], tuple[float, int], int]"),
             "Keys with as much of ``preferred`` as is not worse: keys, overflow share and value, evaluations.");
}

// A distribution as Python gives it: quantiles [rows, knots], and the row of each gene.
using Distribution = std::tuple<In2<float>, In1<int32_t>, double>;

GeneSampler to_sampler(const std::optional<Distribution>& distribution) {
    if (!distribution) return {};
    const auto& [quantile, row, uniform_share] = *distribution;
    return GeneSampler(to_vector<float>(quantile), static_cast<int64_t>(quantile.shape(1)), to_vector<int32_t>(row),
                       uniform_share);
}

Numpy1<float> draw_keys(const Distribution& distribution, int64_t chromosomes, uint64_t seed) {
    const GeneSampler sampler = to_sampler(distribution);
    RandomStream random(seed);
    std::vector<float> keys(chromosomes * sampler.num_genes());
    for (int64_t i = 0; i < chromosomes; ++i)
        sampler.draw(random, std::span(keys).subspan(i * sampler.num_genes(), sampler.num_genes()));
    return to_numpy(std::move(keys));
}

void bind_searches(nb::module_& m) {
    m.def("draw_keys", &draw_keys, "distribution"_a, "chromosomes"_a, "seed"_a,
          "Keys drawn as BRKGA draws its mutants, [chromosomes * genes].");
    nb::class_<KeySearch>(m, "KeySearch", "A search over keys that goes on where the last call left it.")
        .def("run", &KeySearch::run, "evaluations"_a, "seconds"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Spends up to this many evaluations within a time; returns how many it spent.")
        .def_prop_ro("over", &KeySearch::over, "Whether there is nothing left to do.")
        .def_prop_ro("proven", &KeySearch::proven, "Whether nothing better can exist.")
        .def_prop_ro("best_keys", [](const KeySearch& self) { return to_numpy(self.best()); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "improvements",
            [](const KeySearch& self) {
                std::vector<std::tuple<int64_t, double, double, int64_t>> rows;
                for (const auto& i : self.improvements())
                    rows.emplace_back(i.evaluations, i.seconds, i.score.overflow_share, i.score.value);
                return rows;
            },
            "New bests of the last call: (evaluations and seconds since it began, overflow share, value).");
    nb::class_<Brkga, KeySearch>(m, "Brkga", "The biased random-key genetic algorithm.")
        .def("__init__",
             [](Brkga* self, const KeyDecoder& decoder, uint64_t seed, const FitnessPair& target, int32_t population,
                int32_t elites, int32_t mutants, double bias, int32_t populations, int32_t exchange_every,
                int32_t exchanged, int32_t restart_after, int threads, const In2<float>& starts,
                const std::optional<Distribution>& initial, const std::optional<Distribution>& mutant,
                const std::optional<In1<double>>& inherit) {
                 expect_shape(starts, {starts.shape(0), static_cast<size_t>(decoder.num_genes())}, "starts");
                 const BrkgaOptions options{population,     elites,    mutants,       bias,   populations,
                                            exchange_every, exchanged, restart_after, threads};
                 std::span<const double> elite_share;
                 if (inherit) elite_share = {inherit->data(), inherit->size()};
                 new (self) Brkga(decoder, options, seed, to_fitness(target), to_vector<float>(starts),
                                  to_sampler(initial), to_sampler(mutant), elite_share);
             },
             nb::keep_alive<1, 2>(), "decoder"_a, "seed"_a, "target"_a, nb::kw_only(), "population"_a, "elites"_a,
             "mutants"_a, "bias"_a, "populations"_a, "exchange_every"_a, "exchanged"_a, "restart_after"_a, "threads"_a,
             "starts"_a.noconvert(), "initial"_a.none(), "mutant"_a.none(), "inherit"_a.none())
        .def_prop_ro("generation", &Brkga::generation, "Complete generations.");
    nb::class_<KeyAnnealing, KeySearch>(m, "KeyAnnealing", "Simulated annealing on (device, priority) pairs.")
        .def("__init__",
             [](KeyAnnealing* self, const KeyDecoder& decoder, const In1<float>& keys, uint64_t seed,
                const FitnessPair& target, double temperature, int64_t length) {
                 new (self) KeyAnnealing(decoder, keys_of(decoder, keys), seed, to_fitness(target), temperature, length);
             },
             nb::keep_alive<1, 2>(), "decoder"_a, "keys"_a.noconvert(), "seed"_a, "target"_a, "temperature"_a, "length"_a)
        .def("set_length", &KeyAnnealing::set_length, "evaluations"_a);
}

}  // namespace

void bind_key_search_core(nb::module_& m) {
    bind_key_decoder(m);
    bind_searches(m);
}

}  // namespace opgym

void bind_key_search(nanobind::module_& m) { opgym::bind_key_search_core(m); }
