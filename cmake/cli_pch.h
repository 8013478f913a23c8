// Precompiled for the command-line program.
#include <CLI/CLI.hpp>

#include "control_pch.h"
