// The earliest-finish estimate: groups appended, in decision order, to the devices they were put on.
//
// It is what observations show and what the dense reward is a difference of; the episode itself is judged by the event
// simulator. The rules:
// - A device runs its blocks in the order in which they were decided. A block starts as soon as its device is free and
//   every tensor it reads from a group decided before arrives in time for the first op that reads it; a parent not yet
//   decided is ignored. A block without scheduled ops (a variable alone) starts at 0 and takes no time.
// - A tensor is sent to a device once. It leaves when it is written and the channel of the cluster's model is free;
//   transfers take their channels in the order in which blocks ask for them.
// - Memory is that of the decided prefix run in decision order: resident tensors and outputs stay, a tensor and its
//   copies are held until all groups that read it are decided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "placement_tables.hpp"

namespace opgym {

class PlacementEstimate {
   public:
    // What would happen if a group were appended to a device.
    struct Preview {
        int64_t start_ns;
        int64_t moved_bytes;  // of what the group reads from groups decided before, those that are not there
        int64_t moved_ns;     // summed durations of the transfers that this brings
    };

    // The tables must outlive the estimate.
    explicit PlacementEstimate(const PlacementTables& tables) { reset(tables); }

    // Back to no groups, of these or other tables; allocates only if these are larger than any before.
    void reset(const PlacementTables& tables);

    // group: of the tables; device: of the tables. Groups must not be appended twice.
    Preview preview(int32_t group, int device);
    void append(int32_t group, int device);

    const PlacementTables& tables() const { return *tables_; }
    // Device of each group appended so far, -1: not appended.
    std::span<const int8_t> device() const { return device_; }
    int64_t free_ns(int device) const { return words_[tables_->free_at + device]; }
    int64_t live_bytes(int device) const { return words_[tables_->live_at + device]; }
    int64_t peak_bytes(int device) const { return words_[tables_->peak_at + device]; }
    std::span<const int64_t> free_ns() const { return part(tables_->free_at, tables_->num_devices); }
    std::span<const int64_t> busy_ns() const { return part(tables_->busy_at, tables_->num_devices); }
    std::span<const int64_t> live_bytes() const { return part(tables_->live_at, tables_->num_devices); }
    std::span<const int64_t> peak_bytes() const { return part(tables_->peak_at, tables_->num_devices); }
    // Start of each appended block; -1: not appended.
    std::span<const int64_t> start_ns() const { return part(tables_->start_at, tables_->num_groups); }
    int64_t finish_ns() const { return std::ranges::max(free_ns()); }
    // Bytes that a group reads from groups decided before.
    int64_t readable_bytes(int32_t group) const;
    // Memory that a group would bring to a device and hold for some time, its inner peak apart.
    int64_t need_bytes(int32_t group, int device, int64_t moved_bytes) const;
    // The objective of the groups appended so far, in units of the reference.
    double potential() const;

    // Everything that changes.
    std::span<const int64_t> words() const { return words_; }

   private:
    // A tensor's words: state (groups yet to read it << 8 | home + 1); bit d: it is or will be on device d; from when it
    // is there, for each device.
    static int home_of(const int64_t* tensor) { return static_cast<int>(tensor[0] & 255) - 1; }
    static int64_t remaining_of(const int64_t* tensor) { return tensor[0] >> 8; }
    static constexpr int kPresent = 1, kArrival = 2;

    const int64_t* tensor(int32_t t) const { return &words_[tables_->tensor_at + t * tables_->tensor_stride]; }
    int64_t* tensor(int32_t t) { return &words_[tables_->tensor_at + t * tables_->tensor_stride]; }
    std::span<const int64_t> part(int64_t begin, int64_t size) const {
        return std::span(words_).subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
    }
    template <bool kCommit>
    Preview start_on(int32_t group, int device);
    void free_inputs(int32_t group);

    const PlacementTables* tables_ = nullptr;
    std::vector<int64_t> words_;
    std::vector<int8_t> device_;
    // Channels that a preview occupies, and until when they were occupied before.
    struct Taken {
        int64_t* resource;
        int64_t until_ns;
    };
    std::vector<Taken> taken_;
};

}  // namespace opgym
