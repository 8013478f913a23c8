// A job whose processes are threads of a test: each has its own World.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "comm/world.h"
#include "launch_port.h"

namespace assay {

// Runs `work` on so many ranks at once and rethrows what the first of them threw.
inline void on_ranks(int count, const std::function<void(comm::World&)>& work) {
  const int port = unused_port();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<comm::World> world;
      try {
        world = comm::World::join({.rank = rank, .world_size = count, .master_port = port, .time_limit_s = 10});
        work(*world);
        world->leave();
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
        if (world) world->fail(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace assay
