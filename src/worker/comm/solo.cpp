#include "comm/solo.h"

#include <cstring>

#include "base/error.h"
#include "comm/transport.h"

namespace assay::comm {

Pending SoloCommunicator::copy(const void* input, void* output, int64_t count, DType type) {
  ASSAY_CHECK(count >= 0, "a collective of a negative number of elements");
  const size_t bytes = static_cast<size_t>(count) * size_of(type);
  if (bytes > 0 && input != output) std::memmove(output, input, bytes);
  bytes_moved_ += static_cast<int64_t>(bytes);
  return {};
}

Pending SoloCommunicator::start_all_reduce(void* data, int64_t count, DType type, ReduceOp) {
  return copy(data, data, count, type);
}
Pending SoloCommunicator::start_reduce_scatter(const void* input, void* output, int64_t count, DType type, ReduceOp) {
  return copy(input, output, count, type);
}
Pending SoloCommunicator::start_all_gather(const void* input, void* output, int64_t count, DType type) {
  return copy(input, output, count, type);
}
Pending SoloCommunicator::start_broadcast(void* data, int64_t count, DType type, int root) {
  ASSAY_CHECK(root == 0, "a group of one has one member");
  return copy(data, data, count, type);
}
Pending SoloCommunicator::start_all_to_all(const void* input, void* output, int64_t count, DType type) {
  return copy(input, output, count, type);
}
Pending SoloCommunicator::start_send(const void*, int64_t, int, int) {
  throw InternalError("a group of one process cannot send");
}
Pending SoloCommunicator::start_receive(void*, int64_t, int, int) {
  throw InternalError("a group of one process cannot receive");
}
std::shared_ptr<CommBuffer> SoloCommunicator::allocate(int64_t bytes) { return ordinary_buffer(bytes); }

}  // namespace assay::comm
