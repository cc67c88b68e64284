#include "contiguous_split.hpp"

#include <algorithm>
#include <stdexcept>

namespace opgym {
namespace {

constexpr int64_t kMostStates = int64_t{1} << 28;
constexpr int64_t kLargestTotal = int64_t{1} << 62;

// The load and memory of a set of blocks that grows and shrinks by one block at a time.
class Stage {
   public:
    Stage(const SplitCosts& costs, int32_t num_blocks)
        : costs_(costs),
          classes_(costs.num_classes),
          read_inside_(costs.tensor_producer.size(), 0),
          produced_inside_(costs.tensor_producer.size(), 0),
          compute_ns_(classes_, 0),
          transfer_ns_(classes_, 0),
          forbidden_(classes_, 0),
          reads_(num_blocks),
          writes_(num_blocks) {
        for (size_t t = 0; t < costs.tensor_producer.size(); ++t) {
            const auto tensor = static_cast<int32_t>(t);
            if (costs.tensor_producer[t] >= 0) writes_[costs.tensor_producer[t]].push_back(tensor);
            for (int32_t i = costs.reader_ptr[t]; i < costs.reader_ptr[t + 1]; ++i)
                reads_[costs.reader[i]].push_back(tensor);
        }
    }

    void add(int32_t block) {
        change_block(block, 1);
        for (const int32_t t : reads_[block]) {
            if (read_inside_[t]++ == 0 && !produced_inside_[t]) pay_in(t, 1);
            if (produced_inside_[t] && read_inside_[t] == readers(t)) pay_out(t, -1);
        }
        for (const int32_t t : writes_[block]) {
            produced_inside_[t] = 1;
            if (read_inside_[t] > 0) pay_in(t, -1);
            if (read_inside_[t] < readers(t)) pay_out(t, 1);
        }
    }

    void remove(int32_t block) {
        change_block(block, -1);
        for (const int32_t t : writes_[block]) {
            produced_inside_[t] = 0;
            if (read_inside_[t] > 0) pay_in(t, 1);
            if (read_inside_[t] < readers(t)) pay_out(t, -1);
        }
        for (const int32_t t : reads_[block]) {
            if (produced_inside_[t] && read_inside_[t] == readers(t)) pay_out(t, 1);
            if (--read_inside_[t] == 0 && !produced_inside_[t]) pay_in(t, -1);
        }
    }

    // Whether this set or a larger one may run on a class with a load below `limit`.
    bool may_fit(int c, int64_t limit) const {
        return forbidden_[c] == 0 && compute_ns_[c] < limit && bytes_ <= costs_.class_capacity[c];
    }
    int64_t load_ns(int c) const { return compute_ns_[c] + transfer_ns_[c]; }

   private:
    int32_t readers(int32_t t) const { return costs_.reader_ptr[t + 1] - costs_.reader_ptr[t]; }

    void change_block(int32_t block, int sign) {
        bytes_ += sign * costs_.block_bytes[block];
        const int64_t* ns = costs_.block_ns.data() + static_cast<size_t>(block) * classes_;
        for (int c = 0; c < classes_; ++c) {
            if (ns[c] < 0)
                forbidden_[c] += sign;
            else
                compute_ns_[c] += sign * ns[c];
        }
    }

    // A tensor from outside: brought in, or, without a producer, kept as a copy.
    void pay_in(int32_t t, int sign) {
        if (costs_.tensor_producer[t] < 0) {
            bytes_ += sign * costs_.tensor_bytes[t];
            return;
        }
        const int64_t* ns = costs_.to_device_ns.data() + static_cast<size_t>(t) * classes_;
        for (int c = 0; c < classes_; ++c) transfer_ns_[c] += sign * ns[c];
    }

    void pay_out(int32_t t, int sign) {
        const int64_t* ns = costs_.from_device_ns.data() + static_cast<size_t>(t) * classes_;
        for (int c = 0; c < classes_; ++c) transfer_ns_[c] += sign * ns[c];
    }

    const SplitCosts& costs_;
    int classes_;
    std::vector<int32_t> read_inside_;  // [tensors] readers inside
    std::vector<char> produced_inside_;
    std::vector<int64_t> compute_ns_, transfer_ns_;  // [classes]
    std::vector<int32_t> forbidden_;                 // [classes] blocks inside that cannot run there
    int64_t bytes_ = 0;
    std::vector<std::vector<int32_t>> reads_, writes_;  // [blocks]
};

// The dynamic program. A state is a down-set and how many devices of each class it may use (a "supply", numbered in
// mixed radix); its value is the least largest load. The transition takes a larger down-set whose additional blocks run
// on one more device.
class SplitProgram {
   public:
    SplitProgram(const DownSets& sets, const SplitCosts& costs, const std::function<bool()>& interrupted)
        : sets_(sets), costs_(costs), interrupted_(interrupted), stage_(costs, sets.num_blocks()) {
        int64_t supplies = 1;
        for (int c = 0; c < costs.num_classes; ++c) {
            stride_.push_back(supplies);
            supplies *= costs.class_count[c] + 1;
            if (supplies * sets.count() > kMostStates) throw std::invalid_argument("too many states");
        }
        supplies_ = static_cast<int32_t>(supplies);
        used_.resize(static_cast<size_t>(supplies_) * costs.num_classes);
        for (int32_t s = 0; s < supplies_; ++s)
            for (int c = 0; c < costs.num_classes; ++c)
                used_[s * costs.num_classes + c] = s / stride_[c] % (costs.class_count[c] + 1);
        const size_t states = static_cast<size_t>(sets.count()) * supplies_;
        best_ns_.resize(states);
        from_set_.resize(states);
        from_class_.resize(states);
        visited_.resize(sets.count());
        measure_rest();
    }

