#include "param_server/types.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::ps {

TEST(PsTypes, NamesModes) {
  for (const Mode mode : {Mode::Sync, Mode::Async, Mode::Geo}) EXPECT_EQ(mode_of(name_of(mode)), mode);
  try {
    mode_of("asynk");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'async'"), std::string::npos);
  }
}

TEST(PsTypes, KeepsSpecsInJson) {
  const TableSpec spec{.name = "embedding.weight",
                       .width = 8,
                       .element = Element::F64,
                       .init = {.kind = InitRule::Kind::Normal, .scale = 0.05, .seed = 18446744073709551615ULL},
                       .update = {.name = "Adam", .weight_decay = 0.1, .beta1 = 0.8}};
  EXPECT_EQ(spec_of(parse_json(to_line(to_json(spec)), "test"), "test"), spec);
  EXPECT_THROW(spec_of(Json::object(), "test"), DataError);
  EXPECT_THROW(spec_of(Json(3), "test"), DataError);
}

TEST(PsTypes, NamesBadSpecs) {
  const auto refused = [](const std::function<void(TableSpec&)>& change) {
    TableSpec spec{.name = "table"};
    check_spec(spec);
    change(spec);
    EXPECT_THROW(check_spec(spec), ConfigError);
    Json json = to_json(TableSpec{.name = "table"});
  };
  refused([](TableSpec& s) { s.name = ""; });
  refused([](TableSpec& s) { s.name = std::string(257, 'a'); });
  refused([](TableSpec& s) { s.name = "\xff"; });
  refused([](TableSpec& s) { s.width = 0; });
  refused([](TableSpec& s) { s.width = kMaxWidth + 1; });
  refused([](TableSpec& s) { s.element = static_cast<Element>(7); });
  refused([](TableSpec& s) { s.init.kind = static_cast<InitRule::Kind>(9); });
  refused([](TableSpec& s) { s.init.scale = -1; });
  refused([](TableSpec& s) { s.update.name = "LAMB"; });
  refused([](TableSpec& s) { s.update.epsilon = std::nan(""); });
}

TEST(PsTypes, GivesEveryRowOneServer) {
  for (const int64_t id : {int64_t{0}, int64_t{7}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_GE(server_of(id, 3), 0);
    EXPECT_LT(server_of(id, 3), 3);
  }
  EXPECT_EQ(server_of(7, 3), 1);
}

}  // namespace assay::ps
