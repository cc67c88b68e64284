// Orders built by always taking one of the ops that are ready: at random, or the one of the highest key.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph.hpp"
#include "random_stream.hpp"

namespace opgym {

// Scratch is reused, so that nothing is allocated after the first order.
class ReadyOrder {
   public:
    explicit ReadyOrder(const Graph& graph);

    // Each ready op is as likely as the others.
    void draw(RandomStream& random, std::vector<int32_t>& order);

    // Highest key first, ties to the lower index; key: [ops], no NaN. What a device does with these priorities.
    void by_keys(std::span<const double> key, std::vector<int32_t>& order);

   private:
    template <class Add>
    void end(int32_t op, Add add_ready);

    std::vector<int32_t> initially_waiting_, waiting_;  // [ops] ops that must run before it; -1: a variable
    std::vector<int32_t> after_ptr_, after_;            // CSR: ops that must run after an op, each once
    std::vector<int32_t> ready_;
    std::vector<std::pair<double, int32_t>> heap_;
};

}  // namespace opgym
