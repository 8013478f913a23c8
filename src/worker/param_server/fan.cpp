#include "param_server/fan.h"

namespace assay::ps {

Fan::Fan(int size) : failures_(size) {
  for (int i = 1; i < size; ++i) threads_.emplace_back([this, i] { loop(i); });
}

Fan::~Fan() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Fan::call(int index) {
  failures_[index] = nullptr;
  try {
    (*work_)(index);
  } catch (...) {
    failures_[index] = std::current_exception();
  }
}

void Fan::loop(int index) {
  int64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || round_ > seen; });
    if (ending_) return;
    seen = round_;
    lock.unlock();
    call(index);
    lock.lock();
    if (--num_busy_ == 0) changed_.notify_all();
  }
}

void Fan::run(const std::function<void(int)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    num_busy_ = static_cast<int>(threads_.size());
    ++round_;
  }
  changed_.notify_all();
  call(0);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_busy_ == 0; });
  }
  for (const std::exception_ptr& failure : failures_) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace assay::ps
