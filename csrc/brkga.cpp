#include "brkga.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "parallel.hpp"

namespace opgym {
namespace {

// With several threads, a step is to last about this long, so that limits of time are met.
constexpr double kStepSeconds = 0.02;

// A seed for each individual; neighbours have nothing in common (the finaliser of MurmurHash3, Appleby).
uint64_t mixed(uint64_t seed, uint64_t individual) {
    uint64_t z = seed ^ (individual * 0xd6e8feb86659fd93);
    z = (z ^ (z >> 33)) * 0xff51afd7ed558ccd;
    z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53;
    return z ^ (z >> 33);
}

uint16_t in_half_words(double probability) {
    return static_cast<uint16_t>(std::min(65535.0, std::round(probability * 65536.0)));
}

}  // namespace

Brkga::Brkga(const KeyDecoder& decoder, const BrkgaOptions& options, uint64_t seed, Fitness target,
             std::vector<float> starts, GeneSampler initial, GeneSampler mutant, std::span<const double> inherit)
    : KeySearch(decoder, target), options_(options), seed_(seed), num_genes_(decoder.num_genes()),
      initial_(std::move(initial)), mutant_(std::move(mutant)), starts_(std::move(starts)), best_of_round_(kNothing) {
    const BrkgaOptions& o = options_;
    if (o.elites < 1 || o.mutants < 0 || o.elites + o.mutants > o.population || o.elites == o.population ||
        o.populations < 1 || o.threads < 1 || o.exchanged < 0 ||
        (o.populations - 1) * static_cast<int64_t>(o.exchanged) > o.population - o.elites)
        throw std::invalid_argument("these sizes make no population");
    if (num_genes_ > 0 && (starts_.size() % num_genes_ != 0 ||
                           starts_.size() / num_genes_ > static_cast<size_t>(o.populations) * o.population))
        throw std::invalid_argument("starts have the wrong shape");
    for (const GeneSampler* sampler : {&initial_, &mutant_})
        if (sampler->num_genes() != 0 && sampler->num_genes() != num_genes_)
            throw std::invalid_argument("a distribution has the wrong number of genes");
    if (!inherit.empty() && static_cast<int64_t>(inherit.size()) != num_genes_)
        throw std::invalid_argument("inherit has the wrong length");
    inherit_.assign(num_genes_, in_half_words(o.bias));
    std::transform(inherit.begin(), inherit.end(), inherit_.begin(), in_half_words);

    const int32_t children = o.population - o.elites;
    const int32_t rows_each = o.population + children;
    genes_.resize(static_cast<size_t>(o.populations) * rows_each * num_genes_);
    fitness_.assign(static_cast<size_t>(o.populations) * rows_each, kNothing);
    for (int32_t p = 0; p < o.populations; ++p) {
        Population population{std::vector<int32_t>(o.population), std::vector<int32_t>(children)};
        std::iota(population.parents.begin(), population.parents.end(), p * rows_each);
        std::iota(population.children.begin(), population.children.end(), p * rows_each + o.population);
        population_.push_back(std::move(population));
    }
    for (int t = 0; t < o.threads; ++t)
        worker_.push_back({decoder.make_solution(), std::vector<uint64_t>((num_genes_ + 3) / 4)});
}

// The first generation makes its parents, later ones make children.
int64_t Brkga::children_of_a_generation() const {
    return options_.populations * static_cast<int64_t>(options_.population - (first_generation_ ? 0 : options_.elites));
}

int32_t Brkga::row_of_child(int64_t child) const {
    const Population& population = population_[child % options_.populations];
    return (first_generation_ ? population.parents : population.children)[child / options_.populations];
}

int64_t Brkga::slice(int64_t most) const {
    if (options_.threads == 1) return 1;
    const int64_t fits = seconds_per_evaluation_ > 0 ? static_cast<int64_t>(kStepSeconds / seconds_per_evaluation_) : 0;
    return std::min(std::max<int64_t>(fits, options_.threads), most);
}

int64_t Brkga::step(int64_t most) {
    const int64_t first = made_, count = slice(std::min(most, children_of_a_generation() - made_));
    if (options_.threads == 1) {
        make_and_evaluate(first, worker_[0]);
    } else {
        const double began = seconds_since_began();
        std::atomic<int> next_worker{0};
        run_parallel(count, options_.threads, [&] {
            return [&, &worker = worker_[next_worker++]](int64_t i) { make_and_evaluate(first + i, worker); };
        });
        seconds_per_evaluation_ = (seconds_since_began() - began) / static_cast<double>(count);
    }
    made_ += count;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = row_of_child(first + i);
        if (!(fitness_[row] < best_score())) continue;
        found(fitness_[row], {genes(row).begin(), genes(row).end()}, i);
    }
    if (made_ == children_of_a_generation()) end_generation();
    return count;
}

