// Many episodes of the sequential placement game that step together; see envs/vector.py for what a caller may expect.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "placement_estimate.hpp"
#include "placement_observation.hpp"

namespace opgym {

class PlacementBatch {
   public:
    using Tables = std::shared_ptr<const PlacementTables>;

    // Where a step writes, row by row; either `node` or all others of the observation.
    struct Rows {
        double* reward = nullptr;           // [slots]
        bool* terminated = nullptr;         // [slots]
        int64_t* illegal_actions = nullptr; // [slots]
        int8_t* action_mask = nullptr;      // [slots, devices]
        float* node = nullptr;              // [slots, node_length]
        int32_t* placement = nullptr;       // [slots, padded_groups]
        float* devices = nullptr;           // [slots, devices, kDeviceFields]
        int32_t* current = nullptr;         // [slots]
        float* progress = nullptr;          // [slots]
    };

    // All graphs have one number of devices. padded_groups: at least the groups of each. dense: rewards are differences
    // of the potential. Throws std::invalid_argument if these do not fit together.
    PlacementBatch(std::vector<Tables> graphs, int64_t slots, int64_t padded_groups, bool dense, int threads);

    int64_t slots() const { return static_cast<int64_t>(episodes_.size()); }
    int64_t padded_groups() const { return padded_groups_; }
    int num_devices() const { return graphs_[0]->num_devices; }
    size_t node_length() const { return opgym::node_length(*graphs_[0]); }

    // Throw std::invalid_argument for a slot or graph that does not exist.
    void reset(int64_t slot, int64_t graph);
    void observe(int64_t slot, const Rows& rows);
    // Begins an episode and takes decisions; also throws where one is not possible, and then the episode has just begun.
    void replay(int64_t slot, int64_t graph, std::span<const int64_t> decisions, int64_t illegal_actions);
    // Device of each group that is decided.
    std::span<const int8_t> decisions(int64_t slot) const;

    // actions: [slots]; an illegal one puts the group on its lowest allowed device. skip: [slots] or null. An episode that
    // is over is skipped, too. Returns how many episodes ended; their reward is 0, or the potential before the step if
    // rewards are dense: the caller adds the return.
    int64_t step(const int64_t* actions, const bool* skip, const Rows& rows);
    void action_masks(int8_t* out) const;

   private:
    struct Episode {
        PlacementEstimate estimate;
        int32_t step = 0;
        int64_t illegal_actions = 0;
        double potential = 0;

        bool over() const { return step == estimate.tables().num_groups; }
        int32_t group() const { return over() ? -1 : step; }
    };

    Episode& episode(int64_t slot);
    const PlacementTables& tables(int64_t graph) const;
    // Returns what the step pays.
    double decide(Episode& episode, int64_t action) const;
    void write(Episode& episode, int64_t slot, const Rows& rows) const;
    void write_mask(const Episode& episode, int8_t* out) const;
    int64_t step_some(int64_t begin, int64_t end, const int64_t* actions, const bool* skip, const Rows& rows);

    std::vector<Tables> graphs_;
    std::vector<Episode> episodes_;
    int64_t padded_groups_;
    bool dense_;
    int threads_;
};

}  // namespace opgym
