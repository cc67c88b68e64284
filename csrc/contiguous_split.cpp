#include "contiguous_split.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

namespace opgym {
namespace {

constexpr int64_t kMostStates = int64_t{1} << 28;
// Down-sets with the cheapest edges that are tried before all of them.
constexpr int64_t kCheapSets = 2000;
// Pairs of down-sets looked at between two questions whether to stop, some milliseconds.
constexpr int64_t kPairsPerQuestion = 1'000'000;

// The dynamic program. A state is a down-set and how many devices of each class it may use (a "supply", numbered in
// mixed radix); its value is the least largest load. A transition gives the blocks between two nested down-sets to one
// more device.
class SplitProgram {
   public:
    SplitProgram(const DownSets& sets, const SplitCosts& costs, const std::function<bool()>& interrupted)
        : sets_(sets), costs_(costs), interrupted_(interrupted), loads_(sets, costs) {
        int64_t supplies = 1;
        for (int c = 0; c < costs.num_classes; ++c) {
            stride_.push_back(supplies);
            supplies *= costs.class_count[c] + 1;
            if (supplies * sets.count() > kMostStates) throw std::invalid_argument("too many states");
        }
        supplies_ = static_cast<int32_t>(supplies);
        const size_t states = static_cast<size_t>(sets.count()) * supplies_;
        best_ns_.resize(states);
        from_set_.resize(states);
        from_class_.resize(states);
        moves_.resize(costs.num_classes);
        transfer_ns_.resize(costs.num_classes);
    }

    Split solve() {
        // Smaller programs first: their best load is a limit that prunes the next one.
        run(chain());
        if (!stopped_ && sets_.count() > 2 * kCheapSets) run(cheap_sets());
        if (!stopped_) {
            std::vector<int32_t> all(sets_.count());
            std::iota(all.begin(), all.end(), 0);
            run(std::move(all));
        }
        Split split = std::move(incumbent_);
        split.finished = !stopped_;
        return split;
    }

   private:
    struct Move {
        int32_t supply;
        int32_t before;  // the supply without the device that the move uses
    };

    // The down-sets along one topological order.
    std::vector<int32_t> chain() const {
        std::vector<int32_t> kept;
        for (auto set = static_cast<int32_t>(sets_.count() - 1); set >= 0; set = sets_.step(set).set)
            kept.push_back(set);
        return kept;
    }

    // Good splits cut little: the down-sets with the cheapest edges, with both ends of the pipeline.
    std::vector<int32_t> cheap_sets() const {
        std::vector<int64_t> cut_ns(sets_.count());
        for (int64_t set = 0; set < sets_.count(); ++set) cut_ns[set] = loads_.edge_ns(set);
        std::vector<int32_t> kept(sets_.count() - 2);
        std::iota(kept.begin(), kept.end(), 1);
        std::nth_element(kept.begin(), kept.begin() + kCheapSets, kept.end(), [&](int32_t a, int32_t b) {
            return cut_ns[a] != cut_ns[b] ? cut_ns[a] < cut_ns[b] : a < b;
        });
        kept.resize(kCheapSets);
        kept.push_back(0);
        kept.push_back(static_cast<int32_t>(sets_.count() - 1));
        return kept;
    }

