#include "data/registry.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/image_dataset.h"
#include "data/image_folder.h"
#include "data/ratings.h"
#include "data/text_factory.h"
#include "data/text_images.h"

namespace assay {

const std::vector<DatasetEntry>& datasets() {
  static const std::vector<DatasetEntry> kDatasets = {
      {"idx_images", "Images of one size in idx files, as MNIST has them.", make_idx_images},
      {"image_folder", "JPEG and PNG files with a list of labels.", make_image_folder},
      {"ratings", "Users, items and ratings in csv files.", make_ratings},
      {"text_images", "Images of text with the boxes of their words.", make_text_images},
      {"gpt", "Tokens of documents, for models that predict the next one.", make_gpt_dataset},
      {"blank_infilling", "Tokens with blanks to fill in, for GLM.", make_blank_infilling},
      {"text_classification", "Texts with a class each.", make_text_classification},
      {"masked_language", "Pairs of sentences with masked tokens, for BERT's pre-training.", make_masked_language},
  };
  return kDatasets;
}

std::shared_ptr<const Dataset> make_dataset(const DatasetRequest& request, Reader& section,
                                            const std::vector<DatasetEntry>& known) {
  const std::string name = section.get_string("name", "idx_images");
  std::vector<std::string> names;
  for (const DatasetEntry& entry : known) {
    if (entry.name == name) return entry.make(request, section);
    names.push_back(entry.name);
  }
  section.fail("name", fmt::format("is not a data set of this worker{}; known are {}", did_you_mean(name, names),
                                   join(names, ", ")));
}

}  // namespace assay
