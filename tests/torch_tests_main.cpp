// The tests of the data plane compute without a worker around them, which would have prepared the processor.
#include <gtest/gtest.h>

#include "device/blas_kernels.h"
#include "device/cpu.h"

ASSAY_CHOOSE_BLAS_KERNELS

int main(int argc, char** argv) {
  assay::avoid_matrix_registers();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
