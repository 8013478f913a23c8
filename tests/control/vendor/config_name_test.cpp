#include "vendor/config_name.h"

#include <gtest/gtest.h>

using namespace assay;

TEST(ConfigName, Parses) {
  EXPECT_EQ(parse_config_name("config_A100x1x8"), (ConfigName{"A100", 1, 8}));
  EXPECT_EQ(parse_config_name("config_RTXx2xx10x4"), (ConfigName{"RTXx2x", 10, 4}));
  EXPECT_EQ(parse_config_name("config_TP2PP1A10040Gx1x8")->text(), "config_TP2PP1A10040Gx1x8");
  for (const char* bad :
       {"config_common", "config_A100x1", "config_x1x8", "config_A100x0x8", "config_A100x01x8", "A100x1x8",
        "config_A100x1x8y", "config_A/1x1x8", "config_A100x+1x8", "config_A100x1x99999", "config_xx", ""}) {
    EXPECT_FALSE(parse_config_name(bad)) << bad;
  }
}
