// Memory that several processes of one host map. It has no name in any file system, so nothing is left of it however
// its processes end; they hand it to each other over a local socket. Knows no collectives.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/files.h"

namespace assay::comm {

class Segment {
 public:
  Segment(FileDescriptor file, size_t bytes);  // maps it; throws InfrastructureError
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  static FileDescriptor create(size_t bytes);  // zeros; throws InfrastructureError, OutOfMemoryError

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Hands `file` to `num_takers` other processes that call take_segment() with the same name. `check` is called while
// waiting, a few dozen times per second, and ends it by throwing.
void give_segment(const std::string& name, int file, int num_takers, const std::function<void()>& check);
FileDescriptor take_segment(const std::string& name, const std::function<void()>& check);

}  // namespace assay::comm
