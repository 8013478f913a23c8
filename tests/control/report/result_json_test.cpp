#include "report/result_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "sample_run.h"

using namespace assay;
using testing::HasSubstr;

namespace {

std::string error_of(const Json& value) {
  try {
    run_view_of(value);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(ResultJson, HasTheFieldsThatToolsReadFirst) {
  const Json result = render_result_json(failing_run());
  EXPECT_EQ(result["schema"], "assay/result-v1");
  EXPECT_EQ(result.begin().key(), "schema");
  EXPECT_EQ(result["outcome"], "Error");
  EXPECT_EQ(result["started"], "2026-11-15T19:43:05.000000Z");
  EXPECT_EQ(result["seconds"], 100.5);
  EXPECT_EQ(result["steps"][0]["signal"], 9);
  EXPECT_TRUE(result["steps"][0]["exit_code"].is_null());
  EXPECT_TRUE(result["steps"][1]["seconds"].is_null());
  EXPECT_EQ(result["verdicts"][1]["outcome"], "Fail");
  EXPECT_TRUE(result["results"][0]["final_accuracy"].is_null());
}

TEST(ResultJson, ReadsBackEveryField) {
  for (const RunView& run : {sample_run(), failing_run(), empty_run()}) {
    const std::string text = result_json_text(run);
    const RunView back = run_view_of(parse_json(text, "test"));
    EXPECT_EQ(render_result_json(back), render_result_json(run));
    EXPECT_EQ(result_json_text(back), text);
    EXPECT_EQ(back.started_us, run.started_us);
    EXPECT_EQ(back.ended_us, run.ended_us);
    ASSERT_EQ(back.steps.size(), run.steps.size());
    for (size_t i = 0; i < run.steps.size(); ++i) {
      EXPECT_EQ(back.steps[i].last_lines, run.steps[i].last_lines);
      EXPECT_EQ(back.steps[i].max_rss_bytes, run.steps[i].max_rss_bytes);
      EXPECT_EQ(back.steps[i].started_us, run.steps[i].started_us);
      EXPECT_EQ(back.steps[i].attempts, run.steps[i].attempts);
    }
  }
}

TEST(ResultJson, KeepsBrokenLosses) {
  RunView run = sample_run();
  const double inf = std::numeric_limits<double>::infinity();
  run.curves[0].y = {std::nan(""), inf, -inf};
  const RunView back = run_view_of(parse_json(result_json_text(run), "test"));
  EXPECT_TRUE(std::isnan(back.curves[0].y[0]));
  EXPECT_EQ(back.curves[0].y[1], inf);
  EXPECT_EQ(back.curves[0].y[2], -inf);
}

TEST(ResultJson, ReportsThinnedCurves) {
  RunView run = sample_run();
  run.curves[0].x.clear();
  run.curves[0].y.clear();
  for (int i = 0; i < 200'000; ++i) {
    run.curves[0].x.push_back(i);
    run.curves[0].y.push_back(std::sin(i));
  }
  const RunView back = run_view_of(parse_json(result_json_text(run), "test"));
  EXPECT_LE(back.curves[0].x.size(), kMaxResultPoints);
  EXPECT_EQ(back.curves[0].total_points, 200'000u);
  EXPECT_EQ(back.curves[0].x.back(), 199'999);
}

TEST(ResultJson, WritesAReadableFile) {
  const std::string text = result_json_text(sample_run());
  EXPECT_THAT(text, HasSubstr("\n      \"x\": [10.0,20.0,30.0],\n"));  // one line a list, not one a number
  EXPECT_THAT(text, HasSubstr("\n  \"title\": \"demo: resnet on Fashion-MNIST\",\n"));
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(ResultJson, ReplacesTextThatIsNotUtf8) {
  RunView run = sample_run();
  run.title = "bad \xFF byte";
  run.parameters["k\xFE"] = "v\xFE";
  EXPECT_EQ(run_view_of(parse_json(result_json_text(run), "test")).title, "bad \xEF\xBF\xBD byte");
}

TEST(ResultJson, NamesThePlaceOfAnError) {
  Json result = render_result_json(sample_run());
  EXPECT_THAT(error_of(3), HasSubstr("result.json: expected an object"));
  EXPECT_THAT(error_of({{"schema", "assay/result-v9"}}), HasSubstr("'assay/result-v9' is not known"));
  const auto with = [&](const char* pointer, Json value) {
    Json changed = result;
    changed[Json::json_pointer(pointer)] = std::move(value);
    return error_of(changed);
  };
  EXPECT_THAT(with("/steps/1/outcome", "Great"), HasSubstr("result.json: steps[1].outcome: 'Great' is not an outcome"));
  EXPECT_THAT(with("/steps/0/seconds", "fast"), HasSubstr("result.json: steps[0].seconds: expected a number"));
  EXPECT_THAT(with("/steps/0/exit_code", 5000000000), HasSubstr("steps[0].exit_code"));
  EXPECT_THAT(with("/steps/0/exit_code", 1.5), HasSubstr("steps[0].exit_code: expected a whole number"));
  EXPECT_THAT(with("/steps/0/max_rss_bytes", 18446744073709551615ull), HasSubstr("max_rss_bytes"));
  EXPECT_THAT(with("/steps/0", "x"), HasSubstr("steps[0]: expected an object"));
  EXPECT_THAT(with("/started", "yesterday"), HasSubstr("result.json: started: expected a time"));
  EXPECT_THAT(with("/curves/0/y", Json::array({1})), HasSubstr("as many numbers as in x (3)"));
  EXPECT_THAT(with("/curves/0/x", "1,2,3"), HasSubstr("curves[0].x: expected a list of numbers"));
  EXPECT_THAT(with("/results/0", 1), HasSubstr("results[0]: expected an object"));
  EXPECT_THAT(with("/verdicts", Json::object()), HasSubstr("verdicts: expected a list"));
}

// Files of others: a changed, cut or swapped byte gives a RunView or a DataError, nothing else.
TEST(ResultJson, SurvivesDamagedFiles) {
  const std::string good = result_json_text(failing_run());
  uint32_t state = 12345;
  const auto random = [&](size_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<size_t>((uint64_t{state} * below) >> 32);
  };
  size_t num_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    const size_t num_changes = 1 + random(3);
    for (size_t i = 0; i < num_changes; ++i) {
      switch (random(4)) {
        case 0: bad[random(bad.size())] = static_cast<char>(random(256)); break;
        case 1: bad.erase(random(bad.size()), 1 + random(20)); break;
        case 2: bad.insert(random(bad.size()), good.substr(random(good.size()), random(30))); break;
        case 3: bad.resize(1 + random(bad.size())); break;
      }
      if (bad.empty()) bad = "{";
    }
    try {
      run_view_of(parse_json(bad, "bad"));
    } catch (const DataError&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 1000u);
}

// The same with JSON that parses: every value in turn is replaced by every other type.
TEST(ResultJson, SurvivesWrongTypes) {
  const Json good = render_result_json(failing_run());
  const Json flat = good.flatten();
  for (const auto& [pointer, old] : flat.items()) {
    for (const Json& value : {Json(nullptr), Json(true), Json(-1), Json(1e300), Json("text"), Json::array(),
                              Json::array({nullptr}), Json::object()}) {
      Json changed = good;
      changed[Json::json_pointer(pointer)] = value;
      try {
        const RunView run = run_view_of(changed);
        render_result_json(run);
      } catch (const DataError&) {
      }
    }
  }
}
