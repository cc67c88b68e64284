// The biased random-key genetic algorithm (Goncalves and Resende 2011) over placements and their priorities.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gene_sampler.hpp"
#include "key_search.hpp"

namespace opgym {

struct BrkgaOptions {
    int32_t population = 100, elites = 20, mutants = 15;  // of each population
    double bias = 0.7;                                    // probability that a gene comes from the elite parent
    int32_t populations = 1;
    int32_t exchange_every = 0;  // generations between exchanges of elites among the populations; 0: never
    int32_t exchanged = 0;       // elites that each population gives to each other one
    int32_t restart_after = 0;   // generations without a better best after which all populations begin anew; 0: never
    int threads = 1;
};

// The course depends on the seed alone: every individual draws from a stream of its own.
class Brkga : public KeySearch {
   public:
    // starts: rows of genes that are in the first generation, dealt to the populations in turn; inherit: probability of
    // the elite's gene, [genes], or empty: `bias` for all; initial and mutant: how new individuals are drawn.
    Brkga(const KeyDecoder& decoder, const BrkgaOptions& options, uint64_t seed, Fitness target,
          std::vector<float> starts, GeneSampler initial, GeneSampler mutant, std::span<const double> inherit);

    int64_t generation() const { return generation_; }

   private:
    // Rows of genes_. A population has `population` parents, best first, and as many rows as it makes children.
    struct Population {
        std::vector<int32_t> parents, children;
    };
    struct Worker {
        KeyDecoder::Solution scratch;
        std::vector<uint64_t> bits;
    };

    int64_t step(int64_t most) override;
    std::span<float> genes(int32_t row) { return {&genes_[row * num_genes_], static_cast<size_t>(num_genes_)}; }
    int64_t children_of_a_generation() const;
    int32_t row_of_child(int64_t child) const;
    int64_t slice(int64_t most) const;
    void make_and_evaluate(int64_t child, Worker& worker);
    void cross(RandomStream& random, const Population& population, std::span<float> child, Worker& worker);
    void end_generation();
    void exchange();
    void sort_parents(Population& population);

    BrkgaOptions options_;
    uint64_t seed_;
    int64_t num_genes_;
    GeneSampler initial_, mutant_;
    std::vector<uint16_t> inherit_;  // [genes] in 1 / 2^16; a random half-word below it takes the elite's gene
    std::vector<float> starts_;      // [starts, genes], used up by the first generation
    std::vector<float> genes_;       // [rows, genes]
    std::vector<Fitness> fitness_;   // [rows]
    std::vector<Population> population_;
    std::vector<Worker> worker_;  // [threads]
    bool first_generation_ = true;
    int64_t made_ = 0;        // children of this generation that are evaluated
    int64_t born_ = 0;        // individuals of all generations before
    int64_t generation_ = 0;  // complete ones
    int64_t generations_without_gain_ = 0;
    Fitness best_of_round_;
    double seconds_per_evaluation_ = 0;
};

}  // namespace opgym
