#include "order_program_decision.hpp"

#include <algorithm>
#include <limits>

#include "random_stream.hpp"

namespace opgym {
namespace {

bool has(const std::vector<uint64_t>& bits, int32_t i) { return bits[i / 64] >> (i % 64) & 1; }
void flip(std::vector<uint64_t>& bits, int32_t i) { bits[i / 64] ^= uint64_t{1} << (i % 64); }

}  // namespace

bool SetTable::equal(int32_t row, const uint64_t* bits, uint64_t hash) const {
    return hashes_[row] == hash && std::equal(bits, bits + words_, rows_.begin() + static_cast<int64_t>(row) * words_);
}

bool SetTable::has(const uint64_t* bits, uint64_t hash) const {
    for (size_t at = hash & (table_.size() - 1); table_[at] >= 0; at = (at + 1) & (table_.size() - 1))
        if (equal(table_[at], bits, hash)) return true;
    return false;
}

void SetTable::add(const uint64_t* bits, uint64_t hash) {
    const auto insert = [&](int32_t row) {
        size_t at = hashes_[row] & (table_.size() - 1);
        while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
        table_[at] = row;
    };
    if (has(bits, hash)) return;
    rows_.insert(rows_.end(), bits, bits + words_);
    hashes_.push_back(hash);
    if (table_.size() < 2 * hashes_.size()) {
        table_.assign(2 * table_.size(), -1);
        for (size_t row = 0; row < hashes_.size(); ++row) insert(static_cast<int32_t>(row));
    } else {
        insert(static_cast<int32_t>(hashes_.size()) - 1);
    }
}

void SetTable::clear() {
    rows_.clear();
    hashes_.clear();
    table_.assign(1024, -1);
}

OrderDecision::OrderDecision(const OrderModel& model, int64_t limit, int64_t max_bytes)
    : model_(model), limit_(limit), max_bytes_(max_bytes), direct_(model.direct_before()),
      direct_after_(direct_.inverse(model.size)), cut_(model, direct_), failed_(model.before.words()),
      done_(model.before.words(), 0), ready_(model.before.words(), 0), lower_(model.before.words()),
      least_(model.before.words()), pending_(model.size), started_(model.bytes.size(), 0),
      unended_(model.bytes.size()), last_(model.bytes.size(), 0), new_bytes_(model.size, 0),
      ending_bytes_(model.size, 0), harmless_(model.before.words(), 0),
      holds_below_(std::numeric_limits<int64_t>::max()) {
    RandomStream random(1);
    for (int32_t i = 0; i < model.size; ++i) {
        hash_of_.push_back(random.bits());
        comparable_.push_back(model.before.count(i) + model.after.count(i) + 1 == model.size);
        pending_[i] = static_cast<int32_t>(direct_[i].size());
        if (pending_[i] == 0) flip(ready_, i);
        for (int32_t t : model.started_by[i]) new_bytes_[i] += model.bytes[t];
    }
    for (int32_t t = 0; t < static_cast<int32_t>(model.bytes.size()); ++t) {
        for (int32_t i : model.enders[t]) last_[t] ^= i;
        unended_[t] = static_cast<int32_t>(model.enders[t].size());
        if (unended_[t] == 1) ending_bytes_[last_[t]] += model.bytes[t];
        if (model.starters[t].empty()) live_ += model.bytes[t];
    }
    for (int32_t i = 0; i < model.size; ++i) note_harmless(i);
    start();
}

void OrderDecision::start() {
    answer_ = Answer::kGoing;
    if (live_ <= limit_) {
        answer_ = settle();
    } else {
        holds_below_ = std::min(holds_below_, live_);
        answer_ = Answer::kNo;
    }
}

void OrderDecision::tighten(int64_t limit) {
    limit_ = limit;
    take_back(0);
    frames_.clear();
    choices_.clear();
    aliases_.clear();
    start();
}

OrderDecision::Answer OrderDecision::run(int64_t steps) {
    for (; steps > 0 && answer_ == Answer::kGoing; --steps) {
        ++steps_;
        if (frames_.empty()) {
            answer_ = Answer::kNo;
        } else if (failed_.bytes() > max_bytes_) {
            answer_ = Answer::kFull;
        } else {
            Frame& frame = frames_.back();
            take_back(frame.length);
            if (frame.next_choice < choices_.size()) {
                add(choices_[frame.next_choice++].item);
                answer_ = settle();
            } else {
                failed_.add(done_.data(), hash_);
                fail_aliases(frame.first_alias);
                choices_.resize(frame.first_choice);
                frames_.pop_back();
            }
        }
    }
    return answer_;
}

// Memory while an item runs next.
int64_t OrderDecision::needed(int32_t item) const {
    const int64_t bytes = live_ + model_.passing_bytes[item] + new_bytes_[item];
    for (int32_t t : model_.may_take_over[item])
        if (model_.is_backwards ? started_[t] == 0 : unended_[t] == 1) return bytes - model_.take_over_bytes[item];
    return bytes;
}

void OrderDecision::note_harmless(int32_t item) {
    const uint64_t bit = uint64_t{1} << (item % 64);
    if (new_bytes_[item] <= ending_bytes_[item])
        harmless_[item / 64] |= bit;
    else
        harmless_[item / 64] &= ~bit;
}

void OrderDecision::add_new(int32_t item, int64_t bytes) {
    new_bytes_[item] += bytes;
    note_harmless(item);
}

void OrderDecision::add_ending(int32_t item, int64_t bytes) {
    ending_bytes_[item] += bytes;
    note_harmless(item);
}

// An item that has run keeps the bytes that were its own to start and to end: they are right again once it is taken
// back.
void OrderDecision::add(int32_t item) {
    live_ = live_after(item);
    for (int32_t t : model_.started_by[item])
        if (started_[t]++ == 0)
            for (int32_t other : model_.starters[t])
                if (other != item) add_new(other, -model_.bytes[t]);
    for (int32_t t : model_.ended_by[item]) {
        last_[t] ^= item;
        if (--unended_[t] == 1) add_ending(last_[t], model_.bytes[t]);
    }
    for (int32_t next : direct_after_[item])
        if (--pending_[next] == 0) flip(ready_, next);
    flip(done_, item);
    flip(ready_, item);
    hash_ ^= hash_of_[item];
    path_.push_back(item);
}

void OrderDecision::take_back(size_t length) {
    while (path_.size() > length) {
        const int32_t item = path_.back();
        path_.pop_back();
        hash_ ^= hash_of_[item];
        flip(ready_, item);
        flip(done_, item);
        for (int32_t next : direct_after_[item])
            if (pending_[next]++ == 0) flip(ready_, next);
        for (int32_t t : model_.ended_by[item]) {
            if (unended_[t]++ == 1) add_ending(last_[t], -model_.bytes[t]);
            last_[t] ^= item;
        }
        for (int32_t t : model_.started_by[item])
            if (--started_[t] == 0)
                for (int32_t other : model_.starters[t])
                    if (other != item) add_new(other, model_.bytes[t]);
        live_ -= new_bytes_[item] - ending_bytes_[item];
    }
}

// Runs items that fit and leave no more live than they found, until there are none.
void OrderDecision::run_harmless() {
    for (bool again = true; again;) {
        again = false;
        for (size_t w = 0; w < ready_.size(); ++w)
            for (uint64_t left = ready_[w] & harmless_[w]; left; left &= left - 1) {
                const int32_t item = static_cast<int32_t>(64 * w) + std::countr_zero(left);
                if (!(harmless_[w] & left & -left) || needed(item) > limit_) continue;
                add(item);
                again = true;
            }
    }
}

// Goes to the set that leaves least between a frame and where the search is.
void OrderDecision::go_to_least(size_t frame) {
    const size_t length = frames_[frame].length;
    lower_ = done_;
    for (size_t p = length; p < path_.size(); ++p) flip(lower_, path_[p]);
    if (path_.size() == length + 1) return;
    cut_.pose(lower_.data(), done_.data());
    cut_.solve(std::numeric_limits<int64_t>::max() / 8);
    cut_.largest(least_.data());
    if (least_ == done_) return;
    suffix_.clear();
    for (size_t p = length; p < path_.size(); ++p)
        if (has(least_, path_[p])) suffix_.push_back(path_[p]);
    take_back(length);
    for (int32_t item : suffix_) add(item);
}

// After an item was added: what can be done without a choice. Then a new frame, unless this set has failed before.
OrderDecision::Answer OrderDecision::settle() {
    const size_t own_alias = aliases_.size();
    size_t first_alias = own_alias;
    const int32_t words = model_.before.words();
    for (;;) {
        run_harmless();
        if (static_cast<int32_t>(path_.size()) == model_.size) return Answer::kYes;
        if (frames_.empty() || frames_.back().live < live_ || failed_.has(done_.data(), hash_)) break;
        const auto below = [&](const Frame& frame) { return frame.live < live_; };
        const auto above = std::partition_point(frames_.begin(), frames_.end(), below);
        const auto index = static_cast<size_t>(above - frames_.begin());
        go_to_least(index);
        first_alias = std::min(first_alias, frames_[index].first_alias);
        uint64_t hash = hash_;
        for (size_t p = frames_[index].length; p < path_.size(); ++p) hash ^= hash_of_[path_[p]];
        aliases_.push_back(hash);
        aliases_.insert(aliases_.end(), lower_.begin(), lower_.begin() + words);
        choices_.resize(frames_[index].first_choice);
        frames_.resize(index);
    }
    if (failed_.has(done_.data(), hash_))
        fail_aliases(first_alias);
    else
        push_frame(first_alias);
    return Answer::kGoing;
}

void OrderDecision::fail_aliases(size_t first_alias) {
    const size_t width = 1 + model_.before.words();
    for (size_t at = first_alias; at < aliases_.size(); at += width) failed_.add(&aliases_[at + 1], aliases_[at]);
    aliases_.resize(first_alias);
}

void OrderDecision::push_frame(size_t first_alias) {
    const size_t first_choice = choices_.size();
    int32_t ready = 0, last = -1;
    for_each_bit(ready_.data(), model_.before.words(), [&](int32_t item) {
        ++ready;
        last = item;
        if (const int64_t bytes = needed(item); bytes <= limit_)
            choices_.push_back({live_after(item), item});
        else
            holds_below_ = std::min(holds_below_, bytes);
    });
    std::sort(choices_.begin() + static_cast<int64_t>(first_choice), choices_.end());
    frames_.push_back({path_.size(), live_, first_choice, first_choice, first_alias});
    if (ready == 1 && comparable_[last]) {
        // Every order comes through this set: what was before it is decided.
        choices_.erase(choices_.begin(), choices_.begin() + static_cast<int64_t>(first_choice));
        frames_.assign(1, {path_.size(), live_, 0, 0, 0});
        aliases_.clear();
        failed_.clear();
    }
}

}  // namespace opgym
