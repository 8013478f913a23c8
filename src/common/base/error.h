// Typed errors. A user's fault, a broken machine and a failed training each have a kind; the kind decides the exit
// code. Measured outcomes are not errors: see verify/verdict.h.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace assay {

enum class ErrorKind {
  Usage,           // wrong command line
  Config,          // wrong configuration: names file, line, key
  Data,            // a data set, model file or log that is missing, damaged or of the wrong kind
  Invalid,         // nothing was run or measured
  Infrastructure,  // host, port, disk
  OutOfMemory,
  NonFinite,  // a loss or gradient that is not a number
  LossSpike,  // a loss far above those of the steps before
  Communication,
  Timeout,
  Interrupted,
  Internal,  // our own fault
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

template <ErrorKind K>
class TypedError : public Error {
 public:
  explicit TypedError(const std::string& message) : Error(K, message) {}
};

using UsageError = TypedError<ErrorKind::Usage>;
using ConfigError = TypedError<ErrorKind::Config>;
using DataError = TypedError<ErrorKind::Data>;
using InvalidError = TypedError<ErrorKind::Invalid>;
using InfrastructureError = TypedError<ErrorKind::Infrastructure>;
using OutOfMemoryError = TypedError<ErrorKind::OutOfMemory>;
using NonFiniteError = TypedError<ErrorKind::NonFinite>;
using LossSpikeError = TypedError<ErrorKind::LossSpike>;
using CommunicationError = TypedError<ErrorKind::Communication>;
using TimeoutError = TypedError<ErrorKind::Timeout>;
using InterruptedError = TypedError<ErrorKind::Interrupted>;
using InternalError = TypedError<ErrorKind::Internal>;

// "config", "data", "out_of_memory", ...: the words used in records and reports.
std::string_view kind_name(ErrorKind kind);

// Exit codes of `assay`.
inline constexpr int kExitPass = 0;
inline constexpr int kExitFail = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInvalid = 3;
inline constexpr int kExitInfrastructure = 4;
inline constexpr int kExitInterrupted = 130;
int exit_code(ErrorKind kind);

// Exit codes of `assay-worker`, one per failure kind, so that the parent knows the kind without reading a log.
int worker_exit_code(ErrorKind kind);
// The failure kind behind a worker's exit code or signal: "config", ..., "killed", "unknown"; "" for success.
std::string_view failure_kind(int worker_exit_code);

// Checks that stay active in release builds; for our own faults only.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);
#define ASSAY_CHECK(condition, message)                                                 \
  do {                                                                                  \
    if (!(condition)) ::assay::check_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (false)

}  // namespace assay
