// Draws keys in [0, 1], each from a distribution of its own given by quantiles.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "random_stream.hpp"

namespace opgym {

// Between two quantiles a distribution is uniform, so that drawing takes no function whose last bit depends on the
// machine.
class GeneSampler {
   public:
    // Every gene uniform in [0, 1).
    GeneSampler() = default;
    // quantile: [rows, knots] ascending within [0, 1], at equal steps of probability from 0 to 1; row: [genes] the row
    // of each gene; uniform_share: of the chromosomes that are drawn uniformly after all.
    GeneSampler(std::vector<float> quantile, int64_t knots, std::vector<int32_t> row, double uniform_share)
        : quantile_(std::move(quantile)), steps_(static_cast<uint64_t>(knots - 1)), row_(std::move(row)),
          uniform_share_(uniform_share) {
        if (knots < 2 || quantile_.size() % static_cast<size_t>(knots) != 0)
            throw std::invalid_argument("quantile has the wrong length");
        for (int32_t r : row_)
            if (r < 0 || r >= static_cast<int64_t>(quantile_.size()) / knots)
                throw std::invalid_argument("a gene has a distribution that does not exist");
    }

    // How many genes it knows; 0: any number, all uniform.
    int64_t num_genes() const { return static_cast<int64_t>(row_.size()); }

    void draw(RandomStream& random, std::span<float> keys) const {
        if (row_.empty() || random.chance(uniform_share_)) return draw_uniformly(random, keys);
        for (size_t i = 0; i < keys.size(); ++i) {
            const uint64_t at = (random.bits() >> 32) * steps_;
            const float* low = &quantile_[row_[i] * (steps_ + 1) + (at >> 32)];
            keys[i] = low[0] + (low[1] - low[0]) * (static_cast<float>(at & 0xffffffff) * 0x1p-32f);
        }
    }

   private:
    static void draw_uniformly(RandomStream& random, std::span<float> keys) {
        size_t i = 0;
        for (; i + 1 < keys.size(); i += 2) {
            const uint64_t bits = random.bits();
            keys[i] = static_cast<float>(bits >> 40) * 0x1p-24f;
            keys[i + 1] = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24f;
        }
        if (i < keys.size()) keys[i] = static_cast<float>(random.bits() >> 40) * 0x1p-24f;
    }

    std::vector<float> quantile_;
    uint64_t steps_ = 1;
    std::vector<int32_t> row_;
    double uniform_share_ = 0;
};

}  // namespace opgym
