// Of all keys that are worth as much, those nearest to preferred ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "key_decoder.hpp"

namespace opgym {

struct Reconciled {
    std::vector<float> keys;
    Fitness fitness;
    int64_t evaluations;
};

// Takes over preferred keys, one unit's affinities or one other key at a time in random order, wherever the result is
// not worse. Searches drift where nothing counts; this takes back what they have changed without need.
// keys, preferred: [genes], no NaN. Throws std::invalid_argument if they have the wrong length.
Reconciled reconcile(const KeyDecoder& decoder, std::vector<float> keys, std::span<const float> preferred,
                     uint64_t seed);

}  // namespace opgym
