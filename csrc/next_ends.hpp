// The end times of a few resources (devices, channels): which are next?
#pragma once

#include <cstdint>
#include <limits>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opgym {

// Up to 64 resources scanned in vectors, which beats any heap. Times are doubles because the smallest vector units
// have a minimum for them; callers keep all times below 2^53, where doubles are exact integers.
template <int Count>
class NextEnds {
   public:
    static constexpr double kNever = std::numeric_limits<double>::infinity();

    void clear() {
        for (double& end : end_) end = kNever;
    }
    void set(int resource, double end) { end_[resource] = end; }

    // The smallest end time; `hits` gets a bit for each resource that has it.
    double next(uint64_t& hits) const {
#ifdef __SSE2__
        // Halves are loaded one by one: a load of both would have to wait for the store of one that set() just did.
        __m128d pair[kPadded / 2];
        for (int i = 0; i < kPadded / 2; ++i) pair[i] = _mm_loadh_pd(_mm_load_sd(end_ + 2 * i), end_ + 2 * i + 1);
        __m128d least = pair[0];
        for (int i = 1; i < kPadded / 2; ++i) least = _mm_min_pd(least, pair[i]);
        least = _mm_min_pd(least, _mm_shuffle_pd(least, least, 1));
        hits = 0;
        for (int i = 0; i < kPadded / 2; ++i)
            hits |= static_cast<uint64_t>(_mm_movemask_pd(_mm_cmpeq_pd(pair[i], least))) << (2 * i);
        return _mm_cvtsd_f64(least);
#else
        double least = end_[0];
        for (int i = 1; i < kPadded; ++i) least = end_[i] < least ? end_[i] : least;
        hits = 0;
        for (int i = 0; i < kPadded; ++i) hits |= static_cast<uint64_t>(end_[i] == least) << i;
        return least;
#endif
    }

   private:
    static constexpr int kPadded = (Count + 1) / 2 * 2;
    alignas(16) double end_[kPadded];
};

}  // namespace opgym
