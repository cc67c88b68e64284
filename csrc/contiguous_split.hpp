// The best contiguous split of a graph over a pipeline of devices (Tarnawski et al. 2020, section 5): a dynamic program
// over pairs of nested down-sets.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "contiguous_down_sets.hpp"
#include "contiguous_stage_loads.hpp"

namespace opgym {

inline constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

struct Split {
    int64_t load_ns = kUnbounded;      // kUnbounded: no contiguous split fits
    bool finished = true;              // whether the search was exhaustive
    std::vector<int32_t> stage;        // [blocks] stage of the pipeline, from its start
    std::vector<int32_t> stage_class;  // [stages] device class
};

// Finds the split with the least largest load; ties are broken in a fixed order. `interrupted` is asked several times
// a second; when it says yes, the best split found so far is returned.
Split best_contiguous_split(const DownSets& sets, const SplitCosts& costs, const std::function<bool()>& interrupted);

}  // namespace opgym
