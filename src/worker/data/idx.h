// The idx files of the MNIST family: a magic number with type and rank, big-endian extents, raw bytes; plain or gzip.
// Files of others: everything is checked before it is believed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace assay {

struct IdxArray {
  std::vector<int64_t> shape;  // first extent: number of samples
  std::vector<uint8_t> bytes;  // row-major
};

// Reads unsigned bytes. Throws DataError naming the file and what is wrong: missing, not idx, another element type,
// truncated, bytes left over, a bad gzip checksum.
IdxArray read_idx(const std::filesystem::path& path);

}  // namespace assay
