// The packed states of four ops, read and changed together.
//
// From the top, a state holds the rank of an op, one bit for its device, and the number of inputs that it misses; the
// dummy that pads lists of ops has the state 0: no device, so nothing happens to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "inline.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opgym {

// Keys of waiting transfers: rank * 4 + slot, biased as SmallQueue32 wants them.
inline constexpr uint32_t kKeyBias = 0x00800000;

// D devices (bits), MissingBits for the count.
template <int D, int MissingBits>
class StateQuad {
   public:
    static constexpr uint32_t kMissingMask = (1u << MissingBits) - 1;
    static constexpr uint32_t device_bit(int device) { return 1u << (MissingBits + device); }
    static uint32_t rank_of(uint32_t state) { return state >> (MissingBits + D); }

#ifdef __SSE2__
    template <class Id>
    StateQuad(const uint32_t* states, const Id* op) {
        const __m128i s0 = _mm_cvtsi32_si128(static_cast<int>(states[op[0]]));
        const __m128i s1 = _mm_cvtsi32_si128(static_cast<int>(states[op[1]]));
        const __m128i s2 = _mm_cvtsi32_si128(static_cast<int>(states[op[2]]));
        const __m128i s3 = _mm_cvtsi32_si128(static_cast<int>(states[op[3]]));
        lanes_ = _mm_unpacklo_epi64(_mm_unpacklo_epi32(s0, s1), _mm_unpacklo_epi32(s2, s3));
    }

    // A bit for each device with one of the ops.
    uint32_t devices() const {
        const __m128i two = _mm_or_si128(lanes_, _mm_unpackhi_epi64(lanes_, lanes_));
        const __m128i one = _mm_or_si128(two, _mm_shuffle_epi32(two, 1));
        return static_cast<uint32_t>(_mm_cvtsi128_si32(one)) >> MissingBits & ((1u << D) - 1);
    }

    // Counts down the ops on a device. Returns a bit for each of them, and in `ready` a bit for those that miss
    // nothing any more.
    uint32_t arrive(int device, uint32_t& ready) {
        const __m128i bit = _mm_set1_epi32(static_cast<int>(device_bit(device)));
        const __m128i here = _mm_cmpeq_epi32(_mm_and_si128(lanes_, bit), bit);
        lanes_ = _mm_add_epi32(lanes_, here);  // here is -1 or 0
        const __m128i left = _mm_and_si128(lanes_, _mm_set1_epi32(static_cast<int>(kMissingMask)));
        const __m128i done = _mm_and_si128(_mm_cmpeq_epi32(left, _mm_setzero_si128()), here);
        ready = static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(done)));
        _mm_store_si128(reinterpret_cast<__m128i*>(state_), lanes_);
        return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(here)));
    }

    // Counts down all ops, wherever they are. Returns in `ready` a bit for those that miss nothing any more.
    void arrive_everywhere(uint32_t& ready) {
        const __m128i zero = _mm_setzero_si128();
        const __m128i dummy = _mm_cmpeq_epi32(lanes_, zero);
        lanes_ = _mm_sub_epi32(_mm_add_epi32(lanes_, _mm_set1_epi32(-1)), dummy);
        const __m128i left = _mm_and_si128(lanes_, _mm_set1_epi32(static_cast<int>(kMissingMask)));
        const __m128i done = _mm_andnot_si128(dummy, _mm_cmpeq_epi32(left, zero));
        ready = static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(done)));
        _mm_store_si128(reinterpret_cast<__m128i*>(state_), lanes_);
    }
    // How many ops of some quads are on each device.
    class Tally {
       public:
        Tally() { minus_.fill(_mm_setzero_si128()); }
        OPGYM_INLINE void add(const StateQuad& quad) {
            for (int d = 0; d < D; ++d) {
                const __m128i bit = _mm_set1_epi32(static_cast<int>(device_bit(d)));
                minus_[d] = _mm_add_epi32(minus_[d], _mm_cmpeq_epi32(_mm_and_si128(quad.lanes_, bit), bit));
            }
        }
        uint32_t on(int device) const {
            const __m128i two = _mm_add_epi32(minus_[device], _mm_unpackhi_epi64(minus_[device], minus_[device]));
            const __m128i one = _mm_add_epi32(two, _mm_shuffle_epi32(two, 1));
            return static_cast<uint32_t>(-_mm_cvtsi128_si32(one));
        }

       private:
        std::array<__m128i, D> minus_;
    };

    // Biased keys of the transfers for which these ops wait; `slots` has 2 bits for each.
    void make_keys(uint8_t slots) {
        static constexpr std::array<uint32_t, 256> kSpread = [] {
            std::array<uint32_t, 256> spread{};
            for (uint32_t i = 0; i < 256; ++i)
                spread[i] = (i & 3) | (i >> 2 & 3) << 8 | (i >> 4 & 3) << 16 | (i >> 6 & 3) << 24;
            return spread;
        }();
        const __m128i zero = _mm_setzero_si128();
        const __m128i bytes = _mm_cvtsi32_si128(static_cast<int>(kSpread[slots]));
        const __m128i slot = _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
        const __m128i rank = _mm_slli_epi32(_mm_srli_epi32(lanes_, MissingBits + D), 2);
        keys_ = _mm_add_epi32(_mm_add_epi32(rank, slot), _mm_set1_epi32(kKeyBias));
    }
    // The smallest key of the ops on a device, or something larger than all keys.
    uint32_t best_key(int device) const {
        const __m128i bit = _mm_set1_epi32(static_cast<int>(device_bit(device)));
        const __m128i elsewhere = _mm_cmpeq_epi32(_mm_and_si128(lanes_, bit), _mm_setzero_si128());
        const __m128 key =
            _mm_castsi128_ps(_mm_or_si128(keys_, _mm_and_si128(elsewhere, _mm_set1_epi32(0x40000000))));
        const __m128 two = _mm_min_ps(key, _mm_movehl_ps(key, key));
        const __m128 one = _mm_min_ps(two, _mm_shuffle_ps(two, two, 1));
        return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_castps_si128(one)));
    }