void Brkga::make_and_evaluate(int64_t child, Worker& worker) {
    RandomStream random(mixed(seed_, static_cast<uint64_t>(born_ + child)));
    const int32_t row = row_of_child(child);
    const std::span<float> keys = genes(row);
    const int64_t crossed = options_.population - options_.elites - options_.mutants;
    if (first_generation_) {
        const size_t start = child * num_genes_;
        if (start < starts_.size())
            std::copy_n(starts_.begin() + static_cast<int64_t>(start), num_genes_, keys.begin());
        else
            initial_.draw(random, keys);
    } else if (child / options_.populations < crossed) {
        cross(random, population_[child % options_.populations], keys, worker);
    } else {
        mutant_.draw(random, keys);
    }
    fitness_[row] = decoder_.evaluate(keys, worker.scratch);
}

// One parent is an elite, the other is not.
void Brkga::cross(RandomStream& random, const Population& population, std::span<float> child, Worker& worker) {
    const std::span<float> elite = genes(population.parents[random.below(options_.elites)]);
    const std::span<float> other =
        genes(population.parents[options_.elites + random.below(options_.population - options_.elites)]);
    for (uint64_t& bits : worker.bits) bits = random.bits();
    const uint64_t* bits = worker.bits.data();
    for (size_t i = 0; i < child.size(); ++i) {
        const auto drawn = static_cast<uint16_t>(bits[i / 4] >> (16 * (i % 4)));
        child[i] = drawn < inherit_[i] ? elite[i] : other[i];
    }
}

void Brkga::sort_parents(Population& population) {
    std::stable_sort(population.parents.begin(), population.parents.end(),
                     [&](int32_t a, int32_t b) { return fitness_[a] < fitness_[b]; });
}

// The elites stay, the children take the place of the others.
void Brkga::end_generation() {
    for (Population& population : population_) {
        if (!first_generation_)
            std::swap_ranges(population.parents.begin() + options_.elites, population.parents.end(),
                             population.children.begin());
        sort_parents(population);
    }
    born_ += children_of_a_generation();
    made_ = 0;
    ++generation_;
    starts_.clear();
    first_generation_ = false;
    Fitness best = kNothing;
    for (const Population& population : population_) best = std::min(best, fitness_[population.parents[0]]);
    generations_without_gain_ = best < best_of_round_ ? 0 : generations_without_gain_ + 1;
    best_of_round_ = std::min(best, best_of_round_);
    if (options_.restart_after > 0 && generations_without_gain_ >= options_.restart_after) {
        first_generation_ = true;
        generations_without_gain_ = 0;
        best_of_round_ = kNothing;
    } else if (population_.size() > 1 && options_.exchange_every > 0 && generation_ % options_.exchange_every == 0) {
        exchange();
    }
}

// The best of every population take the place of the worst of every other one.
void Brkga::exchange() {
    std::vector<std::vector<int32_t>> best;
    for (const Population& population : population_)
        best.emplace_back(population.parents.begin(), population.parents.begin() + options_.exchanged);
    for (size_t to = 0; to < population_.size(); ++to) {
        size_t place = population_[to].parents.size();
        for (size_t from = 0; from < population_.size(); ++from) {
            if (from == to) continue;
            for (int32_t row : best[from]) {
                const int32_t replaced = population_[to].parents[--place];
                std::copy_n(genes(row).begin(), num_genes_, genes(replaced).begin());
                fitness_[replaced] = fitness_[row];
            }
        }
    }
    for (Population& population : population_) sort_parents(population);
}

}  // namespace opgym
