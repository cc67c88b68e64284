// The peak of an order of ops on one device while ops of it move. A tried move costs what the tensors of the moved ops
// cost, whatever the length of the order; only carrying it out costs what lies between the old and the new place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph.hpp"
#include "order_peak.hpp"
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
    // Whether every other order is illegal.
    bool is_only_order() const;
    // The first position at which memory is largest.
    int64_t position_of_peak() {
        if (position_of_peak_ < 0) position_of_peak_ = memory_.argmax();
        return position_of_peak_;
    }
    // Position of the last reader of what the op at a position writes and the order frees; -1 if there is none.
    int64_t last_read(int64_t position) const;

    // Three questions: what the peak would be after a move. Nothing changes until apply(), which carries out the move
    // that was asked about last. kNothing: there is nothing to pass, the order would be the same.
    static constexpr int64_t kNothing = -1;
    // The op at a position, and all that depends on it before position `end`, behind the rest of what is before `end`;
    // only up to where these are `most` ops.
    int64_t peak_if_later(int64_t position, int64_t end, int64_t most);
    // The op at a position, and all that it depends on from position `begin` on, before the rest from `begin` on; only
    // back to where these are `most` ops.
    int64_t peak_if_earlier(int64_t position, int64_t begin, int64_t most);
    // The block of positions [begin, end), so that it begins at `to`; the block must pass nothing that it depends on, or
    // that depends on it.
    int64_t peak_if_block(int64_t begin, int64_t end, int64_t to);
    void apply();

    // By how much the sum of the memory over all positions would change in the move that was asked about last.
    int64_t area_change() const { return area_change_; }

    // Moves `length` ops from position i on so that they begin at position j, if that is legal; returns whether it
    // is. Throws std::invalid_argument if a position lies outside the order.
    bool move(int64_t i, int64_t j, int64_t length = 1);
    // peak_if_later and peak_if_earlier, carried out; return whether there was something to pass.
    bool move_later(int64_t position, int64_t end);
    bool move_earlier(int64_t position, int64_t begin);

   private:
    // What goes when an op ends, and what it need not allocate as it takes over an input.
    struct Release {
        int64_t freed_bytes, saved_bytes;
    };
    // An op of the moved set after the move.
    struct Moved {
        int32_t op;
        int64_t memory, drop;
    };
    int64_t live_after(int64_t position) const {
        return position < 0 ? 0 : memory_[position] - drop_[order_[position]];
    }
    bool moves(int32_t op) const { return in_set_[op] == round_; }
    void build_tables();
    void start_round();
    template <bool Later>
    void gather(int64_t position, int64_t most);
    int64_t peak_if_moved();
    void take_complement();
    void meet_outputs(int32_t op);
    void meet_inputs(int32_t op);
    int64_t last_reader_outside(int32_t tensor, int64_t before) const;
    void change_range(int64_t begin, int64_t end, int64_t bytes);
    void change_last(int32_t tensor, int32_t op);
    int64_t place_set();
    int64_t pass_others();
    template <bool AfterMove>
    Release release(int32_t op) const;

    const Graph& graph_;
    OrderPeak full_;
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
    int64_t position_of_peak_ = -1;  // -1: not known

    // The move in question: a set of ops goes to the end of the window, or to its begin.
    std::vector<int32_t> set_;      // positions, ascending
    std::vector<uint64_t> reached_;  // bits of positions that go along; empty between questions
    int64_t window_begin_ = 0, window_end_ = 0;
    bool later_ = false;
    int64_t new_peak_ = 0, area_change_ = 0;
    std::vector<Moved> moved_;  // last op first
    int64_t live_ = 0;          // before the ops that are in moved_ so far, less live bytes after the set
    // From a position on, memory at the ops that are passed changes by this much more; 0 but where changes_ says.
    std::vector<int64_t> change_at_;
    std::vector<int64_t> changes_;
    int64_t last_change_ = 0;  // sum of all of them
    std::vector<int32_t> changed_tensors_;   // whose last reader changes
    std::vector<int32_t> new_last_;          // [tensors] and to what
    std::vector<int32_t> changed_readers_;   // ops outside the set that become, or cease to be, a last reader
    std::vector<uint32_t> in_set_;           // [ops] the last round in which an op was in the set
    std::vector<uint32_t> seen_, changed_;   // [tensors] the last round in which a tensor was met, or changed
    uint32_t round_ = 0;
};

}  // namespace opgym
