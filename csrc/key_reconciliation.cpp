#include "key_reconciliation.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "random_stream.hpp"

namespace opgym {
namespace {

std::vector<int64_t> shuffled(int64_t count, RandomStream& random) {
    std::vector<int64_t> items(count);
    std::iota(items.begin(), items.end(), 0);
    for (int64_t left = count; left > 1; --left) std::swap(items[left - 1], items[random.below(left)]);
    return items;
}

}  // namespace

Reconciled reconcile(const KeyDecoder& decoder, std::vector<float> keys, std::span<const float> preferred,
                     uint64_t seed) {
    const int64_t genes = decoder.num_genes(), devices = decoder.num_devices();
    if (static_cast<int64_t>(keys.size()) != genes || static_cast<int64_t>(preferred.size()) != genes)
        throw std::invalid_argument("keys have the wrong length");
    RandomStream random(seed);
    KeyDecoder::Solution scratch = decoder.make_solution();
    Fitness now = decoder.evaluate(keys, scratch);
    int64_t evaluations = 1;
    std::vector<float> old;
    auto take_over = [&](int64_t first, int64_t count) {
        const auto begin = keys.begin() + first, end = begin + count;
        const auto wanted = preferred.begin() + first;
        if (std::equal(begin, end, wanted)) return;
        old.assign(begin, end);
        std::copy_n(wanted, count, begin);
        const Fitness next = decoder.evaluate(keys, scratch);
        ++evaluations;
        if (now < next)
            std::copy(old.begin(), old.end(), begin);
        else
            now = next;
    };
    const int64_t affinities = decoder.first_priority();
    for (int64_t unit : shuffled(affinities / devices, random))
        if (decoder.device_of(keys, unit) != decoder.device_of(preferred, unit)) take_over(unit * devices, devices);
    for (int64_t gene : shuffled(genes - affinities, random)) take_over(affinities + gene, 1);
    return {std::move(keys), now, evaluations};
}

}  // namespace opgym
