// Data sets of the MNIST family: four idx files, taken as they are.
#pragma once

#include "datasets/catalogue.h"

namespace assay {

// Copies the four files, whose names end with `suffix`, from a folder.
Json copy_idx_files(const fs::path& from, const std::string& suffix, const Conversion& conversion);

}  // namespace assay
