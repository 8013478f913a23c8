// What can be wrong with a host, so that people and programs can tell the cases apart.
#pragma once

#include <string>

#include "base/error.h"

namespace assay {

enum class HostProblem {
  UnknownHost,       // no address by that name
  Refused,           // the host is there, and nobody listens
  Timeout,           // no answer, or no way there
  KeyUnknown,        // its key is not among those that are trusted
  KeyChanged,        // it has another key than the trusted one
  PermissionDenied,  // it does not let us in
  NoSpace,           // its disk is full
  NotWritable,       // the work folder cannot be made or written to
  WrongVersion,      // another assay, or none, where Host.program says there is one
  Damaged,           // a copy is not what it was copied from
  Other,
};

// The message begins with the name of the host.
class HostError : public InfrastructureError {
 public:
  HostError(HostProblem problem, const std::string& message) : InfrastructureError(message), problem_(problem) {}
  HostProblem problem() const { return problem_; }

 private:
  HostProblem problem_;
};

}  // namespace assay
