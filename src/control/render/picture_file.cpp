#include "render/picture_file.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <jpeglib.h>

#include "base/error.h"

namespace assay {

namespace {

struct JpegFailure {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
};

void give_up(j_common_ptr info) { std::longjmp(reinterpret_cast<JpegFailure*>(info->err)->jump, 1); }

// No objects with destructors here: libjpeg jumps out of it.
bool compress(jpeg_compress_struct& info, JpegFailure& failure, const GreyPicture& picture, int quality,
              unsigned char** bytes, unsigned long* size) {
  info.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = give_up;
  if (setjmp(failure.jump)) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, bytes, size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < picture.height; ++y) {
    auto* row = const_cast<JSAMPROW>(picture.pixels.data() + static_cast<ptrdiff_t>(y) * picture.width);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

void write_png(const fs::path& path, const GreyPicture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_GRAY;
  if (!png_image_write_to_file(&image, path.c_str(), 0, picture.pixels.data(), 0, nullptr)) {
    throw InfrastructureError(fmt::format("{}: cannot be written: {}", path.string(), image.message));
  }
}

void write_jpeg(const fs::path& path, const GreyPicture& picture, int quality) {
  jpeg_compress_struct info{};
  JpegFailure failure{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = compress(info, failure, picture, quality, &bytes, &size);
  jpeg_destroy_compress(&info);
  std::ofstream file(path, std::ios::binary);
  if (done) file.write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  std::free(bytes);
  file.close();
  if (!done || !file) throw InfrastructureError(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace assay