#else
    template <class Id>
    StateQuad(const uint32_t* states, const Id* op) {
        for (int i = 0; i < 4; ++i) state_[i] = states[op[i]];
    }
    uint32_t devices() const {
        return (state_[0] | state_[1] | state_[2] | state_[3]) >> MissingBits & ((1u << D) - 1);
    }
    uint32_t arrive(int device, uint32_t& ready) {
        uint32_t found = 0;
        ready = 0;
        for (int i = 0; i < 4; ++i) {
            const uint32_t here = (state_[i] & device_bit(device)) != 0;
            state_[i] -= here;
            found |= here << i;
            ready |= (here & ((state_[i] & kMissingMask) == 0)) << i;
        }
        return found;
    }
    void arrive_everywhere(uint32_t& ready) {
        ready = 0;
        for (int i = 0; i < 4; ++i) {
            const uint32_t real = state_[i] != 0;
            state_[i] -= real;
            ready |= (real & ((state_[i] & kMissingMask) == 0)) << i;
        }
    }
    class Tally {
       public:
        void add(const StateQuad& quad) {
            for (uint32_t state : quad.state_)
                for (int d = 0; d < D; ++d) count_[d] += (state & device_bit(d)) != 0;
        }
        uint32_t on(int device) const { return count_[device]; }

       private:
        std::array<uint32_t, D> count_{};
    };
    void make_keys(uint8_t slots) {
        for (int i = 0; i < 4; ++i) keys_[i] = (rank_of(state_[i]) << 2 | (slots >> 2 * i & 3)) + kKeyBias;
    }
    uint32_t best_key(int device) const {
        uint32_t best = 0x40000000;
        for (int i = 0; i < 4; ++i)
            if (state_[i] & device_bit(device)) best = std::min(best, keys_[i]);
        return best;
    }
#endif

    // After arrive() or arrive_everywhere().
    uint32_t rank(int i) const { return rank_of(state_[i]); }
    int device(int i) const { return __builtin_ctz(state_[i] >> MissingBits); }
    template <class Id>
    void store(uint32_t* states, const Id* op) const {
        for (int i = 0; i < 4; ++i) states[op[i]] = state_[i];
    }

   private:
    alignas(16) uint32_t state_[4];
#ifdef __SSE2__
    __m128i lanes_, keys_;
#else
    uint32_t keys_[4];
#endif
};

}  // namespace opgym
