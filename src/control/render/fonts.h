// Fonts from files, and from nothing else: what is installed or configured on a machine does not matter.
#pragma once

#include <pango/pangocairo.h>

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"

namespace assay {

class Fonts {
 public:
  // Throws DataError naming a file that is not a font.
  explicit Fonts(const std::vector<fs::path>& files);
  PangoFontMap* map() const { return map_.get(); }

 private:
  struct Unref {
    void operator()(PangoFontMap* map) const { g_object_unref(map); }
  };
  std::unique_ptr<PangoFontMap, Unref> map_;
};

}  // namespace assay
