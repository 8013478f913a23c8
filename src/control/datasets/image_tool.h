// assay-images, the program that writes data sets of pictures.
#pragma once

#include "datasets/catalogue.h"

namespace assay {

// Runs it with these arguments and --output; reports its progress.
void run_image_tool(std::vector<std::string> arguments, const Conversion& conversion);

}  // namespace assay