    Split solve() {
        // A few chains of nested down-sets give a first split; its load prunes the full program.
        const std::vector<char> everything(sets_.count(), 1);
        for (const bool first : {true, false}) {
            run(chain(first));
            if (stopped_) break;
        }
        if (!stopped_) run(everything);
        Split split = std::move(incumbent_);
        split.finished = !stopped_;
        return split;
    }

   private:
    // Least work outside each down-set, at the fastest class of each block.
    void measure_rest() {
        rest_ns_.assign(sets_.count(), 0);
        const auto classes = static_cast<size_t>(costs_.num_classes);
        std::vector<int64_t> fastest(sets_.num_blocks());
        for (int32_t b = 0; b < sets_.num_blocks(); ++b) {
            int64_t least = kLargestTotal;
            for (size_t c = 0; c < classes; ++c)
                if (const int64_t ns = costs_.block_ns[b * classes + c]; ns >= 0) least = std::min(least, ns);
            fastest[b] = least;
        }
        for (int64_t set = sets_.count() - 1; set > 0; --set)
            for (const DownSets::Step& step : sets_.steps(set)) rest_ns_[step.set] = rest_ns_[set] + fastest[step.block];
    }

    // The down-sets along one topological order.
    std::vector<char> chain(bool first) const {
        std::vector<char> kept(sets_.count(), 0);
        int64_t set = sets_.count() - 1;
        kept[set] = 1;
        while (set > 0) {
            const auto steps = sets_.steps(set);
            set = first ? steps.front().set : steps.back().set;
            kept[set] = 1;
        }
        return kept;
    }

    // The program restricted to some down-sets, looking only for loads below that of the incumbent.
    void run(const std::vector<char>& kept) {
        limit_ns_ = incumbent_.load_ns;
        std::fill(best_ns_.begin(), best_ns_.end(), kUnbounded);
        std::fill(best_ns_.begin(), best_ns_.begin() + supplies_, 0);
        std::fill(visited_.begin(), visited_.end(), 0);
        for (int64_t target = 1; target < sets_.count() && !stopped_; ++target)
            if (kept[target]) reach(static_cast<int32_t>(target), kept);
        if (!stopped_) read_back();
    }

    struct Frame {
        int32_t set;
        int32_t next_step;
        int32_t block;  // added to the stage on the way here; -1 at the target
    };
    struct Move {
        int32_t supply;
        int32_t before;  // the supply without the device that the move uses
    };

    // Tries every smaller down-set before `target`, depth first, as long as the blocks between may fit a device.
    void reach(int32_t target, const std::vector<char>& kept) {
        if (!choose_moves(target)) return;
        path_.assign(1, {target, 0, -1});
        while (!path_.empty()) {
            Frame& top = path_.back();
            const auto steps = sets_.steps(top.set);
            if (top.next_step == static_cast<int32_t>(steps.size())) {
                if (top.block >= 0) stage_.remove(top.block);
                path_.pop_back();
                continue;
            }
            const DownSets::Step step = steps[top.next_step++];
            if (visited_[step.set] == target || !kept[step.set]) continue;
            visited_[step.set] = target;
            stage_.add(step.block);
            if (relax(step.set, target)) {
                path_.push_back({step.set, 0, step.block});
            } else {
                stage_.remove(step.block);
            }
        }
        if (budgeted_stop()) stopped_ = true;
    }

    // The transitions into a down-set that leave enough devices for the rest of the work; false if there are none.
    bool choose_moves(int32_t target) {
        moves_.resize(costs_.num_classes);
        bool any = false;
        for (int c = 0; c < costs_.num_classes; ++c) {
            moves_[c].clear();
            for (int32_t s = 0; s < supplies_; ++s) {
                const int32_t* used = used_.data() + static_cast<size_t>(s) * costs_.num_classes;
                if (used[c] == 0) continue;
                __int128 room = 0;
                for (int k = 0; k < costs_.num_classes; ++k)
                    room += static_cast<__int128>(costs_.class_count[k] - used[k]) * (limit_ns_ - 1);
                if (rest_ns_[target] <= room) moves_[c].push_back({s, static_cast<int32_t>(s - stride_[c])});
            }
            any = any || !moves_[c].empty();
        }
        return any;
    }

