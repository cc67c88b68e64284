// A graph on a platform, laid out for the fast simulators: what an event needs lies in one short record.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "platform.hpp"

namespace opgym {

// Id: type of indices of ops and tensors here; uint16_t where they fit, which halves what the caches must hold.
//
// Ops keep their index. Tensors have slots: the first output of op v has slot v, slot num_ops is a dummy, further
// outputs follow. Source tensors are left out: they are present everywhere and take no dynamic memory. Lists of
// consumers and inputs are padded to four entries with the dummy op or tensor, whose updates touch nothing real; that
// is cheaper than a loop whose length the processor has to guess.
template <class Id>
class CompiledGraph {
   public:
    static constexpr int kInline = 4;

    // Of an op and its first output; of a further output (then without inputs).
    struct alignas(sizeof(Id) == 2 ? 32 : 16) Record {
        Id consumer[kInline];  // ops that read the tensor
        Id input[kInline];     // tensors that the op reads, in ascending order of the graph's index
        int64_t start_bytes;   // allocated at the start: outputs and workspace
        uint32_t cost_ns;      // if all devices are of one class
        // Low byte: for each inline consumer, 2 bits: position of the tensor among its inputs, at most 3.
        // Above: position in extra_of, 0 for the plain case.
        uint32_t extra_and_slots;

        uint32_t extra() const { return extra_and_slots >> 8; }
        uint8_t slots() const { return static_cast<uint8_t>(extra_and_slots); }
    };

    // Four consumers beyond the first four, padded.
    struct MoreConsumers {
        Id op[kInline];
        uint8_t slots;  // as in the low byte of extra_and_slots
    };

    // What most ops do not have.
    struct Extra {
        uint32_t consumers_begin = 0, consumers_end = 0;  // in more_consumers: groups of four
        // Inputs from the fourth on, in tail_inputs, if there are more than four; else empty.
        uint32_t tail_begin = 0, tail_end = 0;
        uint32_t outputs_begin = 0, outputs_end = 0;    // slots of further outputs
        uint32_t in_place_begin = 0, in_place_end = 0;  // in in_place_inputs
        int64_t end_bytes = 0;  // freed at the end whatever happens: workspace, outputs that nobody reads
        bool pinned = false;    // the tensor of this record is never freed on its producer's device
    };

    // Whether a graph keeps within the limits of Id and of the packed states of ops: one word of kStateBits for rank,
    // device and missing inputs.
    static bool fits(const Graph& graph, int max_devices);
    static constexpr int kRankBits = sizeof(Id) == 2 ? 16 : 18;
    static constexpr int missing_bits(int max_devices) { return 32 - kRankBits - max_devices; }

    CompiledGraph(const Graph& graph, const Platform& platform);

    uint32_t num_ops = 0;
    uint32_t num_slots = 0;
    std::vector<Record> records;        // [slots]
    std::vector<Extra> extras;          // [0] is unused
    std::vector<uint16_t> missing;      // [ops + 1] inputs that are not there at the start; the dummy's is 0
    std::vector<int64_t> slot_bytes;    // [slots]
    std::vector<Id> ready_ops;          // ops that miss nothing at the start
    std::vector<Id> variables;
    std::vector<MoreConsumers> more_consumers;
    std::vector<Id> tail_inputs;
    std::vector<int32_t> slot_tensor;   // [slots] the graph's index, -1: dummy
    std::vector<Id> in_place_inputs;    // inputs whose buffer may be taken over, in order of position
    std::vector<uint32_t> class_cost_ns;  // [ops, classes]
    int num_classes = 0;
    // duration of slot t over a link of class c: duration_ns[t * num_link_classes + c]
    std::vector<uint32_t> duration_ns;
    std::vector<uint8_t> link_class;  // [devices, devices]
    int num_link_classes = 0;

    // Where the cost of op 0 on a class lies; that of the next op is cost_stride() bytes on. With one class the costs
    // are in the records, which are at hand anyway.
    const char* cost_of_class(int device_class) const {
        return num_classes == 1 ? reinterpret_cast<const char*>(&records[0].cost_ns)
                                : reinterpret_cast<const char*>(&class_cost_ns[device_class]);
    }
    size_t cost_stride() const { return num_classes == 1 ? sizeof(Record) : num_classes * sizeof(uint32_t); }

    // Whether fetching ahead pays.
    bool outgrows_near_caches() const { return num_ops > 16'384; }

   private:
    void lay_out_ops(const Graph& graph);
    void lay_out_consumers(const Graph& graph);
    void lay_out_times(const Platform& platform);
    Extra& extra_of(uint32_t slot);

    std::vector<uint32_t> tensor_slot_;  // [tensors]
};

extern template class CompiledGraph<uint16_t>;
extern template class CompiledGraph<uint32_t>;

}  // namespace opgym
