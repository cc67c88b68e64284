// Beam search over the sets of ops that have run. Such a set decides what is live, so of two ways to the same set the
// one with the smaller peak is enough.
#pragma once

#include <cstdint>
#include <vector>

#include "order_search.hpp"

namespace opgym {

// One evaluation is as many (set, next op) pairs as the graph has ops to order: what the evaluation of an order looks
// at.
class OrderBeam : public OrderSearch {
   public:
    // order: only better ones are of interest. widths: of the beams, one after the other.
    OrderBeam(const Graph& graph, std::span<const int32_t> order, int64_t target, std::vector<int64_t> widths);

   private:
    // A ready op: what running it needs on top of what is live, and by how much it changes that.
    struct Ready {
        int32_t op;
        int64_t need, net;
    };
    struct State {
        int64_t peak, live;
        uint64_t hash;
        int32_t node;                     // in history_
        int32_t ready_begin, ready_end;   // in Layer::ready
    };
    // All states after the same number of ops.
    struct Layer {
        std::vector<State> states;
        std::vector<uint64_t> done;  // [states, words_] ops that have run, and variables
        std::vector<Ready> ready;
        void clear() {
            states.clear();
            done.clear();
            ready.clear();
        }
    };
    struct Candidate {
        int64_t peak, live;
        uint64_t hash;
        int32_t state, entry;  // whose op is added: in layer_.states, layer_.ready
    };
    struct Node {
        int32_t before, op;
    };

    bool spend_one() override;
    void start_beam();
    void end_beam();
    void expand(int32_t state);
    void add_candidate(const Candidate& candidate);
    bool same_set(const Candidate& a, const Candidate& b) const;
    void next_layer();
    void add_state(const Candidate& candidate);
    Ready ready_entry(int32_t op, const uint64_t* done) const;
    bool is_ready(int32_t op, const uint64_t* done) const;

    const std::vector<int64_t> widths_;
    size_t beam_ = 0;
    bool truncated_ = false;  // whether this beam has dropped a set
    int64_t length_, words_;
    std::vector<uint64_t> hash_of_;                     // [ops]
    std::vector<int64_t> written_, unread_, workspace_;  // [ops] bytes

    Layer layer_, next_;
    int32_t next_state_ = 0;  // of layer_, to be expanded
    std::vector<Candidate> candidates_;
    std::vector<int32_t> table_;  // hash table of candidates_; -1: empty
    std::vector<Node> history_;
    int64_t pairs_ = 0, pairs_paid_ = 0;
};

}  // namespace opgym
