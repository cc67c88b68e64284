// Independent items on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace opgym {

// Calls make_worker() once per thread, and what it returns once for every item 0 .. size - 1, in no fixed order. The
// first exception of any thread is rethrown here, after all threads have ended.
template <class MakeWorker>
void run_parallel(int64_t size, int threads, MakeWorker make_worker) {
    std::atomic<int64_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    auto work = [&] {
        try {
            auto worker = make_worker();
            for (int64_t i = next++; i < size; i = next++) worker(i);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
            next = size;
        }
    };
    std::vector<std::thread> others;
    for (int64_t i = 1; i < std::min<int64_t>(threads, size); ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace opgym
