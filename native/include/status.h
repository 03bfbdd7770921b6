// Status: success, or a failure that names op, argument, what was expected and what was given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace trilithon {

enum class ErrorCode : uint8_t { argument_invalid, handle_disposed, memory_exhausted, aborted, kernel_unavailable };

// The code as the catalogue of errors spells it.
constexpr const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::argument_invalid:
      return "NATIVE_ARGUMENT_INVALID";
    case ErrorCode::handle_disposed:
      return "NATIVE_HANDLE_DISPOSED";
    case ErrorCode::memory_exhausted:
      return "NATIVE_MEMORY_EXHAUSTED";
    case ErrorCode::aborted:
      return "NATIVE_ABORTED";
    case ErrorCode::kernel_unavailable:
      return "KERNEL_UNAVAILABLE";
  }
  return "NATIVE_ARGUMENT_INVALID";
}

struct Failure {
  ErrorCode code;
  std::string op;        // "rms-norm.forward"
  std::string argument;  // empty when the failure is about the whole call
  std::string expected;
  std::string given;

  std::string message() const {
    std::string text = op + ": ";
    if (!argument.empty()) text += argument + ": ";
    text += "expected " + expected;
    if (!given.empty()) text += ", given " + given;
    return text;
  }
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(Failure failure) : failure_(std::make_unique<Failure>(std::move(failure))) {}
  bool ok() const { return failure_ == nullptr; }
  const Failure& failure() const { return *failure_; }

 private:
  std::unique_ptr<Failure> failure_;
};

inline Status invalid_argument(std::string op, std::string argument, std::string expected, std::string given) {
  return Status({ErrorCode::argument_invalid, std::move(op), std::move(argument), std::move(expected), std::move(given)});
}

}  // namespace trilithon
