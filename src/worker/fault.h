// Why a worker did not do what it was asked. A value, not an exception: a candidate that crashes or
// hangs is an expected outcome.
#pragma once

#include <string>

namespace kb::worker {

enum class FaultKind {
  problem,        ///< the worker says: the problem file is at fault
  load,           ///< the worker says: the candidate cannot be imported, found or constructed
  runtime,        ///< the worker says: the candidate raised or returned non-zero
  out_of_memory,  ///< the worker says so, or its memory limit was hit
  unsupported,    ///< the worker says: not possible for this model
  protocol,       ///< it sent something that is not of the protocol
  crashed,        ///< its process ended
  timeout,        ///< it did not answer within the limit
  infrastructure  ///< our side failed (no memory, no sandbox, …)
};

struct Fault {
  FaultKind kind = FaultKind::infrastructure;
  std::string text;  ///< for people; bounded, untrusted when it comes from a worker
};

}  // namespace kb::worker
