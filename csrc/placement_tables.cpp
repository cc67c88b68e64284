#include "placement_tables.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "platform.hpp"

namespace opgym {
namespace {

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

void check_pointer(const std::vector<int32_t>& ptr, size_t rows, size_t last, const char* message) {
    require(ptr.size() == rows + 1 && ptr.front() == 0 && static_cast<size_t>(ptr.back()) == last &&
                std::is_sorted(ptr.begin(), ptr.end()),
            message);
}

void check_range(const std::vector<int32_t>& values, int64_t least, int64_t end, const char* message) {
    require(std::all_of(values.begin(), values.end(), [&](int64_t v) { return least <= v && v < end; }), message);
}

template <class T>
bool all_at_least(const std::vector<T>& values, T least) {
    return std::all_of(values.begin(), values.end(), [&](T v) { return v >= least; });
}

}  // namespace

PlacementTables::PlacementTables(PlacementArrays arrays) : PlacementArrays(std::move(arrays)) {
    num_groups = static_cast<int32_t>(scheduled.size());
    num_tensors = static_cast<int32_t>(tensor_bytes.size());
    check();
    check_times();
    num_group_fields = static_cast<int32_t>(group_fields.size() / num_groups);
    allowed_set.assign(num_groups, 0);
    for (int32_t g = 0; g < num_groups; ++g) {
        most_inputs = std::max(most_inputs, input_ptr[g + 1] - input_ptr[g]);
        for (int d = 0; d < num_devices; ++d)
            if (allowed[static_cast<size_t>(g) * num_devices + d]) allowed_set[g] |= uint64_t{1} << d;
        require(allowed_set[g] != 0, "a group has no device");
    }
    lay_out();
}

void PlacementTables::check() const {
    require(num_devices >= 1 && num_devices <= kMaxDevices, "a cluster has 1 to 64 devices");
    require(num_resources >= 0 && num_resources <= 2 * num_devices * num_devices, "there are two resources per link at most");
    require(num_sources >= 0, "a negative number of sources");
    require(num_groups >= 1, "there is no group");
    const auto groups = static_cast<size_t>(num_groups), devices = static_cast<size_t>(num_devices);
    const auto tensors = static_cast<size_t>(num_tensors);
    require(allowed.size() == groups * devices && cost_ns.size() == groups * devices, "allowed or cost_ns: wrong length");
    require(private_bytes.size() == groups && inner_peak_bytes.size() == groups, "bytes of groups: wrong length");
    check_pointer(input_ptr, groups, input_tensor.size(), "input_ptr does not fit");
    check_pointer(output_ptr, groups, output_tensor.size(), "output_ptr does not fit");
    check_pointer(parent_ptr, groups, parent.size(), "parent_ptr does not fit");
    check_pointer(child_ptr, groups, child.size(), "child_ptr does not fit");
    check_pointer(source_ptr, groups, source.size(), "source_ptr does not fit");
    require(input_lead.size() == input_tensor.size() && source_bytes.size() == source.size(), "inputs: wrong length");
    require(lead_ns.size() % devices == 0 && offset_ns.size() % devices == 0, "leads or offsets: wrong length");
    check_range(input_tensor, 0, num_tensors, "an input does not exist");
    check_range(output_tensor, 0, num_tensors, "an output does not exist");
    check_range(input_lead, -1, static_cast<int64_t>(lead_ns.size() / devices), "a lead does not exist");
    check_range(parent, 0, num_groups, "a parent does not exist");
    check_range(child, 0, num_groups, "a child does not exist");
    check_range(source, 0, num_sources, "a source does not exist");
    require(tensor_held_bytes.size() == tensors && tensor_readers.size() == tensors && tensor_offset.size() == tensors &&
                tensor_duration.size() == tensors,
            "tensors: wrong length");
    check_range(tensor_offset, -1, static_cast<int64_t>(offset_ns.size() / devices), "an offset does not exist");
    require(num_link_kinds >= 1 && duration_ns.size() % num_link_kinds == 0, "durations: wrong length");
    check_range(tensor_duration, 0, static_cast<int64_t>(duration_ns.size() / num_link_kinds), "a duration does not exist");
    require(link.size() == devices * devices && send.size() == link.size() && receive.size() == link.size(),
            "links: wrong length");
    check_range(link, 0, num_link_kinds, "a kind of link does not exist");
    check_range(send, 0, std::max(num_resources, 1), "a resource does not exist");
    check_range(receive, 0, std::max(num_resources, 1), "a resource does not exist");
    require(capacity_bytes.size() == devices && all_at_least<int64_t>(capacity_bytes, 1), "capacities must be positive");
    require(group_fields.size() % groups == 0, "group_fields: wrong length");
    require(reference_ns >= 1 && total_steps >= 1 && block_ns > 0 && reference > 0, "units must be positive");
    require(all_at_least<int32_t>(tensor_readers, 1), "a tensor has no reader");
    check_tensors();
    check_bytes();
}

// An estimate names the home of a tensor once, and counts its readers down.
void PlacementTables::check_tensors() const {
    std::vector<int32_t> writers(tensor_bytes.size()), readers(tensor_bytes.size());
    for (int32_t t : output_tensor) require(++writers[t] == 1, "two groups write one tensor");
    for (int32_t t : input_tensor) ++readers[t];
    require(readers == tensor_readers, "tensor_readers does not count the inputs of groups");
}

// All groups on one device, whatever reads it still to come.
void PlacementTables::check_bytes() const {
    require(all_at_least<int64_t>(private_bytes, 0) && all_at_least<int64_t>(inner_peak_bytes, 0) &&
                all_at_least<int64_t>(source_bytes, 0) && all_at_least<int64_t>(tensor_bytes, 0) &&
                all_at_least<int64_t>(tensor_held_bytes, 0),
            "bytes are negative");
    __int128 total = *std::max_element(inner_peak_bytes.begin(), inner_peak_bytes.end());
    for (int64_t bytes : private_bytes) total += bytes;
    std::vector<int64_t> source_size(num_sources);
    for (size_t i = 0; i < source.size(); ++i) source_size[source[i]] = std::max(source_size[source[i]], source_bytes[i]);
    for (int64_t bytes : source_size) total += bytes;
    for (int32_t t = 0; t < num_tensors; ++t) total += std::max(tensor_bytes[t], tensor_held_bytes[t]);
    require(total <= std::numeric_limits<int64_t>::max(), "all bytes together could pass 2^63 - 1");
}

// All blocks on their slowest device and every possible transfer over the slowest link, one after the other.
void PlacementTables::check_times() const {
    __int128 total = 0;
    for (int32_t g = 0; g < num_groups; ++g) {
        const auto row = cost_ns.begin() + static_cast<ptrdiff_t>(g) * num_devices;
        total += *std::max_element(row, row + num_devices);
    }
    for (int32_t t = 0; t < num_tensors; ++t) {
        const auto row = duration_ns.begin() + static_cast<ptrdiff_t>(tensor_duration[t]) * num_link_kinds;
        total += static_cast<__int128>(*std::max_element(row, row + num_link_kinds)) * std::min(tensor_readers[t], num_devices - 1);
    }
    require(all_at_least<int64_t>(cost_ns, 0) && all_at_least<int64_t>(duration_ns, 0) && total <= std::numeric_limits<int64_t>::max(),
            "times are negative, or all of them together could pass 2^63 - 1 ns");
}

void PlacementTables::lay_out() {
    free_at = 0;
    busy_at = free_at + num_devices;
    live_at = busy_at + num_devices;
    peak_at = live_at + num_devices;
    resource_at = peak_at + num_devices;
    tensor_at = resource_at + num_resources;
    tensor_stride = 2 + num_devices;
    source_at = tensor_at + num_tensors * tensor_stride;
    start_at = source_at + num_sources;
    initial.assign(start_at + num_groups, 0);
    for (int32_t t = 0; t < num_tensors; ++t)
        initial[tensor_at + t * tensor_stride] = static_cast<int64_t>(tensor_readers[t]) << 8;
    std::fill(initial.begin() + start_at, initial.end(), -1);
}

double divide_exactly(int64_t a, int64_t b) {
    constexpr int64_t kExact = int64_t{1} << 53;
    if (a <= kExact && a >= -kExact && b <= kExact) [[likely]]
        return static_cast<double>(a) / static_cast<double>(b);
    // A quotient of at least 55 bits, what is cut off marked in its lowest bit: the conversion then rounds correctly.
    const uint64_t size = a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
    const auto divisor = static_cast<uint64_t>(b);
    const int shift = std::max(0, 55 + static_cast<int>(std::bit_width(divisor)) - static_cast<int>(std::bit_width(size)));
    const unsigned __int128 dividend = static_cast<unsigned __int128>(size) << shift;
    const auto quotient = static_cast<uint64_t>(dividend / divisor) | (dividend % divisor != 0);
    const double result = std::ldexp(static_cast<double>(quotient), -shift);
    return a < 0 ? -result : result;
}

}  // namespace opgym
