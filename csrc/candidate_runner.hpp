// One way of simulating candidates of one graph on one platform; holds the scratch memory of one thread.
#pragma once

#include <cstdint>

namespace opgym {

struct Candidate {
    const uint8_t* device;                      // [ops]
    const int32_t* rank;                        // [ops]
    const int32_t* order;                       // [ops]
    int64_t* makespan_ns;                       // out [1]
    int64_t* dynamic_peak_bytes;                // out [devices]
    const double* transfer_priority = nullptr;  // [tensors, devices], or null; only the wide simulator reads it
};

class CandidateRunner {
   public:
    virtual ~CandidateRunner() = default;
    virtual void run(const Candidate& candidate) = 0;
    // Two candidates at once, where that is faster than one after the other.
    virtual void run_two(const Candidate& first, const Candidate& second) {
        run(first);
        run(second);
    }
};

}  // namespace opgym
