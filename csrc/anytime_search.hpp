// What all searches share: the limits of a call, the best solution so far, and when it was found.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace opgym {

// A search goes on where the last call left it: two calls for a and b evaluations do what one for a + b does.
// Score: lower is better.
template <class Score, class Solution>
class AnytimeSearch {
   public:
    // A new best score, and what the search had spent since the call began.
    struct Improvement {
        int64_t evaluations;
        double seconds;
        Score score;
    };

    virtual ~AnytimeSearch() = default;

    // Spends up to `evaluations` within `seconds`. Returns how many it spent: fewer if time runs out or it is over.
    int64_t run(int64_t evaluations, double seconds) {
        improvements_.clear();
        began_ = std::chrono::steady_clock::now();
        spent_ = 0;
        for (int64_t steps = 0; spent_ < evaluations && !over(); ++steps) {
            if (steps % steps_between_looks_ == 0 && seconds_since_began() >= seconds) break;
            spent_ += step(evaluations - spent_);
        }
        return spent_;
    }

    // Whether nothing better can exist.
    bool proven() const { return proven_ || !(target_ < best_score_); }
    // Whether there is nothing left to do.
    bool over() const { return finished_ || proven(); }
    const Score& best_score() const { return best_score_; }
    const Solution& best() const { return best_; }
    // Of the last call.
    const std::vector<Improvement>& improvements() const { return improvements_; }

   protected:
    // target: a score that no solution can beat; worst: what nothing found yet is worth; the search looks at the clock
    // every so many steps.
    AnytimeSearch(Score target, Score worst, int64_t steps_between_looks)
        : target_(target), best_score_(worst), steps_between_looks_(steps_between_looks) {}

    // Spends up to `most` evaluations, at least 1; returns how many. It may spend none for a while.
    virtual int64_t step(int64_t most) = 0;

    // Tells of a solution that was just evaluated: the first one of a step, or a later one.
    void found(const Score& score, const Solution& solution, int64_t number_in_step = 0) {
        if (!(score < best_score_)) return;
        best_score_ = score;
        best_ = solution;
        improvements_.push_back({spent_ + number_in_step + 1, seconds_since_began(), score});
    }

    double seconds_since_began() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    }
    const Score& target() const { return target_; }

    bool proven_ = false, finished_ = false;

   private:
    Score target_, best_score_;
    int64_t steps_between_looks_;
    Solution best_;
    std::vector<Improvement> improvements_;
    int64_t spent_ = 0;
    std::chrono::steady_clock::time_point began_;
};

}  // namespace opgym
