// MovieLens: who gave which film how many stars. A tenth of the ratings, chosen by a fixed seed, is held out.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "datasets/lazy_load.h"
#include "datasets/sets/sets.h"

namespace assay {

namespace {

constexpr const char* kMovieLensData = "usr/lib/R/site-library/dslabs/data/Rdata";
constexpr int kSplitSeed = 1;

// Column of users or films: their ids, dense from 0 in the order of the original ids.
struct Column {
  std::vector<size_t> ids;
  size_t num_values = 0;
};

Column dense_ids(const RValue& frame, const char* name) {
  const RValue* column = frame.item(name);
  if (!column || column->kind != RValue::Kind::Integers) {
    throw DataError(fmt::format("{}: movielens has no column of integers '{}'", kMovieLensData, name));
  }
  std::map<int32_t, size_t> order;
  for (const int32_t id : column->integers) order[id] = 0;
  Column out;
  for (auto& [id, place] : order) place = out.num_values++;
  for (const int32_t id : column->integers) out.ids.push_back(order[id]);
  return out;
}

// Exactly a tenth of the rows: those whose hash with the seed comes first.
std::vector<bool> held_out_rows(size_t num_rows) {
  std::vector<std::pair<std::string, size_t>> keys;
  for (size_t row = 0; row < num_rows; ++row) keys.emplace_back(sha256(fmt::format("{}:{}", kSplitSeed, row)), row);
  std::sort(keys.begin(), keys.end());
  std::vector<bool> held_out(num_rows);
  for (size_t i = 0; i < num_rows / 10; ++i) held_out[keys[i].second] = true;
  return held_out;
}

Json convert_ratings(const Conversion& conversion) {
  conversion.report("convert", 0, 1, "");
  const RValue frame = LazyLoadData(conversion.inputs[0] / kMovieLensData).value("movielens");
  const Column users = dense_ids(frame, "userId");
  const Column items = dense_ids(frame, "movieId");
  const RValue* ratings = frame.item("rating");
  if (!ratings || ratings->kind != RValue::Kind::Reals || ratings->reals.size() != users.ids.size() ||
      items.ids.size() != users.ids.size()) {
    throw DataError(fmt::format("{}: movielens has no column of ratings as long as the others", kMovieLensData));
  }
  const size_t num_rows = users.ids.size();
  const std::vector<bool> held_out = held_out_rows(num_rows);
  std::string train = "user,item,rating\n";
  std::string test = train;
  for (size_t row = 0; row < num_rows; ++row) {
    (held_out[row] ? test : train) +=
        fmt::format("{},{},{:.1f}\n", users.ids[row], items.ids[row], ratings->reals[row]);
  }
  write_file_atomic(conversion.output / "train.csv", train);
  write_file_atomic(conversion.output / "test.csv", test);
  conversion.report("convert", 1, 1, "");
  return {{"users", users.num_values},
          {"items", items.num_values},
          {"ratings", num_rows},
          {"train", num_rows - num_rows / 10},
          {"test", num_rows / 10}};
}

}  // namespace

DataSet movielens_set() {
  return {.name = "movielens",
          .summary = "100,004 ratings of 9,066 films by 671 users",
          .licence = "GroupLens terms of use",
          .layout = "ratings",
          .sources = {{.kind = Source::Kind::Debian,
                       .package = "r-cran-dslabs",
                       .version = "0.7.4-1",
                       .files = {{std::string(kMovieLensData) + ".rdb",
                                  "7f740c8802abcf5de56096417560b2d5be317c59f30d50c9d37548695952aa3b"},
                                 {std::string(kMovieLensData) + ".rdx",
                                  "97e59cc21906407fe85a369cd92a765ea050e69346d4043545471972bd02a6b3"}}}},
          .convert = convert_ratings};
}

}  // namespace assay
