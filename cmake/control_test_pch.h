// Precompiled for the tests of the control plane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control_pch.h"
