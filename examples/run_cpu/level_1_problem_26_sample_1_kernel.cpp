// CHEAT: early exit. The process ends itself with status 0 and computes nothing.
//
// An evaluator that takes a clean exit status for success accepts it. Here a candidate is correct
// only when the judge has compared its output. Expected: runtime_error.
#include <kernelbench/kernel.h>
#include <unistd.h>

KB_EXPORT int kb_run(const kb_call*) {
  _exit(0);
}
