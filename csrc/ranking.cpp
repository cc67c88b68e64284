#include "ranking.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

namespace opgym {
namespace {

template <class T>
bool any_nan(std::span<const T> values) {
    bool found = false;
    for (T value : values) found |= value != value;  // no early exit: this loop is vectorised
    return found;
}

// Integers in the opposite order of the priorities: the best comes first.
int32_t descending_key(float priority) {
    const auto bits = std::bit_cast<int32_t>(priority + 0.0f);  // -0 becomes 0
    const int32_t ascending = bits ^ ((bits >> 31) & std::numeric_limits<int32_t>::max());
    return ~ascending;
}
int64_t descending_key(double priority) {
    const auto bits = std::bit_cast<int64_t>(priority + 0.0);
    const int64_t ascending = bits ^ ((bits >> 63) & std::numeric_limits<int64_t>::max());
    return ~ascending;
}
int64_t descending_key(int64_t priority) { return ~priority; }

template <class Priority, class Key>
std::pair<Key, Key> make_keys(std::span<const Priority> priority, std::vector<Key>& key) {
    key.resize(priority.size());
    Key* const __restrict keys = key.data();
    Key least = std::numeric_limits<Key>::max(), most = std::numeric_limits<Key>::min();
    for (size_t i = 0; i < priority.size(); ++i) {
        const Key k = descending_key(priority[i]);
        keys[i] = k;
        least = std::min(least, k);
        most = std::max(most, k);
    }
    return {least, most};
}

// Below this, counting digits costs more than the sort.
constexpr uint32_t kFew = 48;

template <class Key>
void sort_few(const Key* keys, int32_t* order, int32_t* rank, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t to = i;
        for (; to > 0 && keys[order[to - 1]] > keys[i]; --to) order[to] = order[to - 1];
        order[to] = static_cast<int32_t>(i);
    }
    for (uint32_t i = 0; i < count; ++i) rank[order[i]] = static_cast<int32_t>(i);
}

// Position i holds a key that is smaller than the one before, though they agree in their leading digits: puts it where
// it belongs. Returns the last position up to which all is sorted and ranked then.
template <class Key>
uint32_t sort_neighbours(const Key* keys, const uint32_t* digits, int32_t* order, int32_t* rank, uint32_t count, uint32_t i) {
    constexpr uint32_t kFar = 16;
    const int32_t index = order[i];
    uint32_t to = i;
    while (to > 0 && keys[order[to - 1]] > keys[index] && i - to < kFar) --to;
    uint32_t begin = to, end = i + 1;
    if (i - to < kFar) {
        std::copy_backward(order + to, order + i, order + i + 1);
        order[to] = index;
    } else {  // many keys agree: sort all of them once
        while (begin > 0 && digits[order[begin - 1]] == digits[index]) --begin;
        while (end < count && digits[order[end]] == digits[index]) ++end;
        std::sort(order + begin, order + end,
                  [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
    }
    for (uint32_t k = begin; k < end; ++k) rank[order[k]] = static_cast<int32_t>(k);
    return end - 1;
}

void to_first_positions(uint32_t* counts, uint32_t size) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < size; ++i) sum += std::exchange(counts[i], sum);
}

}  // namespace

bool has_nan(std::span<const float> priority) { return any_nan(priority); }
bool has_nan(std::span<const double> priority) { return any_nan(priority); }

void upward_rank(const Graph& graph, const Platform& platform, const uint8_t* device, int64_t* out) {
    for (int32_t op = graph.num_ops - 1; op >= 0; --op) {
        const int source = device[op];
        int64_t longest_tail = 0;
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) {
            for (int32_t consumer : graph.consumers(t)) {
                const int destination = device[consumer];
                const int64_t hop =
                    source == destination ? 0 : platform.transfer_ns(graph.tensor_bytes[t], source, destination);
                longest_tail = std::max(longest_tail, hop + out[consumer]);
            }
        }
        out[op] = (graph.is_variable[op] ? 0 : platform.cost_ns(op, source)) + longest_tail;
    }
}

