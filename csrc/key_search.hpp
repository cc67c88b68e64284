// Searches over keys, and what they all share.
#pragma once

#include <limits>
#include <vector>

#include "anytime_search.hpp"
#include "key_decoder.hpp"
#include "random_stream.hpp"

namespace opgym {

class KeySearch : public AnytimeSearch<Fitness, std::vector<float>> {
   protected:
    KeySearch(const KeyDecoder& decoder, Fitness target)
        : AnytimeSearch(target, kNothing, /*steps_between_looks=*/1), decoder_(decoder) {}

    static constexpr Fitness kNothing{std::numeric_limits<double>::infinity(), std::numeric_limits<int64_t>::max()};

    const KeyDecoder& decoder_;
};

// Simulated annealing on (device, priority) pairs: a move gives a unit another device, or one to three ops another
// priority. Temperature 0 is local search.
class KeyAnnealing : public KeySearch {
   public:
    // keys: where the walk starts; the temperature is a share of the value and falls from `temperature` to 0 with the
    // square of what is left of `length` evaluations.
    KeyAnnealing(const KeyDecoder& decoder, std::vector<float> keys, uint64_t seed, Fitness target, double temperature,
                 int64_t length);

    void set_length(int64_t evaluations) { length_ = evaluations; }

   private:
    struct Change {
        int64_t gene;
        float old;
    };

    int64_t step(int64_t most) override;
    void set(int64_t gene, float key);
    void move_unit();
    void change_priorities();
    double energy(const Fitness& fitness) const;

    RandomStream random_;
    std::vector<float> keys_;
    KeyDecoder::Solution scratch_;
    std::vector<Change> changes_;
    Fitness now_;
    bool started_ = false;
    double temperature_;
    int64_t length_, spent_so_far_ = 0;
};

}  // namespace opgym
