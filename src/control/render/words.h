// What the texts of rendered pictures say.
#pragma once

#include <string>

#include "render/seeded.h"

namespace assay {

struct Words {
  std::string text;
  bool is_chinese = false;
};
// One to three English words, a number, a date or a price; or a few Chinese words.
Words random_words(Seeded& random);

}  // namespace assay
