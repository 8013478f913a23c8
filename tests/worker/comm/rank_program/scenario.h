// One process of a job under test: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as in training, a scenario as
// argument. Ends with 0 when everything was as it should be; prints what was not. A CommunicationError ends it with 13
// and is printed as "error after SECONDS: TEXT".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/world.h"

namespace assay::rank_program {

using namespace comm;

using Arguments = std::vector<std::string>;
using Scenario = std::function<void(World&, const Arguments&)>;
const std::map<std::string, Scenario>& scenarios();

// Prints and counts; the process ends with 1 when there was any.
void complain(const std::string& text);
std::vector<int> all_ranks(const World& world);

// The scenarios, by file.
void check_collectives(World& world, const Arguments& arguments);
void check_buffers(World& world, const Arguments& arguments);
void check_groups(World& world, const Arguments& arguments);
void check_order(World& world, const Arguments& arguments);
void check_messages(World& world, const Arguments& arguments);
void check_bits(World& world, const Arguments& arguments);
void loop_until_loss(World& world, const Arguments& arguments);
void get_stuck(World& world, const Arguments& arguments);
void disagree(World& world, const Arguments& arguments);

}  // namespace assay::rank_program
