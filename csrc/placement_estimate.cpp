#include "placement_estimate.hpp"

namespace opgym {

void PlacementEstimate::reset(const PlacementTables& tables) {
    tables_ = &tables;
    words_.assign(tables.initial.begin(), tables.initial.end());
    device_.assign(tables.num_groups, -1);
    taken_.clear();
    taken_.reserve(2 * static_cast<size_t>(tables.most_inputs));
}

PlacementEstimate::Preview PlacementEstimate::preview(int32_t group, int device) {
    const Preview result = start_on<false>(group, device);
    // Last first: a channel may have been taken several times.
    for (; !taken_.empty(); taken_.pop_back()) *taken_.back().resource = taken_.back().until_ns;
    return result;
}

template <bool kCommit>
PlacementEstimate::Preview PlacementEstimate::start_on(int32_t group, int device) {
    const PlacementTables& tables = *tables_;
    Preview result{tables.scheduled[group] ? free_ns(device) : 0, 0, 0};
    for (int32_t i = tables.input_ptr[group]; i < tables.input_ptr[group + 1]; ++i) {
        const int32_t t = tables.input_tensor[i];
        int64_t* const words = tensor(t);
        const int home = home_of(words);
        if (home < 0) continue;
        int64_t time;
        if (words[kPresent] >> device & 1) {
            time = words[kArrival + device];
        } else {
            const size_t link = tables.link_of(home, device);
            const int64_t duration =
                tables.duration_ns[static_cast<size_t>(tables.tensor_duration[t]) * tables.num_link_kinds + tables.link[link]];
            time = words[kArrival + home];
            if (tables.num_resources) {
                int64_t* const send = &words_[tables.resource_at + tables.send[link]];
                int64_t* const receive = &words_[tables.resource_at + tables.receive[link]];
                if constexpr (!kCommit) {
                    taken_.push_back({send, *send});
                    taken_.push_back({receive, *receive});
                }
                time = std::max({time, *send, *receive}) + duration;
                *send = *receive = time;
            }
            result.moved_ns += duration;
            result.moved_bytes += tables.tensor_bytes[t];
            if constexpr (kCommit) {
                words[kArrival + device] = time;
                words[kPresent] = static_cast<int64_t>(static_cast<uint64_t>(words[kPresent]) | uint64_t{1} << device);
            }
        }
        if (tables.input_lead[i] >= 0)
            time -= tables.lead_ns[static_cast<size_t>(tables.input_lead[i]) * tables.num_devices + device];
        result.start_ns = std::max(result.start_ns, time);
    }
    return result;
}

void PlacementEstimate::append(int32_t group, int device) {
    const PlacementTables& tables = *tables_;
    const uint64_t bit = uint64_t{1} << device;
    const Preview run = start_on<true>(group, device);
    const int64_t need = need_bytes(group, device, run.moved_bytes);
    for (int32_t i = tables.source_ptr[group]; i < tables.source_ptr[group + 1]; ++i) {
        int64_t& devices = words_[tables.source_at + tables.source[i]];
        devices = static_cast<int64_t>(static_cast<uint64_t>(devices) | bit);
    }

    const int64_t cost = tables.cost_ns[static_cast<size_t>(group) * tables.num_devices + device];
    device_[group] = static_cast<int8_t>(device);
    words_[tables.start_at + group] = run.start_ns;
    if (tables.scheduled[group]) {
        words_[tables.free_at + device] = run.start_ns + cost;
        words_[tables.busy_at + device] += cost;
    }
    for (int32_t i = tables.output_ptr[group]; i < tables.output_ptr[group + 1]; ++i) {
        const int32_t t = tables.output_tensor[i], row = tables.tensor_offset[t];
        int64_t* const words = tensor(t);
        words[0] += device + 1;
        words[kPresent] = static_cast<int64_t>(bit);
        words[kArrival + device] =
            row < 0 ? 0 : run.start_ns + tables.offset_ns[static_cast<size_t>(row) * tables.num_devices + device];
    }
    const int64_t live = words_[tables.live_at + device] += need;
    int64_t& peak = words_[tables.peak_at + device];
    peak = std::max(peak, live + tables.inner_peak_bytes[group]);
    free_inputs(group);
}

// Frees what the group was the last to read, at home and wherever a copy lies.
void PlacementEstimate::free_inputs(int32_t group) {
    const PlacementTables& tables = *tables_;
    for (int32_t i = tables.input_ptr[group]; i < tables.input_ptr[group + 1]; ++i) {
        const int32_t t = tables.input_tensor[i];
        int64_t* const words = tensor(t);
        words[0] -= int64_t{1} << 8;
        const int home = home_of(words);
        if (remaining_of(words) != 0 || home < 0) continue;
        words_[tables.live_at + home] -= tables.tensor_held_bytes[t];
        for (uint64_t copies = static_cast<uint64_t>(words[kPresent]) & ~(uint64_t{1} << home); copies; copies &= copies - 1)
            words_[tables.live_at + __builtin_ctzll(copies)] -= tables.tensor_bytes[t];
    }
}

int64_t PlacementEstimate::readable_bytes(int32_t group) const {
    int64_t sum = 0;
    for (int32_t i = tables_->input_ptr[group]; i < tables_->input_ptr[group + 1]; ++i) {
        const int32_t t = tables_->input_tensor[i];
        if (home_of(tensor(t)) >= 0) sum += tables_->tensor_bytes[t];
    }
    return sum;
}

int64_t PlacementEstimate::need_bytes(int32_t group, int device, int64_t moved_bytes) const {
    const PlacementTables& tables = *tables_;
    int64_t need = tables.private_bytes[group] + moved_bytes;
    for (int32_t i = tables.source_ptr[group]; i < tables.source_ptr[group + 1]; ++i)
        if (!(words_[tables.source_at + tables.source[i]] >> device & 1)) need += tables.source_bytes[i];
    for (int32_t i = tables.output_ptr[group]; i < tables.output_ptr[group + 1]; ++i) {
        const int32_t t = tables.output_tensor[i];
        if (remaining_of(tensor(t)) != 0) need += tables.tensor_held_bytes[t];
    }
    return need;
}

double PlacementEstimate::potential() const {
    switch (tables_->objective) {
        case PlacementObjective::step_time:
            return static_cast<double>(finish_ns()) / tables_->reference;
        case PlacementObjective::peak_memory:
            return static_cast<double>(std::ranges::max(peak_bytes())) / tables_->reference;
        case PlacementObjective::max_load:
            return static_cast<double>(std::ranges::max(busy_ns())) / 1e6 / tables_->reference;
        case PlacementObjective::latency:
            break;
    }
    return static_cast<double>(finish_ns()) / 1e6 / tables_->reference;
}

}  // namespace opgym
