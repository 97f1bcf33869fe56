// A native candidate inside its worker: the loaded library, and one ready-made kb_call a slot.
#pragma once

#include <kernelbench/kernel.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "worker/fault.h"
#include "worker/file_descriptor.h"

namespace kb::worker::native {

/// The shared memory that tensors lie in: addresses of `device`.
struct Data {
  std::byte* base = nullptr;
  std::size_t size = 0;
  DLDevice device{};
};

/// Owns the tensors' descriptions.
class TensorList {
 public:
  /// Error: the entry is not of the protocol, or does not lie within the data.
  std::expected<void, std::string> add(const nlohmann::json& entry, const Data& data);
  std::vector<DLTensor> finish();  ///< call once, when all have been added

 private:
  struct Shape {
    std::vector<int64_t> extents, strides;
  };
  std::deque<Shape> shapes_;  // a deque: DLTensor points into it
  std::vector<DLTensor> tensors_;
};

/// The calls of an attached layout, by slot.
class CallTable {
 public:
  /// `stream` is what calls are made with.
  static std::expected<CallTable, std::string> parse(const nlohmann::json& layout, const Data& data,
                                                     void* stream);
  std::size_t slots() const { return slots_.size(); }
  kb_call call(std::size_t slot, void* state) const;
  kb_call create_call() const;  ///< parameters only

 private:
  struct Slot {
    TensorList input_list, output_list;
    std::vector<DLTensor> inputs, outputs;
    std::vector<kb_scalar> scalars;
  };
  std::deque<Slot> slots_;
  TensorList param_list_;
  std::vector<DLTensor> params_;
  std::deque<std::string> names_;
  std::vector<const char*> name_pointers_;
  void* stream_ = nullptr;
};

class Candidate {
 public:
  Candidate() = default;
  Candidate(Candidate&& other) noexcept;
  Candidate& operator=(Candidate&& other) noexcept;
  ~Candidate();  ///< calls kb_destroy

  /// dlopen of inherited descriptors, of which the last is the candidate's own library and the
  /// others are what it needs; then kb_create if there is one. Fault: load, runtime or
  /// out_of_memory.
  static std::expected<Candidate, Fault> load(std::span<const FileDescriptor> libraries,
                                              const CallTable& table);
  /// The null stub that calibrates the clock: its calls do nothing, successfully.
  static Candidate stub();
  bool is_stub() const;

  /// One call, which may only have been enqueued when this returns. Fault: what went wrong. C++
  /// exceptions that escape the candidate are caught.
  std::expected<void, Fault> run(const CallTable& table, std::size_t slot) const;
  bool has_create() const { return destroy_ || state_; }

 private:
  kb_run_fn run_ = nullptr;
  kb_destroy_fn destroy_ = nullptr;
  void* state_ = nullptr;
};

}  // namespace kb::worker::native
