#include "render/fonts.h"

#include <fmt/format.h>
#include <fontconfig/fontconfig.h>
#include <pango/pangofc-fontmap.h>

#include "base/error.h"

namespace assay {

Fonts::Fonts(const std::vector<fs::path>& files) : map_(pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT)) {
  if (!map_) throw InternalError("this pango draws no fonts of FreeType");
  FcConfig* config = FcConfigCreate();
  for (const fs::path& file : files) {
    if (!FcConfigAppFontAddFile(config, reinterpret_cast<const FcChar8*>(file.c_str()))) {
      FcConfigDestroy(config);
      throw DataError(fmt::format("{}: not a font", file.string()));
    }
  }
  pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(map_.get()), config);
  FcConfigDestroy(config);  // the map keeps its own reference
}

}  // namespace assay
