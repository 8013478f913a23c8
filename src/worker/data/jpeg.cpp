#include "data/jpeg.h"

#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <optional>

#include <jpeglib.h>
// After jpeglib.h:
#include <jerror.h>

#include "base/error.h"

namespace assay {

namespace {

// libjpeg reports errors by a call that must not return. It jumps back to the function that called libjpeg, so such a
// function has no objects of its own with destructors.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void jpeg_give_up(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

// Warnings of libjpeg are about data that is damaged or ends too early; it would fill the rest with grey.
void jpeg_judge_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA) jpeg_give_up(info);
}

struct JpegInput {
  std::string_view bytes;
  jpeg_decompress_struct info;
  JpegErrors errors;

  explicit JpegInput(std::string_view from) : bytes(from), info{}, errors{} {
    info.err = ::jpeg_std_error(&errors.manager);
    errors.manager.error_exit = jpeg_give_up;
    errors.manager.emit_message = jpeg_judge_message;
  }
  ~JpegInput() { ::jpeg_destroy_decompress(&info); }
  JpegInput(const JpegInput&) = delete;
  JpegInput& operator=(const JpegInput&) = delete;
};

// False when libjpeg gave up.
bool read_jpeg_header(JpegInput& input) {
  if (setjmp(input.errors.jump)) return false;
  jpeg_create_decompress(&input.info);
  ::jpeg_mem_src(&input.info, reinterpret_cast<const unsigned char*>(input.bytes.data()), input.bytes.size());
  ::jpeg_read_header(&input.info, TRUE);
  return true;
}

// Decides what comes out, and starts.
bool start_jpeg(JpegInput& input, const JpegPart& part) {
  if (setjmp(input.errors.jump)) return false;
  jpeg_decompress_struct& info = input.info;
  const bool four_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four_inks ? JCS_CMYK : JCS_RGB;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(part.reduction);
  ::jpeg_start_decompress(&info);
  return true;
}

// Rows of the part, into pixels.rgb, which has room. `row` holds a row of four inks.
bool read_jpeg_rows(JpegInput& input, Pixels& pixels, std::vector<uint8_t>& row) {
  if (setjmp(input.errors.jump)) return false;
  jpeg_decompress_struct& info = input.info;
  if (pixels.top > 0) ::jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(pixels.top));
  const size_t stride = static_cast<size_t>(pixels.width) * 3;
  for (int y = 0; y < pixels.height; ++y) {
    uint8_t* out = pixels.rgb.data() + static_cast<size_t>(y) * stride;
    JSAMPROW target = row.empty() ? out : row.data();
    if (::jpeg_read_scanlines(&info, &target, 1) != 1) return false;
    if (row.empty()) continue;
    // Files of Adobe programs hold the inks inverted, and others with four inks are all but extinct.
    for (int x = 0; x < pixels.width; ++x) {
      const uint8_t* ink = row.data() + static_cast<size_t>(x) * 4;
      for (int c = 0; c < 3; ++c) out[x * 3 + c] = static_cast<uint8_t>(ink[c] * ink[3] / 255);
    }
  }
  return true;
}

bool crop_jpeg_columns(JpegInput& input, JDIMENSION& left, JDIMENSION& width) {
  if (setjmp(input.errors.jump)) return false;
  ::jpeg_crop_scanline(&input.info, &left, &width);
  return true;
}

[[noreturn]] void damaged_jpeg(const JpegInput& input, const std::string& where) {
  throw DataError(fmt::format("{}: a damaged JPEG file: {}", where, input.errors.message));
}

}  // namespace

ImageSize jpeg_size(std::string_view bytes, const std::string& where) {
  JpegInput input(bytes);
  if (!read_jpeg_header(input)) damaged_jpeg(input, where);
  return {static_cast<int>(input.info.image_width), static_cast<int>(input.info.image_height)};
}

Pixels read_jpeg(std::string_view bytes, const JpegPart& part, const std::string& where) {
  JpegInput input(bytes);
  if (!read_jpeg_header(input) || !start_jpeg(input, part)) damaged_jpeg(input, where);
  const int full_width = static_cast<int>(input.info.output_width);
  const int full_height = static_cast<int>(input.info.output_height);
  Pixels pixels;
  pixels.reduction = part.reduction;
  pixels.top = std::clamp(part.top, 0, full_height - 1);
  pixels.height = std::clamp(part.bottom, pixels.top + 1, full_height) - pixels.top;
  auto left = static_cast<JDIMENSION>(std::clamp(part.left, 0, full_width - 1));
  auto width = static_cast<JDIMENSION>(std::clamp(part.right, static_cast<int>(left) + 1, full_width)) - left;
  const bool all_columns = left == 0 && static_cast<int>(width) == full_width;
  // libjpeg widens the part to whole blocks, and says so.
  if (!all_columns && !crop_jpeg_columns(input, left, width)) damaged_jpeg(input, where);
  pixels.left = static_cast<int>(left);
  pixels.width = static_cast<int>(width);
  pixels.rgb.resize(static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height) * 3);
  std::vector<uint8_t> row;
  if (input.info.out_color_space == JCS_CMYK) row.resize(static_cast<size_t>(pixels.width) * 4);
  if (!read_jpeg_rows(input, pixels, row)) damaged_jpeg(input, where);
  return pixels;
}

}  // namespace assay
