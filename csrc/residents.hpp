// What a placement keeps in memory from start to end: sources on every device that reads them, variables at home.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace opgym {

class Residents {
   public:
    explicit Residents(const Graph& graph);

    // Resident bytes of each device. out: [devices].
    void bytes(const uint8_t* device, int num_devices, int64_t* out) const;

   private:
    struct Owner {  // bytes that go where one op goes
        int32_t op;
        int64_t bytes;
    };
    struct Shared {  // a source that several ops read
        int64_t bytes;
        int32_t first_consumer, end_consumer;  // in consumers_
    };
    std::vector<Owner> owners_;
    std::vector<Shared> shared_;
    std::vector<int32_t> consumers_;
};

}  // namespace opgym
