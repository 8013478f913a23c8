#include "launch/host/device_addresses.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "../job_support.h"
#include "base/error.h"
#include "base/files.h"

using namespace assay;

namespace {

class DeviceAddressesTest : public ::testing::Test {
 protected:
  DeviceAddresses read(const std::string& text) {
    write_file_atomic(file_, text);
    return read_device_addresses(file_);
  }
  TempFolder folder_;
  const fs::path file_ = folder_.path() / "hccn.conf";
};

using Addresses = std::map<int, std::string>;

}  // namespace

TEST_F(DeviceAddressesTest, ReadAHostsFile) {
  const DeviceAddresses found = read(
      "address_0=192.168.100.101\nnetmask_0=255.255.255.0\nnetdetect_0=192.168.100.1\n\n# the second\n"
      "address_1 = 192.168.101.101\r\ngateway_1=192.168.101.1\naddress_10=fe80::1\n");
  EXPECT_EQ(found.addresses, (Addresses{{0, "192.168.100.101"}, {1, "192.168.101.101"}, {10, "fe80::1"}}));
  EXPECT_TRUE(found.ignored.empty()) << found.ignored[0];
}

TEST_F(DeviceAddressesTest, AreEmptyWithoutAFile) {
  const DeviceAddresses found = read_device_addresses(folder_.path() / "none");
  EXPECT_TRUE(found.addresses.empty());
  EXPECT_TRUE(found.ignored.empty());
  EXPECT_TRUE(read("").addresses.empty());
}

TEST_F(DeviceAddressesTest, SkipAndNameBadLines) {
  const DeviceAddresses found = read(
      "address_0=10.0.0.1\naddress_1=10.0.0\naddress_=10.0.0.2\naddress_-1=10.0.0.2\naddress_99999999999999999999=1.2."
      "3.4\n"
      "what is this\naddress_0=10.0.0.9\naddress_2=10.0.0.3; rm -rf /\naddress_3=\naddress_4=10.0.0.5\n");
  EXPECT_EQ(found.addresses, (Addresses{{0, "10.0.0.1"}, {4, "10.0.0.5"}}));
  const std::vector<std::pair<int, std::string>> wanted = {
      {2, "has no address"},   {3, "names no device"}, {4, "names no device"}, {5, "names no device"},
      {6, "is not KEY=VALUE"}, {7, "device 0 again"},  {8, "has no address"},  {9, "has no address"}};
  ASSERT_EQ(found.ignored.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(mentions(found.ignored[i], file_.string() + ":" + std::to_string(wanted[i].first) + ": "))
        << found.ignored[i];
    EXPECT_TRUE(mentions(found.ignored[i], wanted[i].second)) << found.ignored[i];
  }
}

TEST_F(DeviceAddressesTest, CountManyBadLines) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "x\n";
  const DeviceAddresses found = read(text + "address_5=10.0.0.5\n");
  EXPECT_EQ(found.addresses, (Addresses{{5, "10.0.0.5"}}));
  ASSERT_EQ(found.ignored.size(), 11u);
  EXPECT_TRUE(mentions(found.ignored.back(), "and 990 more lines"));
}

TEST_F(DeviceAddressesTest, SkipWhatIsNotAFileOrTooLarge) {
  DeviceAddresses found = read("address_0=10.0.0.1\n" + std::string(2 << 20, ' '));
  EXPECT_TRUE(found.addresses.empty());
  ASSERT_EQ(found.ignored.size(), 1u);
  EXPECT_TRUE(mentions(found.ignored[0], "is larger than"));
  found = read_device_addresses(folder_.path());
  EXPECT_TRUE(mentions(found.ignored.at(0), "is not a regular file"));
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  found = read_device_addresses(pipe);
  EXPECT_TRUE(mentions(found.ignored.at(0), "is not a regular file")) << "and nobody waits for it";
}

TEST_F(DeviceAddressesTest, FollowAnAdministratorsLink) {
  write_file_atomic(folder_.path() / "real", "address_0=10.0.0.1\n");
  fs::create_symlink("real", file_);
  EXPECT_EQ(read_device_addresses(file_).addresses, (Addresses{{0, "10.0.0.1"}}));
}

TEST_F(DeviceAddressesTest, RejectGarbage) {
  std::mt19937 random(7);
  constexpr char kPieces[] =
      "address_0=.:\n\r\t \0#fe1x9"
      "\xff\xc3";
  for (int i = 0; i < 2000; ++i) {
    std::string text = i % 2 ? "address_0=1.2.3.4\n" : "";
    for (size_t size = random() % 200; size > 0; --size) text += kPieces[random() % (sizeof kPieces - 1)];
    write_file_atomic(file_, text, Durability::Crash);
    const DeviceAddresses found = read_device_addresses(file_);
    EXPECT_NO_THROW(device_addresses_of(device_addresses_json(found.addresses), "x")) << text;
    for (const std::string& line : found.ignored) EXPECT_NO_THROW(Json(line).dump()) << "not even in the log";
  }
}

TEST(DeviceAddressesJson, ComesBackAsItWas) {
  const Addresses addresses = {{0, "10.0.0.1"}, {12, "fe80::1"}};
  EXPECT_EQ(device_addresses_of(device_addresses_json(addresses), "x"), addresses);
  EXPECT_TRUE(device_addresses_of(device_addresses_json({}), "x").empty());
}

TEST(DeviceAddressesJson, NameWhatIsWrong) {
  const auto error_of = [](const char* text) {
    return message_of<DataError>([&] { device_addresses_of(Json::parse(text), "job.json"); });
  };
  EXPECT_EQ(error_of("[]"), "job.json: must be an object");
  EXPECT_EQ(error_of(R"({"x": "10.0.0.1"})"), "job.json: 'x' is not a device number");
  EXPECT_EQ(error_of(R"({"1": "host"})"), "job.json: device 1 must have an IP address");
  EXPECT_EQ(error_of(R"({"1": 7})"), "job.json: device 1 must have an IP address");
}
