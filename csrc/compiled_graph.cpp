#include "compiled_graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace opgym {
namespace {

int32_t produced_inputs(const Graph& graph, int32_t op) {
    int32_t count = 0;
    for (int32_t t : graph.inputs(op)) count += !graph.is_source(t);
    return count;
}

uint32_t count_slots(const Graph& graph) {
    uint32_t slots = static_cast<uint32_t>(graph.num_ops) + 1;
    for (int32_t op = 0; op < graph.num_ops; ++op) slots += std::max(0, graph.num_outputs(op) - 1);
    return slots;
}

}  // namespace

template <class Id>
bool CompiledGraph<Id>::fits(const Graph& graph, int max_devices) {
    if (static_cast<uint64_t>(graph.num_ops) >= (1u << kRankBits)) return false;
    if (count_slots(graph) > std::numeric_limits<Id>::max()) return false;
    for (int32_t op = 0; op < graph.num_ops; ++op)
        if (static_cast<uint32_t>(produced_inputs(graph, op)) >> missing_bits(max_devices)) return false;
    for (int32_t t = graph.num_sources; t < graph.num_tensors; ++t)  // uses of a tensor are counted in 16 bits
        if (graph.consumers(t).size() > std::numeric_limits<uint16_t>::max() - 2 * kMaxDevices) return false;
    return true;
}

template <class Id>
CompiledGraph<Id>::CompiledGraph(const Graph& graph, const Platform& platform)
    : num_ops(graph.num_ops), num_slots(count_slots(graph)), extras(1) {
    const Id dummy = static_cast<Id>(num_ops);
    Record empty{};
    std::fill_n(empty.consumer, kInline, dummy);
    std::fill_n(empty.input, kInline, dummy);
    records.assign(num_slots, empty);
    slot_bytes.assign(num_slots, 0);
    slot_tensor.assign(num_slots, -1);
    missing.assign(num_ops + 1, 0);
    lay_out_ops(graph);
    lay_out_consumers(graph);
    lay_out_times(platform);
}

template <class Id>
typename CompiledGraph<Id>::Extra& CompiledGraph<Id>::extra_of(uint32_t slot) {
    Record& record = records[slot];
    if (record.extra() == 0) {
        record.extra_and_slots |= static_cast<uint32_t>(extras.size()) << 8;
        extras.emplace_back();
    }
    return extras[record.extra()];
}

template <class Id>
void CompiledGraph<Id>::lay_out_ops(const Graph& graph) {
    tensor_slot_.assign(graph.num_tensors, num_ops);
    uint32_t next_slot = num_ops + 1;
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        Record& record = records[op];
        int64_t start_bytes = graph.workspace_bytes[op], end_bytes = graph.workspace_bytes[op];
        for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t) {
            const bool first = t == graph.output_ptr[op];
            const uint32_t slot = first ? op : next_slot++;
            if (!first) {
                Extra& extra = extra_of(op);
                if (extra.outputs_begin == extra.outputs_end) extra.outputs_begin = extra.outputs_end = slot;
                ++extra.outputs_end;
            }
            tensor_slot_[t] = slot;
            slot_tensor[slot] = t;
            slot_bytes[slot] = graph.tensor_bytes[t];
            if (graph.is_output[t] || !graph.is_dynamic_at_home(t)) extra_of(slot).pinned = true;
            if (!graph.is_dynamic_at_home(t)) continue;
            start_bytes += graph.tensor_bytes[t];
            if (graph.consumers(t).empty() && !graph.is_output[t]) end_bytes += graph.tensor_bytes[t];
        }
        record.start_bytes = start_bytes;
        if (end_bytes != 0) extra_of(op).end_bytes = end_bytes;
        if (graph.is_variable[op]) variables.push_back(static_cast<Id>(op));

        std::vector<int32_t> inputs;
        for (int32_t t : graph.inputs(op))
            if (!graph.is_source(t)) inputs.push_back(t);
        if (graph.may_run_in_place(op)) {
            for (int32_t t : inputs) {  // in order of position; uses tell at run time whether it is taken
                if (!graph.may_take_over(op, t, /*at_home=*/false)) continue;
                Extra& extra = extra_of(op);
                if (extra.in_place_begin == extra.in_place_end)
                    extra.in_place_begin = extra.in_place_end = static_cast<uint32_t>(in_place_inputs.size());
                in_place_inputs.push_back(static_cast<Id>(tensor_slot_[t]));
                ++extra.in_place_end;
            }
        }
        std::sort(inputs.begin(), inputs.end());
        missing[op] = static_cast<uint16_t>(inputs.size());
        if (inputs.empty() && !graph.is_variable[op]) ready_ops.push_back(static_cast<Id>(op));
        for (size_t i = 0; i < inputs.size() && i < kInline; ++i) record.input[i] = static_cast<Id>(tensor_slot_[inputs[i]]);
        if (inputs.size() > kInline) {
            Extra& extra = extra_of(op);
            extra.tail_begin = static_cast<uint32_t>(tail_inputs.size());
            for (size_t i = kInline - 1; i < inputs.size(); ++i)
                tail_inputs.push_back(static_cast<Id>(tensor_slot_[inputs[i]]));
            extra.tail_end = static_cast<uint32_t>(tail_inputs.size());
        }
    }
}

