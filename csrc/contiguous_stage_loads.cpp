#include "contiguous_stage_loads.hpp"

#include <algorithm>
#include <stdexcept>

namespace opgym {
namespace {

constexpr int64_t kLargestTotal = int64_t{1} << 62;

}  // namespace

StageLoads::StageLoads(const DownSets& sets, const SplitCosts& costs)
    : sets_(sets), costs_(costs), classes_(costs.num_classes) {
    sum_up_blocks();
    collect_cuts();
}

void StageLoads::sum_up_blocks() {
    const int64_t count = sets_.count();
    const int32_t blocks = sets_.num_blocks();
    std::vector<int64_t> fastest(blocks, -1), own = costs_.block_bytes, shared(blocks, 0);
    for (int32_t b = 0; b < blocks; ++b)
        for (int64_t c = 0; c < classes_; ++c) {
            const int64_t ns = costs_.block_ns[b * classes_ + c];
            if (ns >= 0 && (fastest[b] < 0 || ns < fastest[b])) fastest[b] = ns;
        }
    for (size_t t = 0; t < costs_.tensor_producer.size(); ++t) {
        const auto tensor = static_cast<int32_t>(t);
        const auto readers = costs_.readers(tensor);
        if (costs_.tensor_producer[t] >= 0 || costs_.tensor_bytes[t] == 0) continue;
        if (readers.size() > 1) shared_.push_back(tensor);
        for (const int32_t b : readers) (readers.size() > 1 ? shared : own)[b] += costs_.tensor_bytes[t];
    }

    fastest_ns_.assign(count, 0);
    compute_ns_.assign(count * classes_, 0);
    forbidden_.assign(count * classes_, 0);
    own_bytes_.assign(count, 0);
    shared_bytes_.assign(count, 0);
    for (int64_t set = 1; set < count; ++set) {
        const auto [block, smaller] = sets_.step(set);
        fastest_ns_[set] = fastest_ns_[smaller] + std::max<int64_t>(fastest[block], 0);
        own_bytes_[set] = own_bytes_[smaller] + own[block];
        shared_bytes_[set] = shared_bytes_[smaller] + shared[block];
        for (int64_t c = 0; c < classes_; ++c) {
            const int64_t ns = costs_.block_ns[block * classes_ + c];
            compute_ns_[set * classes_ + c] = compute_ns_[smaller * classes_ + c] + std::max<int64_t>(ns, 0);
            forbidden_[set * classes_ + c] = forbidden_[smaller * classes_ + c] + (ns < 0);
        }
    }
}

void StageLoads::collect_cuts() {
    const size_t tensors = costs_.tensor_producer.size();
    std::vector<std::vector<int32_t>> touched(sets_.num_blocks());
    for (size_t t = 0; t < tensors; ++t) {
        const int64_t* to = costs_.to_device_ns.data() + t * classes_;
        const int64_t* from = costs_.from_device_ns.data() + t * classes_;
        const auto moves = [](int64_t ns) { return ns > 0; };
        if (costs_.tensor_producer[t] < 0) continue;
        if (std::none_of(to, to + classes_, moves) && std::none_of(from, from + classes_, moves)) continue;
        const auto tensor = static_cast<int32_t>(t);
        if (costs_.readers(tensor).empty()) continue;
        touched[costs_.tensor_producer[t]].push_back(tensor);
        for (const int32_t b : costs_.readers(tensor)) touched[b].push_back(tensor);
    }
    cut_ptr_ = {0, 0};
    for (int64_t set = 1; set < sets_.count(); ++set) {
        const auto [block, smaller] = sets_.step(set);
        const auto& changed = touched[block];  // ascending, as tensors were visited in order
        for (int64_t i = cut_ptr_[smaller]; i < cut_ptr_[smaller + 1]; ++i)
            if (!std::binary_search(changed.begin(), changed.end(), cut_[i])) cut_.push_back(int32_t{cut_[i]});
        for (const int32_t tensor : changed)
            if (crosses(tensor, set)) cut_.push_back(tensor);
        cut_ptr_.push_back(static_cast<int64_t>(cut_.size()));
    }
}

bool StageLoads::crosses(int32_t tensor, int64_t set) const {
    const bool inside = sets_.contains(set, costs_.tensor_producer[tensor]);
    const auto readers = costs_.readers(tensor);
    return std::any_of(readers.begin(), readers.end(),
                       [&](int32_t b) { return sets_.contains(set, b) != inside; });
}

bool StageLoads::read_in_stage(int32_t tensor, int64_t before, int64_t target) const {
    const auto readers = costs_.readers(tensor);
    return std::any_of(readers.begin(), readers.end(), [&](int32_t b) { return in_stage(b, before, target); });
}

bool StageLoads::fits(int64_t before, int64_t target, int c) const {
    if (forbidden_[target * classes_ + c] != forbidden_[before * classes_ + c]) return false;
    const int64_t capacity = costs_.class_capacity[c];
    int64_t bytes = own_bytes_[target] - own_bytes_[before];
    if (bytes > capacity) return false;
    if (bytes + shared_bytes_[target] - shared_bytes_[before] <= capacity) return true;
    for (const int32_t tensor : shared_)
        if (read_in_stage(tensor, before, target)) bytes += costs_.tensor_bytes[tensor];
    return bytes <= capacity;
}

void StageLoads::transfer_ns(int64_t before, int64_t target, std::span<int64_t> by_class) const {
    std::fill(by_class.begin(), by_class.end(), 0);
    const auto pay = [&](const std::vector<int64_t>& ns, int32_t tensor) {
        for (int64_t c = 0; c < classes_; ++c) by_class[c] += ns[tensor * classes_ + c];
    };
    // A tensor that the stage moves has an end outside: beyond `target`, or in `before`, or both.
    for (const int32_t tensor : cut(target)) {
        const int32_t producer = costs_.tensor_producer[tensor];
        if (!sets_.contains(target, producer)) {
            if (read_in_stage(tensor, before, target)) pay(costs_.to_device_ns, tensor);
        } else if (!sets_.contains(before, producer)) {
            pay(costs_.from_device_ns, tensor);
        }
    }
    for (const int32_t tensor : cut(before)) {
        const int32_t producer = costs_.tensor_producer[tensor];
        if (sets_.contains(before, producer)) {
            if (read_in_stage(tensor, before, target)) pay(costs_.to_device_ns, tensor);
        } else if (sets_.contains(target, producer)) {
            const auto readers = costs_.readers(tensor);  // one beyond `target` was paid for above
            if (std::all_of(readers.begin(), readers.end(), [&](int32_t b) { return sets_.contains(target, b); }))
                pay(costs_.from_device_ns, tensor);
        }
    }
}

int64_t StageLoads::least_later_transfer_ns(int64_t set) const {
    int64_t total = 0;
    for (const int32_t tensor : cut(set)) {
        const bool forward = sets_.contains(set, costs_.tensor_producer[tensor]);
        const int64_t* row = (forward ? costs_.to_device_ns : costs_.from_device_ns).data() + tensor * classes_;
        total += *std::min_element(row, row + classes_);
    }
    return total;
}

int64_t StageLoads::edge_ns(int64_t set) const {
    int64_t total = 0;
    for (const int32_t tensor : cut(set))
        for (int64_t c = 0; c < classes_; ++c)
            total += costs_.to_device_ns[tensor * classes_ + c] + costs_.from_device_ns[tensor * classes_ + c];
    return total;
}

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

}  // namespace opgym
