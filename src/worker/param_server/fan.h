// A few threads that do one thing each at the same time: one a server.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::ps {

class Fan {
 public:
  explicit Fan(int size);
  ~Fan();
  Fan(const Fan&) = delete;
  Fan& operator=(const Fan&) = delete;
  // Calls work(0) to work(size - 1), each in its own thread; 0 in the caller's. Returns when all are done; throws what
  // the first one, by number, threw.
  void run(const std::function<void(int)>& work);

 private:
  void loop(int index);
  void call(int index);

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  const std::function<void(int)>* work_ = nullptr;
  int64_t round_ = 0;
  int num_busy_ = 0;
  bool ending_ = false;
  std::vector<std::exception_ptr> failures_;  // one per thread, which alone writes it
  std::vector<std::thread> threads_;
};

}  // namespace assay::ps
