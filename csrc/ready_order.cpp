#include "ready_order.hpp"

#include <algorithm>

namespace opgym {

ReadyOrder::ReadyOrder(const Graph& graph) : initially_waiting_(graph.num_ops, 0), after_ptr_(1, 0) {
    for (int32_t op = 0; op < graph.num_ops; ++op) {
        if (graph.is_variable[op]) {
            initially_waiting_[op] = -1;
        } else {
            for (int32_t t = graph.output_ptr[op]; t < graph.output_ptr[op + 1]; ++t)
                after_.insert(after_.end(), graph.consumers(t).begin(), graph.consumers(t).end());
            std::sort(after_.begin() + after_ptr_.back(), after_.end());
            after_.erase(std::unique(after_.begin() + after_ptr_.back(), after_.end()), after_.end());
            for (size_t i = after_ptr_.back(); i < after_.size(); ++i) ++initially_waiting_[after_[i]];
        }
        after_ptr_.push_back(static_cast<int32_t>(after_.size()));
    }
}

template <class Add>
void ReadyOrder::end(int32_t op, Add add_ready) {
    for (int32_t i = after_ptr_[op]; i < after_ptr_[op + 1]; ++i)
        if (--waiting_[after_[i]] == 0) add_ready(after_[i]);
}

void ReadyOrder::draw(RandomStream& random, std::vector<int32_t>& order) {
    waiting_ = initially_waiting_;
    ready_.clear();
    order.clear();
    for (int32_t op = 0; op < static_cast<int32_t>(waiting_.size()); ++op)
        if (waiting_[op] == 0) ready_.push_back(op);
    while (!ready_.empty()) {
        std::swap(ready_[random.below(static_cast<int64_t>(ready_.size()))], ready_.back());
        const int32_t op = ready_.back();
        ready_.pop_back();
        order.push_back(op);
        end(op, [&](int32_t next) { ready_.push_back(next); });
    }
}

void ReadyOrder::by_keys(std::span<const double> key, std::vector<int32_t>& order) {
    waiting_ = initially_waiting_;
    heap_.clear();
    order.clear();
    for (int32_t op = 0; op < static_cast<int32_t>(waiting_.size()); ++op)
        if (waiting_[op] == 0) heap_.emplace_back(key[op], -op);
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end());
        const int32_t op = -heap_.back().second;
        heap_.pop_back();
        order.push_back(op);
        end(op, [&](int32_t next) {
            heap_.emplace_back(key[next], -next);
            std::push_heap(heap_.begin(), heap_.end());
        });
    }
}

}  // namespace opgym
