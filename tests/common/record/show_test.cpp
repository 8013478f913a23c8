#include "record/show.h"

#include <gtest/gtest.h>

#include "record/log_file.h"

using namespace assay;

namespace {

std::string shown(const std::string& log, std::vector<std::string> metrics = {}) {
  RecordLines lines(std::move(metrics));
  std::string text;
  for (const Record& record : parse_log(log, "x").records) {
    const std::string line = lines.line(record);
    if (!line.empty()) text += line + "\n";
  }
  return text;
}

constexpr char kLog[] =
    R"({"type":"metadata","time_us":1794771785000000,"name":"train.ips","data":{"unit":"img/s"}}
{"type":"metrics","time_us":1794771785339754,"rank":3,"step":[0,5],"data":{"train.loss":0.123456789,"train.ips":16221.6}}
{"type":"metrics","time_us":1794771786000000,"step":[],"data":{"train.loss":"NaN","converged":true}}
{"type":"event","time_us":1794771786000000,"name":"TRAIN_END","data":{}}
)";

}  // namespace

TEST(Show, RendersTimeRankTypeStepAndContent) {
  EXPECT_EQ(RecordLines::header() + "\n" + shown(kLog) + shown("plain \x1b[33mtext\x1b[0m\tx\n"),
            "time (UTC)                  rank  type         step       content\n"
            "2026-11-15 19:43:05            0  metadata                train.ips  unit=img/s\n"
            "2026-11-15 19:43:05.339754     3  metrics      0/5        train.loss=0.123457  train.ips=16221.6 img/s\n"
            "2026-11-15 19:43:06            0  metrics      run        train.loss=nan  converged=True\n"
            "2026-11-15 19:43:06            0  event                   TRAIN_END\n"
            "-                              0  message                 plain text x\n");
}

TEST(Show, PrintsOnlyTheRequestedMetrics) {
  EXPECT_EQ(shown(kLog, {"train.ips"}),
            "2026-11-15 19:43:05.339754     3  metrics      0/5        train.ips=16221.6 img/s\n");
}

TEST(Show, RemovesTerminalControlFromLogs) {
  EXPECT_EQ(printable("\x1b]0;title\x07"
                      "a\x9b"
                      "31m\r\nb\x7f\xC2\x9B"
                      "c\x1b[2J"),
            "]0;titlea\xEF\xBF\xBD"
            "31m  bc");
}
