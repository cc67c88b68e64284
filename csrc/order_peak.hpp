// Peak memory of a given order of ops on one device: the special case "order in, peak memory out".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph.hpp"

namespace opgym {

// A graph as orders see it: where each tensor is born and who may be the last to read it.
class OrderTables {
   public:
    explicit OrderTables(const Graph& graph);

    // A tensor with up to N readers; a shorter list repeats its last one, which changes no maximum.
    template <int N>
    struct Lifetime {
        int64_t freed_bytes;  // 0: it stays, or takes no memory of its own
        int32_t producer;
        std::array<int32_t, N> consumers;
    };
    struct LongLifetime {
        int32_t producer, first_consumer, last_consumer;  // positions in Graph::consumer_op
        int64_t freed_bytes;
    };
    struct Bytes {
        int64_t kept;     // outputs that outlive the op
        int64_t passing;  // its workspace, and outputs that nobody reads
    };

    bool in_place = false;  // some op may take over a buffer: that depends on the order
    int32_t num_schedulable = 0;
    std::vector<int32_t> schedulable;  // [ops] -1: to be scheduled; 0: a variable
    std::vector<Bytes> bytes;          // [ops]
    std::vector<Lifetime<2>> pairs;
    std::vector<Lifetime<4>> quads;
    std::vector<LongLifetime> long_lifetimes;
};

// Evaluates orders of one graph; scratch is reused, so that nothing is allocated after the first call.
// The peak is dynamic: resident bytes (sources, variables) are apart.
class OrderPeak {
   public:
    explicit OrderPeak(const Graph& graph) : graph_(graph), tables_(graph) {}

    // Orders that are looked at together: one in each lane of a 128-bit register.
    static constexpr int kLanes = 8;

    // order: every op that is no variable once (or every op once; variables are then skipped), topological.
    // Throws std::invalid_argument if it is not.
    int64_t peak(std::span<const int32_t> order);
    // kLanes orders, one after the other in memory; peaks: [kLanes]. Throws as peak does.
    void peaks(std::span<const int32_t> orders, int64_t* peaks);

   private:
    typedef int16_t Lanes __attribute__((vector_size(2 * kLanes)));

    template <int N>
    int32_t end_lifetimes(const std::vector<OrderTables::Lifetime<N>>& lifetimes);
    bool fast_peak(std::span<const int32_t> order, int64_t& peak);
    bool fast_peaks(std::span<const int32_t> orders, size_t length, int64_t* peaks);
    int64_t walk(const int32_t* order, const int64_t* freed_bytes) const;
    int64_t checked_peak(std::span<const int32_t> order);

    const Graph& graph_;
    const OrderTables tables_;
    std::vector<int32_t> position_;       // [ops] -1: a variable, or not in the order
    std::vector<Lanes> lane_positions_;   // [ops]
    std::vector<int64_t> freed_bytes_;    // [lanes, schedulable ops] by position of the last reader
    std::vector<int32_t> uses_;           // [tensors] consumers that have not run; -1: not yet written
};

// The peak of each order; orders: peaks.size() rows of `length` ops.
void peaks_of_orders(const Graph& graph, std::span<const int32_t> orders, size_t length, std::span<int64_t> peaks,
                     int threads);

}  // namespace opgym
