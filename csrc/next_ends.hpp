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
        __m128d least = _mm_load_pd(end_);
        for (int i = 2; i < kPadded; i += 2) least = _mm_min_pd(least, _mm_load_pd(end_ + i));
        least = _mm_min_pd(least, _mm_unpackhi_pd(least, least));
        least = _mm_unpacklo_pd(least, least);
        hits = 0;
        for (int i = 0; i < kPadded; i += 2)
            hits |= static_cast<uint64_t>(_mm_movemask_pd(_mm_cmpeq_pd(_mm_load_pd(end_ + i), least))) << i;
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
