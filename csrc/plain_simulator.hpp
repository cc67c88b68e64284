// The event simulator, written to be read: every rule of docs/simulator.md once, standard containers, no tricks.
// The fast simulator must equal it bit for bit; it also records timelines.
#pragma once

#include "graph.hpp"
#include "platform.hpp"
#include "run_result.hpp"

namespace opgym {

// Runs one candidate. `timeline` may be null.
RunResult run_plain(const Graph& graph, const Platform& platform, const RunRequest& request, Timeline* timeline);

// Resident bytes of each device under a placement. out: [devices].
void resident_bytes(const Graph& graph, int num_devices, const uint8_t* device, int64_t* out);

}  // namespace opgym
