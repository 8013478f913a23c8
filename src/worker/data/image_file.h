// Is the file of an image whole? Found out before training, at the price of a few bytes per file.
#pragma once

#include <cstdint>
#include <filesystem>

namespace assay {

// The size of the file, in bytes. Throws DataError naming it when it cannot be read, is empty, is neither a JPEG nor a
// PNG file, or ends before the image does. What is damaged in between is found when it is decoded.
uintmax_t check_image_file(const std::filesystem::path& path);

}  // namespace assay
