#include "base/error.h"

#include <fmt/format.h>

namespace assay {

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return "usage";
    case ErrorKind::Config: return "config";
    case ErrorKind::Data: return "data";
    case ErrorKind::Invalid: return "invalid";
    case ErrorKind::Infrastructure: return "infrastructure";
    case ErrorKind::OutOfMemory: return "out_of_memory";
    case ErrorKind::NonFinite: return "non_finite";
    case ErrorKind::LossSpike: return "loss_spike";
    case ErrorKind::Communication: return "communication";
    case ErrorKind::Timeout: return "timeout";
    case ErrorKind::Interrupted: return "interrupted";
    case ErrorKind::Internal: return "unknown";
  }
  return "unknown";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage:
    case ErrorKind::Config:
    case ErrorKind::Data: return kExitUsage;
    case ErrorKind::Invalid: return kExitInvalid;
    case ErrorKind::Infrastructure: return kExitInfrastructure;
    case ErrorKind::Interrupted: return kExitInterrupted;
    default: return kExitFail;
  }
}

int worker_exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage:
    case ErrorKind::Config: return 2;
    case ErrorKind::Invalid: return 3;
    case ErrorKind::Infrastructure: return 4;
    case ErrorKind::Data: return 10;
    case ErrorKind::OutOfMemory: return 11;
    case ErrorKind::NonFinite: return 12;
    case ErrorKind::LossSpike: return 15;
    case ErrorKind::Communication: return 13;
    case ErrorKind::Timeout: return 14;
    case ErrorKind::Interrupted: return kExitInterrupted;
    case ErrorKind::Internal: return 1;
  }
  return 1;
}

std::string_view failure_kind(int code) {
  switch (code) {
    case 0: return "";
    case 2: return "config";
    case 3: return "invalid";
    case 4: return "infrastructure";
    case 10: return "data";
    case 11: return "out_of_memory";
    case 12: return "non_finite";
    case 13: return "communication";
    case 14: return "timeout";
    case 15: return "loss_spike";
    case kExitInterrupted: return "interrupted";
    default: return code > 128 ? "killed" : "unknown";
  }
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

}  // namespace assay
