#include "plan/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../common/config/temp_home.h"

using namespace assay;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Entry, ReplacesWords) {
  EXPECT_THAT(expand_entry({"python3", "{case_dir}/train.py", "--x={nnodes}x{nproc}", "{\"a\": {}}", "{A}", "{"},
                           {{"case_dir", "/c"}, {"nnodes", "2"}, {"nproc", "8"}}),
              ElementsAre("python3", "/c/train.py", "--x=2x8", "{\"a\": {}}", "{A}", "{"));
}

TEST(Entry, DoesNotReplaceReplacedText) {
  EXPECT_THAT(expand_entry({"{data}"}, {{"data", "{vendor}"}}), ElementsAre("{vendor}"));
}

TEST(Entry, RejectsUnknownWords) {
  EXPECT_THAT(error_of([] { expand_entry({"{vender}"}, {}); }), HasSubstr("did you mean 'vendor'"));
  EXPECT_THAT(error_of([] { expand_entry({"{data}"}, {}); }), HasSubstr("{data} has no value"));
}
