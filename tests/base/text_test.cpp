#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace assay;

TEST(Text, PythonFloatIsWhatPythonPrints) {
  // Values from Python 3: repr(x).
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(0.0), "0.0");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(7e-06), "7e-06");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(0.00009999), "9.999e-05");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(1.5e300), "1.5e+300");
  EXPECT_EQ(python_float(5e-324), "5e-324");
  EXPECT_EQ(python_float(1794771785.339754), "1794771785.339754");
  EXPECT_EQ(python_float(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(python_float(9007199254740993.0), "9007199254740992.0");
  EXPECT_EQ(python_float(std::nan("")), "nan");
  EXPECT_EQ(python_float(-std::numeric_limits<double>::infinity()), "-inf");
}
