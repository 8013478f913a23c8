#include "report/html_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/plain_text.h"

namespace assay {

namespace {

constexpr double kScale = 4000;  // units of the drawing in each direction; finer than any screen's pixels
constexpr size_t kNumColours = 8;
constexpr size_t kFirstPhaseColour = 2;  // the first two mean train and validation
constexpr size_t kMaxMarked = 60;        // a series with so few points shows each of them

double fraction(double value, const Axis& axis) {
  const double span = axis.high - axis.low;
  return span > 0 ? std::clamp((value - axis.low) / span, 0.0, 1.0) : 0.5;
}

std::string percent(double fraction) { return fmt::format("{:.2f}%", 100 * fraction); }

long across(double x, const Chart& chart) { return std::lround(kScale * fraction(x, chart.x)); }
long down(double y, const Chart& chart) { return std::lround(kScale * (1 - fraction(y, chart.y))); }

size_t colour_number(size_t index) { return index % kNumColours + 1; }

std::string line_path(const Series& series, const Chart& chart) {
  std::string path;
  bool drawing = false;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.y[i])) {
      drawing = false;
      continue;
    }
    path += fmt::format("{}{} {}", drawing ? 'L' : 'M', across(series.x[i], chart), down(series.y[i], chart));
    if (!drawing) path += "h0";  // a point between two gaps is drawn, too
    drawing = true;
  }
  return path;
}

std::string point_path(const Series& series, const Chart& chart) {
  std::string path;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.y[i])) continue;
    path += fmt::format("M{} {}h0", across(series.x[i], chart), down(series.y[i], chart));
  }
  return path;
}

std::string drawing(const Chart& chart) {
  std::string out = fmt::format(
      R"(<svg viewBox="0 0 {0} {0}" preserveAspectRatio="none" aria-hidden="true" focusable="false"><path class="grid" d=")",
      kScale);
  for (double tick : chart.y.ticks) out += fmt::format("M0 {}H{}", down(tick, chart), kScale);
  out += "\"/>";
  if (chart.target) out += fmt::format(R"(<path class="target" d="M0 {}H{}"/>)", down(*chart.target, chart), kScale);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    out += fmt::format(R"(<g class="c{}" data-series="{}"><path class="line" d="{}"/>)", colour_number(series.colour),
                       i, line_path(series, chart));
    if (series.x.size() <= kMaxMarked)
      out += fmt::format(R"(<path class="points" d="{}"/>)", point_path(series, chart));
    out += "</g>";
  }
  return out + "</svg>";
}

std::string where_broken(const BrokenStretch& stretch) {
  if (stretch.first_x == stretch.last_x)
    return fmt::format("{} at step {}", stretch.what, number_text(stretch.first_x));
  return fmt::format("{} in steps {} to {}", stretch.what, number_text(stretch.first_x), number_text(stretch.last_x));
}

std::string broken_marks(const Chart& chart) {
  std::string out;
  double free_from = -1;  // labels further left are taken
  for (size_t i = 0; i < chart.series.size(); ++i) {
    for (const BrokenStretch& stretch : chart.series[i].broken) {
      const double left = fraction(stretch.first_x, chart.x);
      const double width = fraction(stretch.last_x, chart.x) - left;
      const std::string text = escape_markup(chart.series[i].label + ": " + where_broken(stretch));
      out += fmt::format(R"(<div class="broken" data-series="{}" style="left:{};width:{}" title="{}">)", i,
                         percent(left), percent(width), text);
      if (left > free_from) {
        out += fmt::format(R"(<span{}>{}</span>)", left > 0.8 ? R"( class="before")" : "", escape_markup(stretch.what));
        free_from = left + 0.12;
      }
      out += "</div>";
    }
  }
  return out;
}

std::string axes(const Chart& chart) {
  std::string out = R"(<div class="ticks-y" aria-hidden="true">)";
  for (double tick : chart.y.ticks) {
    out += fmt::format(R"(<span style="bottom:{}">{}</span>)", percent(fraction(tick, chart.y)),
                       tick_text(tick, chart.y.step));
  }
  out += R"(</div><div class="ticks-x" aria-hidden="true">)";
  for (double tick : chart.x.ticks) {
    const double at = fraction(tick, chart.x);
    out += fmt::format(R"(<span style="left:{}"{}>{}</span>)", percent(at),
                       at > 0.96 ? R"( class="last")" : (at < 0.02 ? R"( class="first")" : ""),
                       tick_text(tick, chart.x.step));
  }
  return out + "</div>";
}

std::string last_value(const Series& series) { return series.y.empty() ? kNotMeasured : number_text(series.y.back()); }

