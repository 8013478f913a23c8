// TensorBoard's event files as a backend of records: metrics become scalars over global_step. The format is published:
// TFRecord frames (length, masked CRC-32C of it, bytes, masked CRC-32C of them) around `Event` messages of
// tensorflow/core/util/event.proto, of which a few fields are written here by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "record/stream.h"

namespace assay {

class TensorBoardWriter final : public RecordBackend {
 public:
  // Makes a new file in the folder: each attempt of a run has its own, and TensorBoard reads them in turn. Throws
  // InfrastructureError.
  explicit TensorBoardWriter(const std::filesystem::path& folder);

  // One write(2) an event, so a kill loses at most the last one. Metrics become scalars: "train.loss" is "train/loss",
  // which TensorBoard shows in the group "train". A RESUMED event makes TensorBoard drop what an earlier attempt wrote
  // beyond that step. Other records, and metrics without a global_step, have no place there.
  void write(const Record& record) override;
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  FileDescriptor file_;
};

// CRC-32C (Castagnoli), as in RFC 3720: "123456789" gives 0xe3069283.
uint32_t crc32c(std::string_view bytes);

}  // namespace assay
