#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "key_search.hpp"

namespace opgym {
namespace {

// What does not fit counts as so many times its value, or the best value that fits if that is more, plus a share of the
// overflow: it is always worse than what fits, and the way back is downhill.
constexpr double kUnfit = 1.5, kOverflow = 5.0;

}  // namespace

KeyAnnealing::KeyAnnealing(const KeyDecoder& decoder, std::vector<float> keys, uint64_t seed, Fitness target,
                           double temperature, int64_t length)
    : KeySearch(decoder, target), random_(seed), keys_(std::move(keys)), scratch_(decoder.make_solution()),
      now_(kNothing), temperature_(temperature), length_(length) {
    if (static_cast<int64_t>(keys_.size()) != decoder.num_genes()) throw std::invalid_argument("keys have the wrong length");
}

void KeyAnnealing::set(int64_t gene, float key) {
    changes_.push_back({gene, keys_[gene]});
    keys_[gene] = key;
}

// Every other allowed device is as likely.
void KeyAnnealing::move_unit() {
    const int devices = decoder_.num_devices();
    const int64_t unit = random_.below(decoder_.num_units());
    const int from = decoder_.device_of(keys_, unit);
    int others = 0;
    for (int d = 0; d < devices; ++d) others += d != from && decoder_.is_allowed(unit, d);
    if (others == 0) return change_priorities();
    auto skip = random_.below(others);
    int to = 0;
    while (to == from || !decoder_.is_allowed(unit, to) || skip-- > 0) ++to;
    for (int d = 0; d < devices; ++d) set(unit * devices + d, d == to ? 1.0f : 0.0f);
}

void KeyAnnealing::change_priorities() {
    if (decoder_.prioritised() == 0) return;
    const double kind = random_.unit();
    const int count = 1 + (kind < 0.3) + (kind < 0.1);
    for (int i = 0; i < count; ++i) {
        const int64_t gene = decoder_.first_priority() + random_.below(decoder_.prioritised());
        const double key = random_.chance(0.5) ? random_.unit() : keys_[gene] + 0.1 * (random_.unit() - 0.5);
        set(gene, static_cast<float>(key));
    }
}

double KeyAnnealing::energy(const Fitness& fitness) const {
    if (fitness.fits()) return static_cast<double>(fitness.value);
    const int64_t least = best_score().fits() ? best_score().value : 0;
    return static_cast<double>(std::max(fitness.value, least)) * (kUnfit + kOverflow * fitness.overflow_share);
}

int64_t KeyAnnealing::step(int64_t) {
    ++spent_so_far_;
    changes_.clear();
    if (started_) {
        if (decoder_.num_devices() > 1 && random_.chance(0.5))
            move_unit();
        else
            change_priorities();
    }
    const Fitness fitness = decoder_.evaluate(keys_, scratch_);
    bool accepted = !started_ || !(now_ < fitness);
    if (!accepted && temperature_ > 0) {
        const double left = std::max(0.0, 1.0 - static_cast<double>(spent_so_far_) / static_cast<double>(length_));
        const double scale = temperature_ * left * left * energy(now_);
        accepted = scale > 0 && random_.chance(std::exp((energy(now_) - energy(fitness)) / scale));
    }
    started_ = true;
    if (accepted) {
        now_ = fitness;
        found(fitness, keys_);
    } else {
        for (size_t i = changes_.size(); i-- > 0;) keys_[changes_[i].gene] = changes_[i].old;
    }
    return 1;
}

}  // namespace opgym