// "train from 2.303 to 0.2143, lowest 0.2; NaN at step 12": what the picture shows, in words.
std::string in_words(const Series& series) {
  double low = 0, high = 0;
  bool any = false;
  for (double y : series.y) {
    if (!drawable(y)) continue;
    low = any ? std::min(low, y) : y;
    high = any ? std::max(high, y) : y;
    any = true;
  }
  std::string out = fmt::format("{} from {} to {}", series.label, number_text(series.y.front()), last_value(series));
  if (any) out += fmt::format(", lowest {}, highest {}", number_text(low), number_text(high));
  for (const BrokenStretch& stretch : series.broken) out += ", " + where_broken(stretch);
  return out;
}

std::string legend(const Chart& chart) {
  std::string out = "<ul class=\"legend\">";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    out += fmt::format(
        R"(<li><button type="button" class="c{}" data-series="{}" aria-pressed="true"><i></i>{} <b>{}</b></button></li>)",
        colour_number(series.colour), i, escape_markup(series.label), last_value(series));
  }
  if (chart.target) out += fmt::format(R"(<li class="target"><i></i>target {}</li>)", number_text(*chart.target));
  return out + "</ul>";
}

std::string thinned_note(const Chart& chart) {
  for (const Series& series : chart.series) {
    if (series.total_points <= series.x.size()) continue;
    return fmt::format(R"(<p class="note">{} of {} points drawn: lowest and highest of each stretch.</p>)",
                       series.x.size(), series.total_points);
  }
  return "";
}

// Six digits are more than a screen or a tooltip shows, and half the size.
Json short_numbers(const std::vector<double>& values) {
  Json out = Json::array();
  for (double value : values) {
    const auto rounded = parse_double(fmt::format("{:.6g}", value));
    if (std::isfinite(value) && value == std::floor(value) && std::fabs(value) < 1e15) {
      out.push_back(static_cast<int64_t>(value));
    } else {
      out.push_back(json_number(std::isfinite(value) && rounded ? *rounded : value));
    }
  }
  return out;
}

}  // namespace

std::string html_chart(const Chart& chart, size_t index) {
  std::vector<std::string> words;
  for (const Series& series : chart.series) {
    if (!series.y.empty()) words.push_back(in_words(series));
  }
  const std::string summary = fmt::format("{} over training steps: {}", chart.title, join(words, "; "));
  std::string out = fmt::format(R"(<figure class="chart card" data-chart="{}"><figcaption><h3>{}</h3>)", index,
                                escape_markup(chart.title));
  if (!chart.unit.empty()) out += fmt::format(R"(<span class="unit">{}</span>)", escape_markup(chart.unit));
  out += "</figcaption>" + legend(chart);
  out += fmt::format(R"(<div class="plot" tabindex="0" role="img" aria-label="{}"><div class="canvas">)",
                     escape_markup(summary));
  out += drawing(chart) + broken_marks(chart) + "</div>" + axes(chart) + "</div>";
  return out + thinned_note(chart) + "</figure>\n";
}

Json chart_data(const Chart& chart) {
  Json series = Json::array();
  for (const Series& item : chart.series) {
    series.push_back({{"label", plain_text(item.label)}, {"x", short_numbers(item.x)}, {"y", short_numbers(item.y)}});
  }
  return {{"x", {chart.x.low, chart.x.high}}, {"y", {chart.y.low, chart.y.high}}, {"series", std::move(series)}};
}

std::string html_phases(const std::vector<Phase>& phases) {
  if (phases.empty()) return "";
  double total = 0;
  for (const Phase& phase : phases) total += phase.seconds;
  std::string bar = R"(<div class="share" aria-hidden="true">)";
  std::string rows;
  for (size_t i = 0; i < phases.size(); ++i) {
    const double share = total > 0 ? phases[i].seconds / total : 0;
    bar += fmt::format(R"(<i class="c{}" style="flex-grow:{:.4f}"></i>)", colour_number(kFirstPhaseColour + i), share);
    rows += fmt::format(
        R"(<tr><th scope="row"><i class="swatch c{}"></i>{}</th><td class="num">{} ms</td><td class="num">{:.1f} %</td></tr>)",
        colour_number(kFirstPhaseColour + i), phases[i].name, number_text(1000 * phases[i].seconds), 100 * share);
  }
  return fmt::format(
      "<div class=\"card phases\"><h3>Time by phase</h3><p class=\"note\">Mean of a training step, {} ms in "
      "all.</p>{}</div>"
      "<table><thead><tr><th scope=\"col\">phase</th><th scope=\"col\" class=\"num\">a step</th><th scope=\"col\" "
      "class=\"num\">share</th></tr></thead><tbody>{}</tbody></table></div>\n",
      number_text(1000 * total), bar, rows);
}

}  // namespace assay