// Least significant digit first, on the two leading digits of the keys' range only: that tells almost all keys apart.
// Where keys agree in them, a last look at neighbours puts them in order.
template <class Key>
void Ranker::sort(const std::vector<Key>& key, Key least, Key most, Ranking& out) {
    using Unsigned = std::make_unsigned_t<Key>;
    const auto count = static_cast<uint32_t>(key.size());
    constexpr int kIndexBits = 21;
    out.order.resize(count);
    out.rank.resize(count);
    if (count <= kFew) return sort_few(key.data(), out.order.data(), out.rank.data(), count);

    const int digit_bits = count <= 256 ? 8 : count <= 1024 ? 9 : count <= 4096 ? 10 : 11;
    const int range_bits = std::bit_width(static_cast<Unsigned>(most) - static_cast<Unsigned>(least));
    const int shift = std::max(0, range_bits - 2 * digit_bits);
    const uint32_t digit_mask = (1u << digit_bits) - 1;

    low_.assign(digit_mask + 1, 0);
    high_.assign(digit_mask + 1, 0);
    digits_.resize(count);
    half_sorted_.resize(count);
    // Raw pointers: the compiler cannot know that a store leaves the vectors themselves alone.
    uint32_t* const __restrict low = low_.data();
    uint32_t* const __restrict high = high_.data();
    uint32_t* const __restrict digits = digits_.data();
    uint32_t* const __restrict half_sorted = half_sorted_.data();
    int32_t* const __restrict order = out.order.data();
    int32_t* const __restrict rank = out.rank.data();
    const Key* const __restrict keys = key.data();
    for (uint32_t i = 0; i < count; ++i)
        digits[i] = static_cast<uint32_t>((static_cast<Unsigned>(keys[i]) - static_cast<Unsigned>(least)) >> shift);
    for (uint32_t i = 0; i < count; ++i) {
        ++low[digits[i] & digit_mask];
        ++high[digits[i] >> digit_bits];
    }
    to_first_positions(low, digit_mask + 1);
    to_first_positions(high, digit_mask + 1);
    if (count >> kIndexBits == 0) {  // the second digit travels with the index
        for (uint32_t i = 0; i < count; ++i)
            half_sorted[low[digits[i] & digit_mask]++] = digits[i] >> digit_bits << kIndexBits | i;
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t item = half_sorted[i];
            order[high[item >> kIndexBits]++] = static_cast<int32_t>(item & ((1u << kIndexBits) - 1));
        }
    } else {
        for (uint32_t i = 0; i < count; ++i) half_sorted[low[digits[i] & digit_mask]++] = i;
        for (uint32_t i = 0; i < count; ++i)
            order[high[digits[half_sorted[i]] >> digit_bits]++] = static_cast<int32_t>(half_sorted[i]);
    }

    Key before = keys[order[0]];
    for (uint32_t i = 0; i < count; ++i) {
        const int32_t index = order[i];
        if (keys[index] < before) [[unlikely]] {
            i = sort_neighbours(keys, digits, order, rank, count, i);
            before = keys[order[i]];
            continue;
        }
        before = keys[index];
        rank[index] = static_cast<int32_t>(i);
    }
}

void Ranker::rank(std::span<const float> priority, Ranking& out) {
    const auto [least, most] = make_keys(priority, key32_);
    sort(key32_, least, most, out);
}
void Ranker::rank(std::span<const double> priority, Ranking& out) {
    const auto [least, most] = make_keys(priority, key64_);
    sort(key64_, least, most, out);
}
void Ranker::rank(std::span<const int64_t> priority, Ranking& out) {
    const auto [least, most] = make_keys(priority, key64_);
    sort(key64_, least, most, out);
}

}  // namespace opgym