template <class Id>
void CompiledGraph<Id>::lay_out_consumers(const Graph& graph) {
    // Position of each tensor among the sorted inputs of its consumer, at most 3.
    auto slot_in = [&](int32_t tensor, int32_t consumer) {
        int position = 0;
        for (int32_t t : graph.inputs(consumer)) position += !graph.is_source(t) && t < tensor;
        return static_cast<uint8_t>(std::min(position, kInline - 1));
    };
    for (int32_t t = graph.num_sources; t < graph.num_tensors; ++t) {
        const uint32_t slot = tensor_slot_[t];
        const auto consumers = graph.consumers(t);
        for (size_t i = 0; i < consumers.size() && i < kInline; ++i) {
            records[slot].consumer[i] = static_cast<Id>(consumers[i]);
            records[slot].extra_and_slots |= static_cast<uint32_t>(slot_in(t, consumers[i])) << (2 * i);
        }
        if (consumers.size() <= kInline) continue;
        Extra& extra = extra_of(slot);
        extra.consumers_begin = static_cast<uint32_t>(more_consumers.size());
        for (size_t i = kInline; i < consumers.size(); ++i) {
            if (i % kInline == 0) {
                MoreConsumers more{};
                std::fill_n(more.op, kInline, static_cast<Id>(num_ops));
                more_consumers.push_back(more);
            }
            more_consumers.back().op[i % kInline] = static_cast<Id>(consumers[i]);
            more_consumers.back().slots |= static_cast<uint8_t>(slot_in(t, consumers[i]) << (2 * (i % kInline)));
        }
        extra.consumers_end = static_cast<uint32_t>(more_consumers.size());
    }
}

template <class Id>
void CompiledGraph<Id>::lay_out_times(const Platform& platform) {
    num_classes = platform.num_classes;
    class_cost_ns.assign(platform.class_cost_ns.begin(), platform.class_cost_ns.end());
    for (uint32_t op = 0; op < num_ops; ++op) records[op].cost_ns = class_cost_ns[static_cast<size_t>(op) * platform.num_classes];

    const int devices = platform.num_devices;
    link_class.assign(static_cast<size_t>(devices) * devices, 0);
    std::map<std::pair<int64_t, int64_t>, int> classes;
    std::vector<std::pair<int, int>> example;
    for (int s = 0; s < devices; ++s)
        for (int d = 0; d < devices; ++d) {
            if (s == d) continue;
            const size_t pair = static_cast<size_t>(s) * devices + d;
            const auto [found, added] = classes.try_emplace({platform.latency_ns[pair], platform.bytes_per_second[pair]},
                                                            static_cast<int>(classes.size()));
            if (added) example.emplace_back(s, d);
            link_class[pair] = static_cast<uint8_t>(found->second);
        }
    num_link_classes = std::max<int>(1, static_cast<int>(classes.size()));
    if (platform.channel == Channel::free || classes.empty()) return;
    duration_ns.assign(static_cast<size_t>(num_slots) * num_link_classes, 0);
    for (uint32_t slot = 0; slot < num_slots; ++slot) {
        if (slot_tensor[slot] < 0) continue;
        for (int c = 0; c < num_link_classes; ++c)
            duration_ns[static_cast<size_t>(slot) * num_link_classes + c] =
                static_cast<uint32_t>(platform.transfer_ns(slot_bytes[slot], example[c].first, example[c].second));
    }
}

template class CompiledGraph<uint16_t>;
template class CompiledGraph<uint32_t>;

}  // namespace opgym
