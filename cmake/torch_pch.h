// Precompiled for the data plane.
#include <torch/torch.h>

#include "control_pch.h"
