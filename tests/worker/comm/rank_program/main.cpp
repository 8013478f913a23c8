#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "scenario.h"

namespace assay::rank_program {

using namespace comm;

namespace {

int complaints = 0;

std::string from_environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

double number_from_environment(const char* name, double otherwise) {
  return parse_double(from_environment(name, "")).value_or(otherwise);
}

WorldOptions options_from_environment() {
  WorldOptions options;
  options.rank = static_cast<int>(number_from_environment("RANK", 0));
  options.world_size = static_cast<int>(number_from_environment("WORLD_SIZE", 1));
  options.master_address = from_environment("MASTER_ADDR", "127.0.0.1");
  options.master_port = static_cast<int>(number_from_environment("MASTER_PORT", 0));
  options.transport = transport_of(from_environment("TRANSPORT", "auto"));
  options.interface = from_environment("INTERFACE", "");
  options.time_limit_s = number_from_environment("TIME_LIMIT", 100);
  options.join_limit_s = number_from_environment("JOIN_LIMIT", 100);
  return options;
}

void say(const std::string& text) { std::cout << text << std::endl; }

}  // namespace

void complain(const std::string& text) {
  if (++complaints < 20) say("wrong: " + text);
}

std::vector<int> all_ranks(const World& world) {
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size(); ++rank) ranks.push_back(rank);
  return ranks;
}

const std::map<std::string, Scenario>& scenarios() {
  static const std::map<std::string, Scenario> kScenarios = {
      {"collectives", check_collectives},
      {"buffers", check_buffers},
      {"groups", check_groups},
      {"order", check_order},
      {"messages", check_messages},
      {"bits", check_bits},
      {"loop", loop_until_loss},
      {"stuck", get_stuck},
      {"disagree", disagree},
      {"describe",
       [](World& world, const Arguments&) {
         say(fmt::format("{}; local {} of {}", world.describe(), world.local_rank(), world.local_size()));
       }},
      {"fail",
       [](World& world, const Arguments&) {
         auto group = world.group(all_ranks(world), "all");
         if (world.rank() == 1) {
           world.fail("the disk is full");
           throw DataError("the disk is full");
         }
         group->barrier();
       }},
      {"refuse",
       [](World& world, const Arguments&) {
         auto group = world.group(all_ranks(world), "all");
         if (world.rank() == 1) {
           world.fail("heads do not divide", ErrorKind::Config);
           throw ConfigError("heads do not divide");
         }
         group->barrier();
       }},
      {"late",  // one comes to the end later than the others
       [](World& world, const Arguments&) {
         if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(700));
       }},
  };
  return kScenarios;
}

int run(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  const Stopwatch joining;
  std::unique_ptr<World> world;
  try {
    world = World::join(options_from_environment());
  } catch (const CommunicationError& error) {
    say(fmt::format("error after {:.2f}: {}", joining.seconds(), error.what()));
    return worker_exit_code(error.kind());
  }
  say("joined");
  const Stopwatch watch;
  try {
    scenarios().at(arguments.at(0))(*world, arguments);
    world->leave();
  } catch (const ConfigError& error) {
    say(fmt::format("refused: {}", error.what()));
    return worker_exit_code(error.kind());
  } catch (const CommunicationError& error) {
    say(fmt::format("error after {:.2f}: {}", watch.seconds(), error.what()));
    return worker_exit_code(error.kind());
  } catch (const std::exception& error) {
    say(fmt::format("other error: {}", error.what()));
    return 1;
  }
  say(complaints == 0 ? "fine" : fmt::format("{} complaints", complaints));
  return complaints == 0 ? 0 : 1;
}

}  // namespace assay::rank_program

int main(int argc, char** argv) { return assay::rank_program::run(argc, argv); }
