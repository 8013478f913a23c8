#include <fmt/format.h>

#include "base/error.h"
#include "render/image_sets.h"
#include "render/text_picture.h"

namespace assay {

void write_text_images(const TextImageSet& set, const fs::path& folder, const PictureCount& count) {
  const Fonts fonts(set.fonts);
  const TextPictureOptions options{.seed = set.seed};
  int64_t number = 0;
  for (const char* part : {"train", "test"}) {
    make_folder(folder / part);
    const int64_t last = std::string_view(part) == "train" ? set.num_train : set.num_train + set.num_test;
    std::string labels;
    for (; number < last; ++number) {
      const TextPicture picture = draw_text_picture(fonts, options, static_cast<uint64_t>(number));
      const std::string path = fmt::format("{}/{:06}.png", part, number);
      const cairo_status_t status = cairo_surface_write_to_png(picture.surface.get(), (folder / path).c_str());
      if (status != CAIRO_STATUS_SUCCESS) {
        throw InfrastructureError(fmt::format("{}: {}", (folder / path).string(), cairo_status_to_string(status)));
      }
      labels += path + "\t" + labels_json(picture.texts) + "\n";
      count(number + 1, set.num_train + set.num_test);
    }
    write_file_atomic(folder / fmt::format("{}.txt", part), labels);
  }
}

}  // namespace assay
