// Many episodes that order ops, stepped in one call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scheduling_view.hpp"

namespace opgym {

// Where the rows of all slots of a batch are written, each [batch, ...]. Either `vectors`, or the other ones.
struct SchedulingRows {
    float* vectors = nullptr;    // [batch, view.slots_length()]
    int8_t* status = nullptr;    // [batch, padded nodes]
    float* figures = nullptr;    // [batch, padded nodes, kChangingFields]
    float* globals = nullptr;    // [batch, kGlobalFields]
    int32_t* slots = nullptr;    // [batch, slots]; only where actions are slots
    int8_t* action_mask = nullptr;       // [batch, actions]
    int64_t* illegal_actions = nullptr;  // [batch]
};

class SchedulingBatch {
 public:
    // One view for each graph that episodes may be about, with equal numbers of slots. padded_nodes: at least the nodes
    // of each. dense: a step is rewarded with what it takes off the potential; if not, with nothing. Throws
    // std::invalid_argument if that does not hold, or a view is null, or there is none.
    SchedulingBatch(std::vector<std::shared_ptr<const SchedulingView>> views, int64_t size, int32_t padded_nodes,
                    bool dense, int threads);

    int64_t size() const { return static_cast<int64_t>(episodes_.size()); }
    int64_t num_actions() const { return num_slots_ ? num_slots_ : padded_nodes_; }
    int32_t num_slots() const { return num_slots_; }
    int32_t padded_nodes() const { return padded_nodes_; }
    size_t vector_length() const { return views_.front()->slots_length(); }

    // All of these throw std::invalid_argument for an index that there is not.
    void reset(std::span<const int64_t> episodes, std::span<const int64_t> graphs);
    // One decision in every episode that is not skipped (skip may be null); an episode that is over must be. An illegal
    // action is replaced by the first legal one and counted. The reward of a last step lacks the return. Returns how
    // many episodes ended.
    int64_t step(std::span<const int64_t> actions, const bool* skip, double* reward, bool* terminated,
                 const SchedulingRows& rows);
    void observe(std::span<const int64_t> episodes, const SchedulingRows& rows) const;
    void write_masks(int8_t* action_mask) const;
    const PartialOrder& partial(int64_t episode) const { return at(episode).partial; }
    // Begins an episode and runs nodes at once; throws std::invalid_argument where one is not ready, and then the episode
    // has just begun.
    void replay(int64_t episode, int64_t graph, std::span<const int64_t> nodes, int64_t illegal_actions);

 private:
    struct Episode {
        explicit Episode(const SchedulingView& view) : view(&view), partial(view.start()), slots(view.num_slots()) {}
        const SchedulingView* view;
        PartialOrder partial;
        std::vector<int32_t> slots;  // nodes in order of rank
        int32_t shown = 0;           // slots that hold one
        double potential = 0;
        int64_t illegal_actions = 0;
    };

    const Episode& at(int64_t episode) const;
    const SchedulingView& view(int64_t graph) const;
    void begin(Episode& episode, const SchedulingView& view) const;
    // Takes a decision and returns what it pays.
    double decide(Episode& episode, int64_t action) const;
    int32_t read_node(Episode& episode, int64_t action) const;
    void fill_slots(Episode& episode) const;
    void write_mask(const Episode& episode, int8_t* action_mask) const;
    void write(int64_t index, const SchedulingRows& rows) const;

    std::vector<std::shared_ptr<const SchedulingView>> views_;
    std::vector<Episode> episodes_;
    int32_t num_slots_, padded_nodes_;
    bool dense_;
    int threads_;
};

}  // namespace opgym
