#include "vendor/vendor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../common/config/temp_home.h"

using namespace assay;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr char kVendorText[] = R"(name: acme
hardware:
  X1:
    visible_devices: ACME_VISIBLE_DEVICES
    devices: 8
    monitor: [acme-smi, --csv]
    peak_flops: {float32: 1.5e13, bfloat16: 3e14}
    memory: 80e9
  X2:
    devices: [acme-smi, --count]
  X3:
)";

std::string vendor_error(const std::string& text) {
  const TempHome home;
  home.write("vendors/acme/vendor.yaml", text);
  return error_of([&] { read_vendor(home.path(), "acme"); });
}

}  // namespace

TEST(Vendor, ReadsItsHardware) {
  const TempHome home;
  home.write("vendors/acme/vendor.yaml", kVendorText);
  home.write("vendors/acme/environment", "# for all\nACME_MODE=fast\n");
  home.write("vendors/acme/resnet/environment", "ACME_MODE=slow\nOTHER=1\n");
  home.write("vendors/acme/setup", "#!/bin/sh\n");
  const VendorInfo info = read_vendor(home.path(), "acme");
  const VendorHardware* x1 = info.find("X1");
  ASSERT_TRUE(x1);
  EXPECT_EQ(x1->visible_devices, "ACME_VISIBLE_DEVICES");
  EXPECT_EQ(x1->device_count, 8);
  EXPECT_THAT(x1->monitor_command, ElementsAre("acme-smi", "--csv"));
  EXPECT_EQ(x1->peak_flops.at("bfloat16"), 3e14);
  EXPECT_EQ(x1->memory_bytes, 80e9);
  EXPECT_THAT(info.find("X2")->device_command, ElementsAre("acme-smi", "--count"));
  EXPECT_FALSE(info.find("X2")->device_count);
  EXPECT_TRUE(info.find("X3"));
  EXPECT_EQ(info.find("X4"), nullptr);
  EXPECT_EQ(info.environment.at("ACME_MODE"), "fast");
  EXPECT_EQ(vendor_environment(info, "resnet").at("ACME_MODE"), "slow");
  EXPECT_EQ(vendor_environment(info, "bert"), info.environment);
  EXPECT_EQ(info.setup, home.path() / "vendors/acme/setup");
}

TEST(Vendor, NamesFileLineAndKeyOfAFault) {
  EXPECT_THAT(
      vendor_error("name: acme\nhardware:\n  X1:\n    visible_device: A\n"),
      AllOf(HasSubstr("vendor.yaml:4: hardware.X1.visible_device"), HasSubstr("did you mean 'visible_devices'")));
  EXPECT_THAT(vendor_error("name: other\nhardware: {X1: }\n"), HasSubstr("vendor.yaml:1: name is 'other'"));
  EXPECT_THAT(vendor_error("hardware: {X1: }\n"), HasSubstr("name is missing"));
  EXPECT_THAT(vendor_error("name: acme\n"), HasSubstr("hardware must be a map"));
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: {devices: 0}}\n"), HasSubstr("hardware.X1.devices"));
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: {monitor: acme-smi}}\n"), HasSubstr("a command as a list"));
  EXPECT_THAT(vendor_error("name: acme\nhardware:\n  X1:\n    monitor: [smi, \"--format=csv,noheader\"]\n"),
              AllOf(HasSubstr("vendor.yaml:4"), HasSubstr("leave out noheader")));
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: {peak_flops: {fp32: 1}}}\n"), HasSubstr("peak_flops.fp32"));
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: {peak_flops: {float32: 0}}}\n"), HasSubstr("above 0"));
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: {visible_devices: A B}}\n"), HasSubstr("name of a variable"));
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: }\nsetup: ../../bin/sh\n"), HasSubstr("in the vendor's folder"));
}

// FlagPerf goes on without the file and measures something else.
TEST(Vendor, RejectsANamedButMissingEnvironment) {
  EXPECT_THAT(vendor_error("name: acme\nhardware: {X1: }\nenvironment: environment\n"),
              AllOf(HasSubstr("vendor.yaml:3: environment names"), HasSubstr("which is not there")));
}

TEST(Vendor, HasNoHardwareWithoutVendorYaml) {
  const TempHome home;
  home.write("vendors/acme/resnet/config_X1x1x1.yaml", "");
  EXPECT_FALSE(read_vendor(home.path(), "acme").has_file);
  EXPECT_THAT(error_of([&] { read_vendor(home.path(), "acmee"); }), HasSubstr("did you mean 'acme'"));
  EXPECT_THAT(error_of([&] { read_vendor(home.path(), "../acme"); }), HasSubstr("no vendor '../acme'"));
}

TEST(Vendor, CountsDevicesInCommandOutput) {
  EXPECT_EQ(device_count_of("8\n8\n8\n"), 8);
  EXPECT_EQ(device_count_of("\n\tTotal Count                    : 16\n\n\tNPU ID : 0\n"), 16);
  EXPECT_EQ(device_count_of("no devices were found\n"), std::nullopt);
  EXPECT_EQ(device_count_of("0\n"), std::nullopt);
  EXPECT_EQ(device_count_of(""), std::nullopt);
}
