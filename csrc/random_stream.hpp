// A small generator whose numbers are the same on every machine: xoshiro256++ (Blackman, Vigna 2019), seeded by
// splitmix64.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace opgym {

class RandomStream {
   public:
    explicit RandomStream(uint64_t seed) {
        for (uint64_t& word : state_) {
            uint64_t z = seed += 0x9e3779b97f4a7c15;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
            z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
            word = z ^ (z >> 31);
        }
    }

    uint64_t bits() {
        const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
        const uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    // Uniform in [0, 1).
    double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

    // 0 .. count - 1, each as likely as the others to within count / 2^32; count is at least 1.
    int64_t below(int64_t count) { return static_cast<int64_t>(((bits() >> 32) * static_cast<uint64_t>(count)) >> 32); }

    bool chance(double probability) { return unit() < probability; }

   private:
    std::array<uint64_t, 4> state_;
};

}  // namespace opgym
