#include "config/case_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "temp_home.h"

using namespace assay;
using testing::HasSubstr;

TEST(CaseKey, ReadsAllSixParts) {
  const CaseKey key = CaseKey::parse("resnet50:pytorch_1.8:A100:2:8:3");
  EXPECT_EQ(key.model, "resnet50");
  EXPECT_EQ(key.framework, "pytorch_1.8");
  EXPECT_EQ(key.framework_name(), "pytorch");
  EXPECT_EQ(key.hardware, "A100");
  EXPECT_EQ(key.nnodes, 2);
  EXPECT_EQ(key.nproc, 8);
  EXPECT_EQ(key.repeat, 3);
  EXPECT_EQ(key.world_size(), 16);
}

TEST(CaseKey, AcceptsTheModelAlone) {
  const CaseKey key = CaseKey::parse("resnet");
  EXPECT_EQ(key.framework, "libtorch");
  EXPECT_EQ(key.hardware, "");
  EXPECT_EQ(key.world_size(), 1);
}

TEST(CaseKey, RoundTripsText) {
  for (const char* text : {"resnet", "resnet:libtorch:cpu:1:1:1", "a:pytorch:H-100:4:8:2", "a:libtorch::1:2:1"}) {
    EXPECT_EQ(CaseKey::parse(text).text(), text);
  }
}

TEST(CaseKey, RefusesWhatIsNoKey) {
  for (const char* text : {"",
                           ":",
                           "a:b",
                           "a:b:c:1:1",
                           "a:b:c:1:1:1:1",
                           "a:b:c:0:1:1",
                           "a:b:c:1:-1:1",
                           "a:b:c:1:1:x",
                           "a:b:c:1:1:",
                           "a:b:c:1:1:99999999999999999999",
                           "a:b:c:100000:1:1",
                           "../../etc",
                           "a/b",
                           ".hidden",
                           "-x",
                           "a b",
                           "a:b:../c:1:1:1",
                           "a:b/c:d:1:1:1",
                           "a\n",
                           "a:b:c:1.5:1:1",
                           "a:b:c: 1:1:1"}) {
    EXPECT_THROW(CaseKey::parse(text), UsageError) << text;
  }
  EXPECT_THAT(error_of<UsageError>([] { CaseKey::parse("a:b:c:1:no:1"); }), HasSubstr("nproc"));
  EXPECT_THAT(error_of<UsageError>([] { CaseKey::parse("a:b"); }),
              HasSubstr("model:framework:hardware:nnodes:nproc:repeat"));
}
