// The set of items between two given ones after which the least bytes are live: a minimum cut.
#pragma once

#include <cstdint>
#include <vector>

#include "order_program_model.hpp"

namespace opgym {

// Live bytes are a submodular function of the set of items that have run: a tensor costs its bytes once one starter is
// in the set, and gives them back once all enders are. So the least of them is the value of a minimum cut (a closure
// problem, Picard 1976), found here with Dinic's algorithm. Scratch is reused.
class LeastLive {
   public:
    // direct: of each item, those that come immediately before it. Both must outlive this.
    LeastLive(const OrderModel& model, const Lists& direct);

    // Poses the problem: sets that contain `lower` and lie within `upper`; both closed under `before`.
    void pose(const uint64_t* lower, const uint64_t* upper);
    // Only sets with, or without, this item (which is in `upper` and not in `lower`).
    void force(int32_t item, bool inside);
    // The least of (live bytes after a set) - (live bytes after `lower`). Stops early, with something less than that
    // but above `enough`, when it must be above.
    int64_t solve(int64_t enough);
    // After solve: the largest or smallest set that attains it. bits: a row of words.
    void largest(uint64_t* bits);
    void smallest(uint64_t* bits);

    // Edges looked at since the beginning.
    int64_t work() const { return work_; }

    // The flow found so far, to go on from after something else was forced.
    void save();
    void restore();

   private:
    struct Edge {
        int32_t to, next;
        int64_t room;
    };

    int32_t add_node();
    void add_edge(int32_t from, int32_t to, int64_t room);
    bool find_levels();
    int64_t push(int32_t node, int64_t most);
    void mark(int32_t root, bool backwards);

    const OrderModel& model_;
    const Lists& direct_;
    std::vector<int32_t> node_of_;   // [items] -1: not between the two sets
    std::vector<int32_t> between_;   // items
    std::vector<uint64_t> lower_;
    std::vector<Edge> edges_, saved_edges_;
    std::vector<int32_t> first_, level_, at_, queue_;
    std::vector<int64_t> gain_;      // [items] what having it in the set gives back, by itself
    std::vector<int32_t> touched_;   // tensors
    std::vector<uint8_t> is_touched_;
    int64_t offset_ = 0, flow_ = 0, saved_flow_ = 0, work_ = 0;
};

}  // namespace opgym
