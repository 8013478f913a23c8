#include "comm/shm_transport.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <atomic>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "comm/shm_stream.h"

namespace assay::comm {

namespace {

std::atomic<void (*)(int64_t bytes)> buffer_counter{[](int64_t) {}};

class OrdinaryBuffer : public CommBuffer {
 public:
  explicit OrdinaryBuffer(int64_t bytes)
      : CommBuffer(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(4096, rounded(bytes)))) {
    if (!data_) throw OutOfMemoryError(fmt::format("no memory for a buffer of {} bytes", bytes));
    std::memset(data_.get(), 0, rounded(bytes));
  }
  void* data() const override { return data_.get(); }

 private:
  static size_t rounded(int64_t bytes) { return (static_cast<size_t>(bytes) / 4096 + 1) * 4096; }
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  const std::unique_ptr<std::byte, Free> data_;
};

// Made by the first member, mapped by all.
std::shared_ptr<Segment> shared_segment(const std::string& name, int index, int size, size_t bytes, bool reserve,
                                        Guard& guard) {
  guard.restart();
  const auto check = [&] { guard.check(); };
  if (index != 0) return std::make_shared<Segment>(take_segment(name, check), bytes);
  FileDescriptor file = Segment::create(bytes);
  if (reserve && ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) != 0) {
    throw OutOfMemoryError(fmt::format("no memory for {} bytes of shared memory", bytes));
  }
  give_segment(name, file.get(), size - 1, check);
  return std::make_shared<Segment>(std::move(file), bytes);
}

}  // namespace

CommBuffer::CommBuffer(int64_t bytes) : bytes_(bytes) { buffer_counter.load()(bytes_); }
CommBuffer::~CommBuffer() { buffer_counter.load()(-bytes_); }
void CommBuffer::set_counter(void (*counter)(int64_t bytes)) { buffer_counter = counter; }

std::shared_ptr<CommBuffer> ordinary_buffer(int64_t bytes) { return std::make_shared<OrdinaryBuffer>(bytes); }

std::shared_ptr<ShmGroup> open_shm_group(const std::string& name, int index, int size, bool spin, Guard& guard) {
  return std::make_shared<ShmGroup>(
      shared_segment(name, index, size, ShmGroup::segment_size(size), /*reserve=*/false, guard), index, size, spin);
}

std::shared_ptr<CommBuffer> open_shm_buffer(const std::string& name, ShmGroup& group, int64_t bytes, Guard& guard) {
  const auto total = static_cast<size_t>(ShmGroup::buffer_stride(bytes) * group.size());
  auto buffer =
      group.add_buffer(shared_segment(name, group.index(), group.size(), total, /*reserve=*/true, guard), bytes);
  return buffer;
}

ShmTransport::ShmTransport(std::string name, int index, int size, bool spin, Guard& guard)
    : name_(std::move(name)), group_(open_shm_group(name_, index, size, spin, guard)) {}

void ShmTransport::run(const Call& call, Guard& guard) { group_->run(call, guard); }

std::unique_ptr<ByteStream> ShmTransport::stream(int peer) { return std::make_unique<ShmStream>(group_, peer); }

std::shared_ptr<CommBuffer> ShmTransport::allocate(int64_t bytes, Guard& guard) {
  // The size is agreed on first: a member that maps more than there is would die of it.
  group_->run({.kind = CallKind::Allocate, .count = bytes}, guard);
  return open_shm_buffer(fmt::format("{}-{}", name_, ++num_buffers_), *group_, bytes, guard);
}

}  // namespace assay::comm