    // The program restricted to some down-sets, looking only for loads below that of the incumbent.
    void run(std::vector<int32_t> kept) {
        limit_ns_ = incumbent_.load_ns;
        // A down-set holds at least as much work as those inside it, and a larger number; so they come before it.
        std::sort(kept.begin(), kept.end(), [&](int32_t a, int32_t b) {
            const int64_t x = loads_.fastest_ns(a), y = loads_.fastest_ns(b);
            return x != y ? x < y : a < b;
        });
        std::fill(best_ns_.begin(), best_ns_.end(), kUnbounded);
        std::fill(best_ns_.begin(), best_ns_.begin() + supplies_, 0);
        std::vector<int32_t> reachable;        // sets other than the empty one, in that order
        std::vector<uint64_t> reachable_bits;  // theirs side by side, for speed
        for (const int32_t target : kept) {
            if (target == 0 || !choose_moves(target)) continue;
            relax(0, target);
            forget_first_stages(target);
            try_stages_of(sets_.step(target).set, target);
            // From the latest on: the stages grow, until their work alone is too much.
            const auto bits = sets_.bits(target);
            const uint64_t* inner = reachable_bits.data() + reachable_bits.size();
            for (size_t i = reachable.size(); i-- > 0;) {
                if (loads_.fastest_ns(target) - loads_.fastest_ns(reachable[i]) >= worst_ns_) break;
                inner -= bits.size();
                ++pairs_;
                if (is_within(inner, bits)) relax(reachable[i], target);
            }
            if (best_of(target) < limit_ns_) {
                reachable.push_back(target);
                reachable_bits.insert(reachable_bits.end(), bits.begin(), bits.end());
            }
            if (pairs_ >= kPairsPerQuestion) {
                pairs_ = 0;
                stopped_ = interrupted_();
                if (stopped_) return;
            }
        }
        read_back();
    }

    static bool is_within(const uint64_t* inner, std::span<const uint64_t> outer) {
        for (size_t w = 0; w < outer.size(); ++w)
            if (inner[w] & ~outer[w]) return false;
        return true;
    }

    // What is good for a down-set is often good for one that has a block more: a first value that spares most of the
    // pairs their transfers.
    void try_stages_of(int32_t smaller, int32_t target) {
        for (int32_t supply = 1; supply < supplies_; ++supply) {
            const size_t state = static_cast<size_t>(smaller) * supplies_ + supply;
            if (smaller > 0 && best_ns_[state] < limit_ns_) relax(from_set_[state], target);
        }
    }

    int64_t best_of(int32_t set) const {
        const auto row = best_ns_.begin() + static_cast<int64_t>(set) * supplies_;
        return *std::min_element(row, row + supplies_);
    }

    // The transitions into a down-set for which both sides of its edge can have loads below the limit; false if there
    // are none.
    bool choose_moves(int32_t target) {
        const int64_t done_ns = loads_.fastest_ns(target);
        const int64_t rest_ns = loads_.fastest_ns(sets_.count() - 1) - done_ns + loads_.least_later_transfer_ns(target);
        bool any = false;
        for (int c = 0; c < costs_.num_classes; ++c) moves_[c].clear();
        for (int32_t supply = 1; supply < supplies_; ++supply) {
            __int128 busy = 0, idle = 0;
            for (int c = 0; c < costs_.num_classes; ++c) {
                busy += used(supply, c);
                idle += costs_.class_count[c] - used(supply, c);
            }
            if (done_ns > busy * (limit_ns_ - 1)) continue;
            if (rest_ns > idle * (limit_ns_ - 1)) continue;
            for (int c = 0; c < costs_.num_classes; ++c)
                if (used(supply, c) > 0) {
                    moves_[c].push_back({supply, static_cast<int32_t>(supply - stride_[c])});
                    any = true;
                }
        }
        update_worst(target);
        return any;
    }

    // Only the empty set has a value without any device.
    void forget_first_stages(int32_t target) {
        for (auto& moves : moves_) std::erase_if(moves, [](const Move& move) { return move.before == 0; });
        update_worst(target);
    }

    // The largest value that a transition into a down-set could still improve.
    void update_worst(int32_t target) {
        const int64_t* row = best_ns_.data() + static_cast<size_t>(target) * supplies_;
        worst_ns_ = 0;
        for (const auto& moves : moves_)
            for (const Move& move : moves) worst_ns_ = std::max(worst_ns_, std::min(row[move.supply], limit_ns_));
    }

    int64_t used(int32_t supply, int c) const { return supply / stride_[c] % (costs_.class_count[c] + 1); }

