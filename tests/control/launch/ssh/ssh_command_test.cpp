#include "launch/ssh/ssh_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../job_support.h"
#include "base/process.h"

using namespace assay;
using ::testing::Contains;

namespace {

Host plain_host() { return {.name = "node2", .address = "10.0.0.2", .user = "trn", .port = 2222}; }

}  // namespace

TEST(SshCommand, ChecksKeysAndAsksNobody) {
  Host host = plain_host();
  host.known_hosts = "/a b/known%hosts";
  host.identity_file = "/keys/id";
  const auto options = ssh_options(host, "/tmp/x/c1");
  for (const char* wanted :
       {"BatchMode=yes", "StrictHostKeyChecking=yes", "User=trn", "Port=2222", "IdentitiesOnly=yes", "ForwardAgent=no",
        "UserKnownHostsFile=\"/a b/known%%hosts\"", "IdentityFile=\"/keys/id\"", "ControlPath=\"/tmp/x/c1\""}) {
    EXPECT_THAT(options, Contains(wanted));
  }
  host.known_hosts = "/a\"b";
  EXPECT_THROW(ssh_options(host, "/tmp/x/c1"), ConfigError);
}

TEST(SshCommand, RejectsHostsThatWouldBeOptions) {
  for (const char* name : {"", "-oProxyCommand=touch x", "a b", "a\nb"}) {
    EXPECT_THROW(check_ssh_host({.name = name}), ConfigError) << name;
    EXPECT_THROW(check_ssh_host({.name = "n", .user = *name ? name : "-l"}), ConfigError) << name;
  }
  EXPECT_THROW(check_ssh_host({.name = "n", .port = 70000}), ConfigError);
  EXPECT_NO_THROW(check_ssh_host(plain_host()));
}

TEST(SshCommand, PassesEveryWordThroughAShell) {
  const std::vector<std::string> words = {"printf", "%s|", "a b", "it's", "$(touch x)", "\"", "", "*", "a\\b", ";"};
  EXPECT_EQ(capture({.argv = {"/bin/sh", "-c", remote_command(words)}}).out, "a b|it's|$(touch x)|\"||*|a\\b|;|");
}

TEST(SshCommand, FindsAddressesBeforeAColon) {
  EXPECT_EQ(copy_address(plain_host()), "10.0.0.2");
  EXPECT_EQ(copy_address({.name = "n", .address = "fe80::1"}), "[fe80::1]");
  EXPECT_EQ(rsync_shell({"ssh", "-o", "A=\"b c\"", "it's"}), "'ssh' '-o' 'A=\"b c\"' 'it''s'");
}

TEST(SshCommand, ExplainsAnAmbiguousEnd) {
  const HostError error =
      explain_failure(plain_host(), "starting the job", "exit code 255", "Connection closed by peer\r\n");
  EXPECT_EQ(error.problem(), HostProblem::Other);
  EXPECT_EQ(std::string(error.what()),
            "node2: starting the job failed with exit code 255: no connection, or the shell there was killed. "
            "Connection closed by peer");
  EXPECT_EQ(explain_failure(plain_host(), "x", "exit code 1", "ssh: connect to host h port 1: Connection timed out")
                .problem(),
            HostProblem::Timeout);
  EXPECT_EQ(explain_failure(plain_host(), "x", "exit code 11", "write failed: No space left on device (28)").problem(),
            HostProblem::NoSpace);
}
