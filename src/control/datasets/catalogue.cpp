#include "datasets/catalogue.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "datasets/sets/sets.h"

namespace assay {

const std::vector<DataSet>& data_sets() {
  static const std::vector<DataSet> kSets = {fashion_images_set(), fashion_mnist_set(), janeausten_set(),
                                             mnist_set(),          movielens_set(),     sotu_set(),
                                             sotu_bpe_set(),       spam_assassin_set(), spam_assassin_wordpiece_set(),
                                             text_images_set()};
  return kSets;
}

const DataSet* find_data_set(const std::string& name) {
  for (const DataSet& set : data_sets()) {
    if (set.name == name) return &set;
  }
  return nullptr;
}

const DataSet& data_set_named(const std::string& name) {
  if (const DataSet* set = find_data_set(name)) return *set;
  std::vector<std::string> names;
  for (const DataSet& set : data_sets()) names.push_back(set.name);
  throw UsageError(
      fmt::format("no data set '{}'{}; there are: {}", name, did_you_mean(name, names), join(names, ", ")));
}

}  // namespace assay
