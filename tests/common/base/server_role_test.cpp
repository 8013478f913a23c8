#include "base/server_role.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace assay::ps {

namespace {

using RoleVariables = std::map<std::string, std::string>;

std::optional<Role> role_with(const RoleVariables& variables) {
  return role_from([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// What Paddle's launcher gives a server.
const RoleVariables kServerVariables = {{"TRAINING_ROLE", "PSERVER"},
                                        {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:6001,10.0.0.2:6001"},
                                        {"PADDLE_TRAINERS_NUM", "3"},
                                        {"POD_IP", "10.0.0.2"},
                                        {"PADDLE_PORT", "6001"}};
const RoleVariables kTrainerVariables = {{"TRAINING_ROLE", "TRAINER"},
                                         {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:6001,10.0.0.2:6001"},
                                         {"PADDLE_TRAINERS_NUM", "3"},
                                         {"PADDLE_TRAINER_ID", "2"}};

std::string refusal(RoleVariables variables, const std::string& name, const std::optional<std::string>& value) {
  if (value) {
    variables[name] = *value;
  } else {
    variables.erase(name);
  }
  try {
    role_with(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(PsRole, ReadsServersAndTrainersOfPaddle) {
  const Role server = *role_with(kServerVariables);
  EXPECT_TRUE(server.is_server);
  EXPECT_EQ(server.index, 1);
  EXPECT_EQ(server.num_trainers, 3);
  EXPECT_EQ(server.servers, (std::vector<Endpoint>{{"10.0.0.1", 6001}, {"10.0.0.2", 6001}}));
  const Role trainer = *role_with(kTrainerVariables);
  EXPECT_FALSE(trainer.is_server);
  EXPECT_EQ(trainer.index, 2);
}

TEST(PsRole, IsAbsentWithoutServers) {
  EXPECT_FALSE(role_with({}));
  EXPECT_FALSE(role_with({{"TRAINING_ROLE", "TRAINER"}, {"PADDLE_TRAINERS_NUM", "4"}}));  // collective training
}

TEST(PsRole, IgnoresTrailingCommasAndBlanks) {
  RoleVariables variables = kTrainerVariables;
  variables["PADDLE_PSERVERS_IP_PORT_LIST"] = " host-a:1 , host-b:2,";
  EXPECT_EQ(role_with(variables)->servers, (std::vector<Endpoint>{{"host-a", 1}, {"host-b", 2}}));
}

TEST(PsRole, NamesWrongVariables) {
  const struct {
    const RoleVariables& base;
    const char* name;
    std::optional<std::string> value;
  } cases[] = {
      {kServerVariables, "TRAINING_ROLE", "WORKER"},
      {kServerVariables, "PADDLE_PSERVERS_IP_PORT_LIST", std::nullopt},
      {kServerVariables, "PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.2"},
      {kServerVariables, "PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.2:0"},
      {kServerVariables, "PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.2:6001,10.0.0.2:6001"},
      {kServerVariables, "PADDLE_PSERVERS_IP_PORT_LIST", ",,"},
      {kServerVariables, "PADDLE_PORT", "70000"},
      {kServerVariables, "PADDLE_PORT", "6002"},
      {kServerVariables, "POD_IP", std::nullopt},
      {kServerVariables, "PADDLE_TRAINERS_NUM", "0"},
      {kTrainerVariables, "PADDLE_TRAINER_ID", "3"},
      {kTrainerVariables, "PADDLE_TRAINER_ID", "two"},
      {kTrainerVariables, "PADDLE_TRAINER_ID", std::nullopt},
      {kTrainerVariables, "PADDLE_TRAINERS_NUM", std::nullopt},
  };
  for (const auto& [base, name, value] : cases) {
    EXPECT_NE(refusal(base, name, value).find(name), std::string::npos) << name << "=" << value.value_or("-");
  }
}

TEST(PsRole, FindsItselfInALocalJob) {
  const LocalJob job{.num_trainers = 2, .server_ports = {5001, 5002, 5003}};
  for (int rank = 0; rank < 5; ++rank) {
    RoleVariables variables;
    for (const auto& [name, value] : role_environment(job, rank)) variables[name] = value;
    const Role role = *role_with(variables);
    EXPECT_EQ(role.is_server, rank >= 2);
    EXPECT_EQ(role.index, rank >= 2 ? rank - 2 : rank);
    EXPECT_EQ(role.num_trainers, 2);
    EXPECT_EQ(role.servers.size(), 3u);
  }
}

}  // namespace assay::ps
