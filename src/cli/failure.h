// How a command ends early: one clear sentence on stderr and exit code 2.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace kb::cli {

inline constexpr int kOk = 0;        ///< did its work, whatever the verdicts
inline constexpr int kFindings = 1;  ///< something to look at
inline constexpr int kUsage = 2;     ///< usage or environment

/// Thrown by a command for bad input or an unfit environment; main prints it and exits with kUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The value, or a UsageError with the sentence.
template <class Expected>
auto value_or_usage_error(Expected&& expected) {
  if (!expected) throw UsageError(expected.error());
  return *std::forward<Expected>(expected);
}

/// What ended `work` early, in a sentence; empty where nothing did. For the threads of a command,
/// which no exception may leave.
template <class Work>
std::string failure_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const UsageError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("internal error: ") + error.what();
  }
  return {};
}

}  // namespace kb::cli
