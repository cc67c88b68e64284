// Is there an order within a limit of memory? Depth-first search over sets of items that have run.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "order_program_cut.hpp"
#include "order_program_model.hpp"

namespace opgym {

// Sets of items, each as a row of bits, with a hash table over them.
class SetTable {
   public:
    explicit SetTable(int32_t words) : words_(words), table_(1024, -1) {}
    bool has(const uint64_t* bits, uint64_t hash) const;
    void add(const uint64_t* bits, uint64_t hash);
    void clear();
    int64_t size() const { return static_cast<int64_t>(hashes_.size()); }
    int64_t bytes() const {
        return static_cast<int64_t>(8 * (rows_.capacity() + hashes_.capacity()) + 4 * table_.size());
    }

   private:
    bool equal(int32_t row, const uint64_t* bits, uint64_t hash) const;

    int32_t words_;
    std::vector<uint64_t> rows_, hashes_;
    std::vector<int32_t> table_;
};

// From a set, if another one that leaves no more live can be reached, then so can the set between the two that leaves
// least, and nothing is lost by going there: live bytes are submodular, so any way on from the first set, joined with
// that one, is a way on from there and needs no more memory; and the way to the other set, cut down to that one, is a
// way to it. So the search goes back over no choice between the two. What is left on its stack rises strictly in live
// bytes. (Memory while an item runs is live bytes before it plus something that falls as more has run, and live bytes
// after it plus something that rises; the first serves the joined way, the second the one cut down. Also in place.)
class OrderDecision {
   public:
    enum class Answer { kGoing, kYes, kNo, kFull };

    OrderDecision(const OrderModel& model, int64_t limit, int64_t max_bytes);

    // Looks at up to `steps` more sets.
    Answer run(int64_t steps);
    // Asks anew, with a lower limit. What failed still does.
    void tighten(int64_t limit);
    // After kYes: items in order.
    const std::vector<int32_t>& order() const { return path_; }
    // After kNo: the least memory above the limit that it met; limits below have the same answer.
    int64_t holds_below() const { return holds_below_; }
    int64_t steps() const { return steps_; }
    int64_t bytes() const { return failed_.bytes(); }

   private:
    struct Frame {
        size_t length;  // of path_
        int64_t live;
        size_t first_choice, next_choice;  // in choices_
        size_t first_alias;                // in aliases_
    };
    struct Choice {
        int64_t live;
        int32_t item;
        auto operator<=>(const Choice&) const = default;
    };

    int64_t needed(int32_t item) const;
    int64_t live_after(int32_t item) const { return live_ + new_bytes_[item] - ending_bytes_[item]; }
    void add_new(int32_t item, int64_t bytes);
    void add_ending(int32_t item, int64_t bytes);
    void note_harmless(int32_t item);
    void start();
    void add(int32_t item);
    void take_back(size_t length);
    void run_harmless();
    void go_to_least(size_t frame);
    Answer settle();
    void push_frame(size_t first_alias);
    void fail_aliases(size_t first_alias);

    const OrderModel& model_;
    int64_t limit_;
    const int64_t max_bytes_;
    const Lists direct_, direct_after_;
    LeastLive cut_;
    SetTable failed_;
    std::vector<uint64_t> hash_of_;    // [items]
    std::vector<uint8_t> comparable_;  // [items] to all others

    std::vector<uint64_t> done_, ready_, lower_, least_;
    std::vector<int32_t> pending_;             // [items] direct predecessors that have not run
    std::vector<int32_t> started_, unended_;   // [tensors] starters that have run, enders that have not
    std::vector<int32_t> last_;                // [tensors] exclusive or of the enders that have not run
    // [items] bytes of the tensors that it would start, and of those that it would end, if it ran next.
    std::vector<int64_t> new_bytes_, ending_bytes_;
    std::vector<uint64_t> harmless_;  // items that would leave no more live than they find
    int64_t live_ = 0;
    uint64_t hash_ = 0;
    std::vector<int32_t> path_, suffix_;
    std::vector<Frame> frames_;
    std::vector<Choice> choices_;
    std::vector<uint64_t> aliases_;  // sets that fail if a frame does: a hash and a row of bits each
    Answer answer_ = Answer::kGoing;
    int64_t holds_below_, steps_ = 0;
};

}  // namespace opgym
