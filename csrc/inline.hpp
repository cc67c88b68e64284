// For functions whose cost is the call: everything that an event does belongs into one loop.
#pragma once

#define OPGYM_INLINE __attribute__((always_inline)) inline
