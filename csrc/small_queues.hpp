// Priority queues for the few keys that wait at a time: the smallest are kept sorted in a few vector registers' worth
// of memory, where adding and taking are a handful of instructions without a branch; more spill into a RankSet.
//
// A sorted vector v takes x in by max(v shifted up by one, min(v, x)); the largest falls out at the top. Unused lanes
// hold "none", which is larger than all keys, so adding "none" changes nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rank_set.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opgym {

// Keys below 2^16 - 1; the 16 smallest in vectors.
class SmallQueue16 {
   public:
    void reserve(uint64_t keys) {
        rest_.reserve(keys);
        for (int16_t& lane : lane_) lane = kTop;
    }
    bool empty() const { return lane_[0] == kTop; }

    void add(uint32_t key) { add_if(key, true); }
    // Adds a key if asked to, else nothing; without a branch.
    void add_if(uint32_t key, bool wanted) {
        key |= static_cast<uint32_t>(wanted) - 1;
        const auto biased = static_cast<int16_t>(key ^ 0x8000);
#ifdef __SSE2__
        const __m128i low = _mm_cvtsi32_si128(1 << 15);  // lane 0: smaller than all
        __m128i x = _mm_set1_epi16(biased);
        const __m128i v0 = load(0), v1 = load(1);
        store(0, _mm_max_epi16(_mm_or_si128(_mm_slli_si128(v0, 2), low), _mm_min_epi16(v0, x)));
        x = _mm_max_epi16(x, last(v0));
        store(1, _mm_max_epi16(_mm_or_si128(_mm_slli_si128(v1, 2), low), _mm_min_epi16(v1, x)));
        x = _mm_max_epi16(x, last(v1));
        const auto out = static_cast<int16_t>(_mm_cvtsi128_si32(x));
#else
        int16_t out = biased;
        for (int16_t& lane : lane_) {
            const int16_t less = std::min(lane, out);
            out = std::max(lane, out);
            lane = less;
        }
#endif
        if (out != kTop) [[unlikely]]
            rest_.add(static_cast<uint16_t>(out) ^ 0x8000);
    }

    // Removes and returns the smallest key; the queue must not be empty.
    uint32_t take_first() {
        const uint32_t key = static_cast<uint16_t>(lane_[0]) ^ 0x8000u;
        int fill = kTop;
        if (!rest_.empty()) [[unlikely]]
            fill = static_cast<int16_t>(rest_.take_first() ^ 0x8000);
#ifdef __SSE2__
        const __m128i v0 = load(0), v1 = load(1);
        store(0, _mm_or_si128(_mm_srli_si128(v0, 2), _mm_slli_si128(v1, 14)));
        store(1, _mm_insert_epi16(_mm_srli_si128(v1, 2), fill, 7));
#else
        std::copy(lane_ + 1, lane_ + kLanes, lane_);
        lane_[kLanes - 1] = static_cast<int16_t>(fill);
#endif
        return key;
    }

   private:
    static constexpr int kLanes = 16;
    static constexpr int16_t kTop = 0x7FFF;  // none; keys are biased, as vectors compare signed numbers only

#ifdef __SSE2__
    __m128i load(int i) const { return _mm_load_si128(reinterpret_cast<const __m128i*>(lane_ + 8 * i)); }
    void store(int i, __m128i v) { _mm_store_si128(reinterpret_cast<__m128i*>(lane_ + 8 * i), v); }
    static __m128i last(__m128i v) {
        const __m128i high = _mm_shufflehi_epi16(v, 0xFF);
        return _mm_unpackhi_epi64(high, high);
    }
#endif

    alignas(16) int16_t lane_[kLanes];
    RankSet<3> rest_;
};

// Keys below 2^24; the 4 * Vectors smallest in vectors. Keys are compared as floats, for which the oldest vector units
// have a minimum: positive floats are ordered as their bits are, and the bias keeps away from denormal ones.
template <int Vectors, int Levels>
class SmallQueue32 {
   public:
    static constexpr uint32_t kBias = 0x00800000;

    void reserve(uint64_t keys) {
        rest_.reserve(keys);
        for (uint32_t& lane : lane_) lane = kTop;
    }
    bool empty() const { return lane_[0] == kTop; }
    // The smallest key, or something larger than all keys.
    uint32_t first_or_none() const { return lane_[0] - kBias; }

    void add(uint32_t key) { add_biased(key + kBias); }
    // Adds a key if asked to, else nothing; without a branch.
    void add_if(uint32_t key, bool wanted) {
        add_biased(kTop + ((key + kBias - kTop) & -static_cast<uint32_t>(wanted)));
    }
    // The same for key + kBias.
    void add_biased(uint32_t biased) {
#ifdef __SSE2__
        __m128 x = _mm_castsi128_ps(_mm_set1_epi32(static_cast<int>(biased)));
        for (int i = 0; i < Vectors; ++i) {
            const __m128 v = _mm_castsi128_ps(load(i));
            const __m128 up = _mm_castsi128_ps(_mm_slli_si128(_mm_castps_si128(v), 4));
            store(i, _mm_castps_si128(_mm_max_ps(up, _mm_min_ps(v, x))));
            x = _mm_max_ps(x, _mm_shuffle_ps(v, v, 0xFF));
        }
        const auto out = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_castps_si128(x)));
#else
        uint32_t out = biased;
        for (uint32_t& lane : lane_) {
            const uint32_t less = std::min(lane, out);
            out = std::max(lane, out);
            lane = less;
        }
#endif
        if (out != kTop) [[unlikely]]
            rest_.add(out - kBias);
    }

    uint32_t take_first() {
        const uint32_t key = lane_[0] - kBias;
        uint32_t fill = kTop;
        if (!rest_.empty()) [[unlikely]]
            fill = rest_.take_first() + kBias;
#ifdef __SSE2__
        __m128i v = load(0);
        for (int i = 0; i < Vectors; ++i) {
            const __m128i next = i + 1 < Vectors ? load(i + 1) : _mm_cvtsi32_si128(static_cast<int>(fill));
            store(i, _mm_or_si128(_mm_srli_si128(v, 4), _mm_slli_si128(next, 12)));
            v = next;
        }
#else
        std::copy(lane_ + 1, lane_ + kLanes, lane_);
        lane_[kLanes - 1] = fill;
#endif
        return key;
    }

   private:
    static constexpr int kLanes = 4 * Vectors;
    static constexpr uint32_t kTop = 0x7F000000;

#ifdef __SSE2__
    __m128i load(int i) const { return _mm_load_si128(reinterpret_cast<const __m128i*>(lane_ + 4 * i)); }
    void store(int i, __m128i v) { _mm_store_si128(reinterpret_cast<__m128i*>(lane_ + 4 * i), v); }
#endif

    alignas(16) uint32_t lane_[kLanes];
    RankSet<Levels> rest_;
};

}  // namespace opgym
