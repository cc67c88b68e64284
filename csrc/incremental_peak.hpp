// The peak of an order of ops on one device while stretches of it move. A tried move costs what the tensors of the moved
// ops cost, whatever the length of the order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "range_maximum.hpp"

namespace opgym {

class IncrementalPeak {
   public:
    // order: as for OrderPeak. Throws std::invalid_argument if it is not legal.
    IncrementalPeak(const Graph& graph, std::span<const int32_t> order);

    // Starts again from another order of the same ops.
    void assign(std::span<const int32_t> order);

    int64_t size() const { return static_cast<int64_t>(order_.size()); }
    int64_t peak() const { return peak_; }
    const std::vector<int32_t>& order() const { return order_; }
    int64_t position_of_peak() const { return memory_.argmax(); }

    // How far the block of positions [begin, end) may move without passing an op that it depends on, or that depends
    // on it: the smallest position at which it may begin, and one past the largest at which it may end.
    int64_t earliest_begin(int64_t begin, int64_t end) const;
    int64_t latest_end(int64_t begin, int64_t end) const;

    // The peak if the block [begin, end) moved so that it begins at `to`; the move must be legal. Nothing changes
    // until apply(), which carries out the move that was asked about last.
    int64_t peak_after(int64_t begin, int64_t end, int64_t to);
    void apply();

    // Moves `length` ops from position i on so that they begin at position j, if that is legal; returns whether it
    // is. Throws std::invalid_argument if a position lies outside the order.
    bool move(int64_t i, int64_t j, int64_t length = 1);

   private:
    // What goes when an op ends, and what it need not allocate as it takes over an input.
    struct Release {
        int64_t freed_bytes, saved_bytes;
    };
    // An op of the block after the move.
    struct Moved {
        int32_t op;
        int64_t memory, drop;
    };
    // An op that the block passes becomes, or ceases to be, the last reader of a tensor: memory changes after it.
    struct Step {
        int64_t position, change;
    };
    // Ops that the block passes, and by how much the memory at each of them changes.
    struct Stretch {
        int64_t begin, end, change;
    };

    int64_t live_after(int64_t position) const {
        return position < 0 ? 0 : memory_[position] - drop_[order_[position]];
    }
    void build_tables();
    void meet_inputs(int32_t op);
    void meet_outputs(int32_t op);
    int64_t last_reader_before_block(int32_t tensor) const;
    void change_last(int32_t tensor, int32_t op);
    int64_t place_block();
    int64_t pass_others();
    template <bool AfterMove>
    Release release(int32_t op) const;
    void shift_others();

    const Graph& graph_;
    // What peaks and legality depend on.
    std::vector<int32_t> input_ptr_, input_;             // CSR: inputs of an op that can end with it
    std::vector<int32_t> before_ptr_, before_;           // CSR: ops that must run before an op, each once
    std::vector<int32_t> after_ptr_, after_;             // CSR: ops that must run after it, each once
    std::vector<int64_t> written_, unread_, workspace_;  // [ops] bytes: outputs, those that nobody keeps, scratch

    std::vector<int32_t> order_;
    std::vector<int32_t> position_;  // [ops] -1: not in the order
    std::vector<int32_t> last_;      // [tensors] the last reader; the producer where nobody reads it
    std::vector<int64_t> drop_;      // [ops] memory while an op runs less live bytes after it
    RangeMaximum memory_;            // [positions] live bytes and workspace while the op there runs
    int64_t peak_ = 0;

    // The move in question: the block [begin_, end_) changes places with the rest of the window.
    int64_t begin_ = 0, end_ = 0, window_begin_ = 0, window_end_ = 0;
    bool forward_ = false;   // whether the block moves to a later place
    int64_t new_peak_ = 0;
    int64_t change_ = 0;     // of memory at every op that the block passes
    std::vector<Moved> moved_;  // last op first
    std::vector<Step> steps_;
    std::vector<Stretch> stretches_;
    std::vector<int32_t> changed_tensors_;  // whose last reader changes
    std::vector<int32_t> new_last_;         // [tensors] and to what
    std::vector<uint32_t> seen_, changed_;  // [tensors] the round in which a tensor was met, or changed
    uint32_t round_ = 0;
};

}  // namespace opgym
