#include "import/flagperf/shell_exports.h"

#include <gtest/gtest.h>

#include "base/text.h"

using namespace assay;

namespace {

std::string exports_text(const ShellExports& read) {
  std::string out;
  for (const auto& [name, variable] : read.variables) out += name + "=" + variable.value + "\n";
  for (const PythonIssue& issue : read.issues) {
    out += std::to_string(issue.line) + (issue.lost ? " lost " : " ") + join(issue.sets, ",") + "\n";
  }
  return out;
}

}  // namespace

TEST(ShellExports, ReadsPlainExportsOnly) {
  const ShellExports read = read_shell_exports(R"(#!/bin/bash
# a comment
export A=1
export B="two words" C='$literal'   # behind
	export D=x,y:z/w
export E=one\
two
)",
                                               "env.sh");
  EXPECT_EQ(exports_text(read), "A=1\nB=two words\nC=$literal\nD=x,y:z/w\nE=onetwo\n");
}

TEST(ShellExports, NamesWhatNeedsAShell) {
  const ShellExports read = read_shell_exports(R"(set -x
export A=$(readlink -f x)
export B=${C-1}
D=1
export E
export F=1; export G=2
source /usr/local/set_env.sh
export H=`date`
ulimit -n 1024
)",
                                               "env.sh");
  EXPECT_EQ(exports_text(read), "1 \n2 lost A\n3 lost B\n4 lost D\n5 lost \n6 lost F,G\n7 lost \n8 lost H\n9 lost \n");
}

// The value after a block depends on a condition that nobody evaluates.
TEST(ShellExports, BlocksMakeTheirVariablesUnknown) {
  const ShellExports read = read_shell_exports(R"(export A=1
export B=1
if [ -f x ]; then
  export A=2
else
  for i in 1 2; do export C=$i; done
fi
export D=4
f() {
  export B=2
}
cat <<END
export Z=1
END
)",
                                               "env.sh");
  EXPECT_EQ(exports_text(read),
            "D=4\n3 lost \n4 lost A\n6 lost C\n9 lost \n10 lost B\n12 lost \n13 lost Z\n14 lost \n");
}