    // Takes the blocks of `stage_`, which lie between two down-sets, as the last stage of the larger one. Returns
    // whether a larger stage may be worth trying.
    bool relax(int32_t before, int32_t target) {
        ++work_;
        const int64_t* old_ns = best_ns_.data() + static_cast<size_t>(before) * supplies_;
        const size_t state = static_cast<size_t>(target) * supplies_;
        bool any = false;
        for (int c = 0; c < costs_.num_classes; ++c) {
            if (!stage_.may_fit(c, limit_ns_)) continue;
            any = true;
            const int64_t load_ns = stage_.load_ns(c);
            if (load_ns >= limit_ns_) continue;
            for (const Move& move : moves_[c]) {
                const int64_t value_ns = std::max(old_ns[move.before], load_ns);
                if (value_ns >= best_ns_[state + move.supply]) continue;
                best_ns_[state + move.supply] = value_ns;
                from_set_[state + move.supply] = before;
                from_class_[state + move.supply] = c;
            }
        }
        return any;
    }

    // Asks whether to stop about every hundred thousand transitions, a few milliseconds.
    bool budgeted_stop() {
        if (work_ < 100'000) return false;
        work_ = 0;
        return interrupted_();
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
    Stage stage_;
    Split incumbent_;
    int64_t limit_ns_ = kUnbounded;  // only loads below count
    int64_t work_ = 0;               // transitions since `interrupted_` was asked
    bool stopped_ = false;
    int32_t supplies_ = 0;
    std::vector<int64_t> stride_;      // [classes]
    std::vector<int32_t> used_;        // [supplies, classes]
    std::vector<int64_t> rest_ns_;     // [sets]
    std::vector<int64_t> best_ns_;     // [sets, supplies]
    std::vector<int32_t> from_set_;    // [sets, supplies]
    std::vector<int32_t> from_class_;  // [sets, supplies]
    std::vector<int32_t> visited_;     // [sets] the last target that looked at it
    std::vector<Frame> path_;
    std::vector<std::vector<Move>> moves_;  // [classes]
};

}  // namespace

void SplitCosts::check(int32_t num_blocks) const {
    const auto classes = static_cast<size_t>(num_classes);
    const size_t blocks = num_blocks, tensors = tensor_producer.size();
    const auto expect = [](bool condition, const char* message) {
        if (!condition) throw std::invalid_argument(message);
    };
    expect(num_classes > 0 && class_count.size() == classes && class_capacity.size() == classes,
           "class_count and class_capacity need one entry per class");
    expect(block_ns.size() == blocks * classes && block_bytes.size() == blocks, "block arrays have the wrong length");
    expect(tensor_bytes.size() == tensors && to_device_ns.size() == tensors * classes &&
               from_device_ns.size() == tensors * classes && reader_ptr.size() == tensors + 1,
           "tensor arrays have the wrong length");
    expect(reader_ptr.front() == 0 && reader_ptr.back() == static_cast<int64_t>(reader.size()) &&
               std::is_sorted(reader_ptr.begin(), reader_ptr.end()),
           "reader_ptr is not a CSR pointer of reader");
    const auto is_block = [&](int32_t b) { return b >= 0 && b < num_blocks; };
    expect(std::all_of(reader.begin(), reader.end(), is_block), "a reader is no block");
    expect(std::all_of(tensor_producer.begin(), tensor_producer.end(), [&](int32_t b) { return b == -1 || is_block(b); }),
           "a producer is no block");
    expect(std::all_of(class_count.begin(), class_count.end(), [](int32_t n) { return n > 0; }), "a class has no device");
    // No sum of the program may overflow.
    __int128 total_ns = 0, total_bytes = 0;
    for (const auto* times : {&to_device_ns, &from_device_ns})
        for (const int64_t ns : *times) {
            expect(ns >= 0, "a transfer time is negative");
            total_ns += ns;
        }
    for (const int64_t ns : block_ns) {
        expect(ns >= -1, "a block time is negative");
        total_ns += std::max<int64_t>(ns, 0);
    }
    for (const auto* sizes : {&block_bytes, &tensor_bytes})
        for (const int64_t size : *sizes) {
            expect(size >= 0, "a size is negative");
            total_bytes += size;
        }
    expect(total_ns < kLargestTotal && total_bytes < kLargestTotal, "times or sizes add up to more than 2^62");
}

Split best_contiguous_split(const DownSets& sets, const SplitCosts& costs, const std::function<bool()>& interrupted) {
    costs.check(sets.num_blocks());
    if (!sets.complete()) throw std::invalid_argument("not all down-sets are known");
    return SplitProgram(sets, costs, interrupted).solve();
}

}  // namespace opgym
