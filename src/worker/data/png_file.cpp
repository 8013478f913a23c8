#include "data/png_file.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "base/error.h"

namespace assay {

namespace {

constexpr size_t kPngSignatureBytes = 8;

// As with libjpeg, functions that call libpng have no objects with destructors.
struct PngInput {
  std::string_view bytes;
  size_t at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[200] = "not a PNG file";

  explicit PngInput(std::string_view from);
  ~PngInput() { ::png_destroy_read_struct(&png, &info, nullptr); }
  PngInput(const PngInput&) = delete;
  PngInput& operator=(const PngInput&) = delete;
};

void png_give_up(png_structp png, png_const_charp text) {
  auto* input = static_cast<PngInput*>(::png_get_error_ptr(png));
  std::strncpy(input->message, text, sizeof(input->message) - 1);
  ::png_longjmp(png, 1);
}

void png_ignore_warning(png_structp, png_const_charp) {}

void png_take_bytes(png_structp png, png_bytep out, size_t count) {
  auto* input = static_cast<PngInput*>(::png_get_io_ptr(png));
  if (count > input->bytes.size() - input->at) ::png_error(png, "the file ends too early");
  std::memcpy(out, input->bytes.data() + input->at, count);
  input->at += count;
}

PngInput::PngInput(std::string_view from) : bytes(from) {
  png = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, this, png_give_up, png_ignore_warning);
  if (png) info = ::png_create_info_struct(png);
}

bool read_png_header(PngInput& input) {
  if (!input.png || !input.info) return false;
  if (setjmp(png_jmpbuf(input.png))) return false;
  ::png_set_read_fn(input.png, &input, png_take_bytes);
  // What stands before the pixels may be compressed, too.
  ::png_set_chunk_malloc_max(input.png, 8'000'000);
  ::png_read_info(input.png, input.info);
  return true;
}

// Everything becomes eight bits of red, green and blue. False when libpng gave up.
bool start_png(PngInput& input) {
  if (setjmp(png_jmpbuf(input.png))) return false;
  ::png_set_expand(input.png);
  ::png_set_strip_16(input.png);
  ::png_set_gray_to_rgb(input.png);
  ::png_set_strip_alpha(input.png);
  ::png_set_interlace_handling(input.png);
  ::png_read_update_info(input.png, input.info);
  return true;
}

bool read_png_rows(PngInput& input, png_bytepp rows) {
  if (setjmp(png_jmpbuf(input.png))) return false;
  ::png_read_image(input.png, rows);
  ::png_read_end(input.png, nullptr);
  return true;
}

[[noreturn]] void damaged_png(const PngInput& input, const std::string& where) {
  throw DataError(fmt::format("{}: a damaged PNG file: {}", where, input.message));
}

}  // namespace

ImageSize png_size(std::string_view bytes, const std::string& where) {
  PngInput input(bytes);
  if (bytes.size() < kPngSignatureBytes || !read_png_header(input)) damaged_png(input, where);
  return {static_cast<int>(::png_get_image_width(input.png, input.info)),
          static_cast<int>(::png_get_image_height(input.png, input.info))};
}

Pixels read_png(std::string_view bytes, const std::string& where) {
  PngInput input(bytes);
  if (bytes.size() < kPngSignatureBytes || !read_png_header(input) || !start_png(input)) damaged_png(input, where);
  Pixels pixels;
  pixels.width = static_cast<int>(::png_get_image_width(input.png, input.info));
  pixels.height = static_cast<int>(::png_get_image_height(input.png, input.info));
  const size_t stride = static_cast<size_t>(pixels.width) * 3;
  if (::png_get_rowbytes(input.png, input.info) != stride) damaged_png(input, where);
  pixels.rgb.resize(stride * static_cast<size_t>(pixels.height));
  std::vector<png_bytep> rows;
  for (int y = 0; y < pixels.height; ++y) rows.push_back(pixels.rgb.data() + static_cast<size_t>(y) * stride);
  if (!read_png_rows(input, rows.data())) damaged_png(input, where);
  return pixels;
}

}  // namespace assay
