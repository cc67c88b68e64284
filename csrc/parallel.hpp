// Independent items on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace opgym {

// Of one call; what is asked for beyond is not started, as no machine has cores for it.
inline constexpr int kMostThreads = 1024;

// Calls make_worker() once per thread, and what it returns once for every item 0 .. size - 1, in no fixed order. The
// first exception of any thread is rethrown here, after all threads have ended. Where the system has no more threads to
// give, those that there are do all of it.
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
    {
        std::vector<std::jthread> others;  // joined at the end of their scope, however it is left
        const int64_t count = std::min<int64_t>(std::min(threads, kMostThreads), size);
        others.reserve(static_cast<size_t>(std::max<int64_t>(count - 1, 0)));
        try {
            for (int64_t i = 1; i < count; ++i) others.emplace_back(work);
        } catch (const std::system_error&) {  // the work is shared out item by item, so nothing is left undone
        } catch (const std::bad_alloc&) {     // the same, where there is no memory for a thread's state
        }
        work();
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace opgym
