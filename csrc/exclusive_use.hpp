// An object that one thread at a time may use, while calls let other Python threads run.
#pragma once

#include <atomic>
#include <stdexcept>

namespace opgym {

class ExclusiveUse {
   public:
    // Held for the time of a call. Throws std::runtime_error if another thread's call is not over: to wait for it would
    // leave to chance which of the two comes first.
    class Claim {
       public:
        explicit Claim(ExclusiveUse& use) : use_(use) {
            if (use_.taken_.exchange(true, std::memory_order_acquire))
                throw std::runtime_error("two threads use one batch at the same time; give each thread its own");
        }
        Claim(const Claim&) = delete;
        Claim& operator=(const Claim&) = delete;
        ~Claim() { use_.taken_.store(false, std::memory_order_release); }

       private:
        ExclusiveUse& use_;
    };

   private:
    std::atomic<bool> taken_{false};
};

}  // namespace opgym
