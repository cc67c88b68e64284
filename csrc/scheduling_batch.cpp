#include "scheduling_batch.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "parallel.hpp"

namespace opgym {

SchedulingBatch::SchedulingBatch(std::vector<std::shared_ptr<const SchedulingView>> views, int64_t size,
                                 int32_t padded_nodes, bool dense, int threads)
    : views_(std::move(views)),
      num_slots_(views_.empty() || !views_.front() ? 0 : views_.front()->num_slots()),
      padded_nodes_(padded_nodes),
      dense_(dense),
      threads_(threads) {
    if (views_.empty()) throw std::invalid_argument("a batch needs a graph");
    if (size < 1 || threads < 1) throw std::invalid_argument("a batch needs an episode and a thread");
    if (size > std::numeric_limits<int32_t>::max()) throw std::invalid_argument("a batch has at most 2^31 - 1 episodes");
    for (const auto& view : views_)
        if (!view || view->num_slots() != num_slots_ || view->num_nodes() > padded_nodes_)
            throw std::invalid_argument("the graphs of a batch do not share one space");
    episodes_.assign(static_cast<size_t>(size), Episode(*views_.front()));
    for (Episode& episode : episodes_) fill_slots(episode);
}

void SchedulingBatch::reset(std::span<const int64_t> episodes, std::span<const int64_t> graphs) {
    if (episodes.size() != graphs.size()) throw std::invalid_argument("not one graph for each episode");
    for (size_t i = 0; i < episodes.size(); ++i) {
        at(episodes[i]);
        view(graphs[i]);
    }
    for (size_t i = 0; i < episodes.size(); ++i) begin(episodes_[episodes[i]], view(graphs[i]));
}

int64_t SchedulingBatch::step(std::span<const int64_t> actions, const bool* skip, double* reward, bool* terminated,
                              const SchedulingRows& rows) {
    auto step_some = [&](int64_t begin, int64_t end) {
        int64_t ended = 0;
        for (int64_t i = begin; i < end; ++i) {
            reward[i] = 0;
            terminated[i] = false;
            if (skip == nullptr || !skip[i]) {
                reward[i] = decide(episodes_[i], actions[i]);
                terminated[i] = episodes_[i].partial.over();
                ended += terminated[i];
            }
            write(i, rows);
        }
        return ended;
    };
    const int64_t parts = std::min<int64_t>(threads_, size());
    if (parts == 1) return step_some(0, size());
    std::atomic<int64_t> ended{0};
    run_parallel(parts, threads_, [&] {
        return [&](int64_t part) { ended += step_some(size() * part / parts, size() * (part + 1) / parts); };
    });
    return ended;
}

void SchedulingBatch::observe(std::span<const int64_t> episodes, const SchedulingRows& rows) const {
    for (const int64_t episode : episodes) at(episode);
    for (const int64_t episode : episodes) write(episode, rows);
}

void SchedulingBatch::write_masks(int8_t* action_mask) const {
    for (const Episode& episode : episodes_) {
        write_mask(episode, action_mask);
        action_mask += num_actions();
    }
}

void SchedulingBatch::replay(int64_t episode, int64_t graph, std::span<const int64_t> nodes, int64_t illegal_actions) {
    at(episode);
    Episode& replayed = episodes_[episode];
    begin(replayed, view(graph));
    for (size_t i = 0; i < nodes.size(); ++i) {
        if (!replayed.partial.is_ready(nodes[i])) {
            begin(replayed, *replayed.view);  // its slots are those of its partial order, whatever happens
            throw std::invalid_argument("decision " + std::to_string(i) + " is op " + std::to_string(nodes[i]) +
                                        ", which is not ready then");
        }
        replayed.partial.run(static_cast<int32_t>(nodes[i]));
    }
    fill_slots(replayed);
    replayed.potential = replayed.view->potential(replayed.partial);
    replayed.illegal_actions = illegal_actions;
}

const SchedulingBatch::Episode& SchedulingBatch::at(int64_t episode) const {
    if (episode < 0 || episode >= size()) throw std::invalid_argument("there is no episode " + std::to_string(episode));
    return episodes_[episode];
}

const SchedulingView& SchedulingBatch::view(int64_t graph) const {
    if (graph < 0 || graph >= static_cast<int64_t>(views_.size()))
        throw std::invalid_argument("there is no graph " + std::to_string(graph));
    return *views_[graph];
}

void SchedulingBatch::begin(Episode& episode, const SchedulingView& view) const {
    episode.view = &view;
    episode.partial = view.start();
    episode.potential = 0;
    episode.illegal_actions = 0;
    fill_slots(episode);
}

double SchedulingBatch::decide(Episode& episode, int64_t action) const {
    if (episode.partial.over()) throw std::invalid_argument("a step in an episode that is over");
    episode.partial.run(read_node(episode, action), static_cast<size_t>(action));
    fill_slots(episode);
    const double before = std::exchange(episode.potential, episode.view->potential(episode.partial));
    if (!dense_) return 0;
    return episode.partial.over() ? before : before - episode.potential;
}

int32_t SchedulingBatch::read_node(Episode& episode, int64_t action) const {
    if (num_slots_) {
        if (action >= 0 && action < episode.shown) return episode.slots[action];
        ++episode.illegal_actions;
        return episode.slots[0];
    }
    if (episode.partial.is_ready(action)) return static_cast<int32_t>(action);
    ++episode.illegal_actions;
    return episode.partial.first_ready();
}

void SchedulingBatch::fill_slots(Episode& episode) const {
    if (num_slots_) episode.shown = episode.partial.best(num_slots_, episode.slots.data());
}

void SchedulingBatch::write_mask(const Episode& episode, int8_t* action_mask) const {
    const int64_t actions = num_actions();
    if (episode.partial.over()) {
        std::memset(action_mask, 1, actions);
    } else if (num_slots_) {
        std::memset(action_mask, 1, episode.shown);
        std::memset(action_mask + episode.shown, 0, actions - episode.shown);
    } else {
        const std::vector<int8_t>& status = episode.partial.status();
        int8_t* end = std::transform(status.begin(), status.end(), action_mask,
                                     [](int8_t s) { return static_cast<int8_t>(s == kReady); });
        std::memset(end, 0, action_mask + actions - end);
    }
}

void SchedulingBatch::write(int64_t index, const SchedulingRows& rows) const {
    const Episode& episode = episodes_[index];
    const SchedulingView& view = *episode.view;
    rows.illegal_actions[index] = episode.illegal_actions;
    write_mask(episode, rows.action_mask + index * num_actions());
    if (rows.vectors) {
        view.write_slots(episode.partial, episode.slots.data(), episode.shown, rows.vectors + index * vector_length());
        return;
    }
    const std::vector<int8_t>& status = episode.partial.status();
    int8_t* out = rows.status + index * padded_nodes_;
    std::memset(std::copy(status.begin(), status.end(), out), -1, padded_nodes_ - status.size());
    float* figures = rows.figures + index * padded_nodes_ * SchedulingView::kChangingFields;
    std::memset(figures, 0, sizeof(float) * padded_nodes_ * SchedulingView::kChangingFields);
    view.write_figures(episode.partial, figures);
    view.write_globals(episode.partial, episode.shown, rows.globals + index * SchedulingView::kGlobalFields);
    if (rows.slots) {
        int32_t* slots = rows.slots + index * num_slots_;
        std::fill(std::copy_n(episode.slots.begin(), episode.shown, slots), rows.slots + (index + 1) * num_slots_, -1);
    }
}

}  // namespace opgym