    // Takes the blocks between two down-sets as the last stage of the larger one.
    void relax(int32_t before, int32_t target) {
        const int64_t* old_ns = best_ns_.data() + static_cast<size_t>(before) * supplies_;
        const size_t state = static_cast<size_t>(target) * supplies_;
        int64_t* new_ns = best_ns_.data() + state;
        bool transfers_known = false, better = false;
        for (int c = 0; c < costs_.num_classes; ++c) {
            // Computation alone tells for most pairs that nothing can be gained.
            int64_t load_ns = loads_.compute_ns(before, target, c);
            if (load_ns >= worst_ns_) continue;
            const auto gains = [&](const Move& move) {
                return load_ns < new_ns[move.supply] && old_ns[move.before] < new_ns[move.supply];
            };
            if (std::none_of(moves_[c].begin(), moves_[c].end(), gains)) continue;
            if (!loads_.fits(before, target, c)) continue;
            if (!transfers_known) loads_.transfer_ns(before, target, transfer_ns_);
            transfers_known = true;
            load_ns += transfer_ns_[c];
            if (load_ns >= limit_ns_) continue;
            for (const Move& move : moves_[c]) {
                if (!gains(move)) continue;
                new_ns[move.supply] = std::max(old_ns[move.before], load_ns);
                from_set_[state + move.supply] = before;
                from_class_[state + move.supply] = c;
                better = true;
            }
        }
        if (better) update_worst(target);
    }

    // Keeps the best split of the whole graph if it beats the incumbent.
    void read_back() {
        auto set = static_cast<int32_t>(sets_.count() - 1);
        int32_t supply = supplies_ - 1;
        const int64_t load_ns = best_ns_[static_cast<size_t>(set) * supplies_ + supply];
        if (load_ns >= incumbent_.load_ns) return;
        incumbent_.load_ns = load_ns;
        incumbent_.stage.assign(sets_.num_blocks(), -1);
        incumbent_.stage_class.clear();
        for (int32_t stage = 0; set != 0; ++stage) {
            const size_t state = static_cast<size_t>(set) * supplies_ + supply;
            const int32_t before = from_set_[state];
            for (int32_t b = 0; b < sets_.num_blocks(); ++b)
                if (sets_.contains(set, b) && !sets_.contains(before, b)) incumbent_.stage[b] = stage;
            incumbent_.stage_class.push_back(from_class_[state]);
            supply -= static_cast<int32_t>(stride_[from_class_[state]]);
            set = before;
        }
        const auto last = static_cast<int32_t>(incumbent_.stage_class.size()) - 1;
        for (int32_t& stage : incumbent_.stage) stage = last - stage;
        std::reverse(incumbent_.stage_class.begin(), incumbent_.stage_class.end());
    }

    const DownSets& sets_;
    const SplitCosts& costs_;
    const std::function<bool()>& interrupted_;
    StageLoads loads_;
    Split incumbent_;
    int64_t limit_ns_ = kUnbounded;  // only loads below count
    int64_t worst_ns_ = 0;           // no transition with a larger load can improve anything
    int64_t pairs_ = 0;              // looked at since `interrupted_` was asked
    bool stopped_ = false;
    int32_t supplies_ = 0;
    std::vector<int64_t> stride_;           // [classes]
    std::vector<int64_t> best_ns_;          // [sets, supplies]
    std::vector<int32_t> from_set_;         // [sets, supplies]
    std::vector<int32_t> from_class_;       // [sets, supplies]
    std::vector<std::vector<Move>> moves_;  // [classes]
    std::vector<int64_t> transfer_ns_;      // [classes] of the pair at hand
};

}  // namespace

Split best_contiguous_split(const DownSets& sets, const SplitCosts& costs, const std::function<bool()>& interrupted) {
    costs.check(sets.num_blocks());
    if (!sets.complete()) throw std::invalid_argument("not all down-sets are known");
    return SplitProgram(sets, costs, interrupted).solve();
}

}  // namespace opgym
