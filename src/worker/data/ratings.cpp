#include "data/ratings.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace assay {

namespace {

// How many values the model's category has; 0 when the model does not say.
int64_t model_values(const WorkerConfig& config, size_t field) {
  const auto model = config.config.find("Model");
  if (model == config.config.end() || !model->is_object()) return 0;
  const auto fields = model->find("fields");
  if (fields == model->end() || !fields->is_array() || fields->size() <= field) return 0;
  const Json& size = (*fields)[field];
  return size.is_number_integer() ? size.get<int64_t>() : 0;
}

}  // namespace

std::filesystem::path Ratings::file(const Options& options) { return options.folder / (options.split + ".csv"); }

Ratings::Ratings(const Options& options) : options_(options) {
  const std::string text = read_file(file(options));
  hash_ = sha256(text);
  parse(text);
}

void Ratings::parse(std::string_view text) {
  int64_t line_number = 0;
  const auto fail = [&](const std::string& what) {
    throw DataError(fmt::format("{}:{}: {}", file(options_).string(), line_number, what));
  };
  const auto id = [&](std::string_view field, const char* name, int64_t count) {
    const auto value = parse_int(field);
    if (!value || *value < 0) fail(fmt::format("{} '{}' is not a number from 0", name, field));
    if (count > 0 && *value >= count) fail(fmt::format("{} {}, but there are {}", name, *value, count));
    return static_cast<int64_t>(*value);
  };
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++line_number;
    if (line_number == 1) {
      if (line != "user,item,rating") fail("the first line must be user,item,rating");
      continue;
    }
    if (end == std::string_view::npos) fail("the file ends in the middle of a line");
    const size_t first = line.find(',');
    const size_t second = first == std::string_view::npos ? first : line.find(',', first + 1);
    if (second == std::string_view::npos) fail("needs user,item,rating");
    const int64_t user = id(line.substr(0, first), "user", options_.num_users);
    const int64_t item = id(line.substr(first + 1, second - first - 1), "item", options_.num_items);
    const auto rating = parse_double(line.substr(second + 1));
    if (!rating || !std::isfinite(*rating)) fail(fmt::format("rating '{}' is not a number", line.substr(second + 1)));
    users_.push_back(user);
    items_.push_back(item);
    labels_.push_back(*rating >= options_.liked_from ? 1.0F : 0.0F);
    if (options_.limit >= 0 && size() >= options_.limit) break;
  }
  if (users_.empty()) fail("no ratings in it");
}

Batch Ratings::gather(std::span<const int64_t> indices, int64_t /*epoch*/) const {
  const auto count = static_cast<int64_t>(indices.size());
  torch::Tensor users = torch::empty({count}, torch::kLong);
  torch::Tensor items = torch::empty({count}, torch::kLong);
  torch::Tensor labels = torch::empty({count}, torch::kFloat);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    ASSAY_CHECK(index >= 0 && index < size(), fmt::format("sample {} of {}", index, size()));
    users.data_ptr<int64_t>()[i] = users_[static_cast<size_t>(index)];
    items.data_ptr<int64_t>()[i] = items_[static_cast<size_t>(index)];
    labels.data_ptr<float>()[i] = labels_[static_cast<size_t>(index)];
  }
  return {{users, items, labels}, count};
}

std::shared_ptr<const Dataset> make_ratings(const DatasetRequest& request, Reader& section) {
  Ratings::Options o;
  o.folder = request.folder(section, "train.csv and test.csv");
  o.split = section.get_choice("split", {"train", "test"}, o.split);
  o.limit = section.get_int("limit", o.limit);
  o.liked_from = section.get_double("liked_from", o.liked_from);
  o.num_users = section.get_int("num_users", model_values(request.config, 0));
  o.num_items = section.get_int("num_items", model_values(request.config, 1));
  section.finish();
  request.check_files({Ratings::file(o)});
  return std::make_shared<Ratings>(o);
}

}  // namespace assay
