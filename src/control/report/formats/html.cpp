#include "report/html.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/version.h"
#include "layout/run_layout.h"
#include "report/chart.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/formats/all.h"
#include "report/html_chart.h"
#include "report/html_sections.h"
#include "report_assets.h"

namespace assay {

namespace {

// The hash that a content security policy names a script by.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto nibble = [](char c) { return static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 6) {  // three bytes become four letters
    const size_t num_digits = std::min<size_t>(6, hex.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 6; ++k) bits = (bits << 4) | (k < num_digits ? nibble(hex[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) {
      out += k <= num_digits / 2 ? kAlphabet[(bits >> (18 - 6 * k)) & 63] : '=';
    }
  }
  return out;
}

std::string policy() {
  return fmt::format(
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      base64_of_hex(sha256(kReportScript)));
}

// A dot in the colour of the outcome, so that the tab shows it.
std::string favicon(Outcome outcome) {
  const char* colour = outcome == Outcome::Pass                                ? "%231a7f45"
                       : outcome == Outcome::Fail || outcome == Outcome::Error ? "%23c0342b"
                                                                               : "%23b07a12";
  return fmt::format(
      "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' "
      "r='7' fill='{}'/%3E%3C/svg%3E",
      colour);
}

std::string head(const RunView& run) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"assay {}\">\n"
      "<title>{}: {}</title>\n<link rel=\"icon\" href=\"{}\">\n<style>{}</style>\n</head>\n",
      policy(), version(), outcome_name(run.outcome), escape_markup(run.title.empty() ? run.id : run.title),
      favicon(run.outcome), kReportStyle);
}

struct Section {
  const char* id;
  const char* title;
  std::string markup;
};

std::string top_bar(const std::vector<Section>& sections) {
  std::string links;
  for (const Section& section : sections) {
    if (!section.markup.empty()) links += fmt::format(R"(<a href="#{}">{}</a>)", section.id, section.title);
  }
  return fmt::format(
      "<div class=\"bar\"><div class=\"bar-inner\"><span class=\"brand\"><svg viewBox=\"0 0 24 24\" "
      "aria-hidden=\"true\">"
      "<circle cx=\"12\" cy=\"12\" r=\"9.5\"/><path d=\"M7 16.2 12 6.6l5 9.6M9 12.9h6\"/></svg>Assay</span>"
      "<nav aria-label=\"Sections\">{}</nav><button type=\"button\" id=\"theme\" hidden aria-label=\"Change between "
      "light "
      "and dark\" title=\"Light or dark\"><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path d=\"M12 3a9 9 0 1 0 0 "
      "18V3z\"/><circle cx=\"12\" cy=\"12\" r=\"9\"/></svg></button></div></div>\n",
      links);
}

std::string curves_section(const RunView& run, const Charts& charts) {
  std::string body;
  for (size_t i = 0; i < charts.charts.size(); ++i) body += html_chart(charts.charts[i], i);
  body += html_phases(phases_of(run));
  if (body.empty()) return "";
  std::string note;
  if (charts.num_left_out > 0) {
    note = fmt::format(R"(<p class="note">{} more curves are in result.json.</p>)", charts.num_left_out);
  }
  return fmt::format(
      "<section id=\"curves\" aria-labelledby=\"curves-title\"><div class=\"section-head\"><h2 "
      "id=\"curves-title\">Curves"
      "</h2><span class=\"aside\">over training steps</span></div><div class=\"charts\">{}</div>{}</section>\n",
      body, note);
}

}  // namespace

std::string render_html(const RunView& run) {
  const Charts charts = charts_of(run);
  Json data = {{"charts", Json::array()}};
  for (const Chart& chart : charts.charts) data["charts"].push_back(chart_data(chart));
  const std::vector<Section> sections = {{"verdicts", "Verdicts", html_verdicts(run)},
                                         {"steps", "Steps", html_steps(run)},
                                         {"log", "Log", html_logs(run)},
                                         {"curves", "Curves", curves_section(run, charts)},
                                         {"results", "Result", html_results(run)},
                                         {"environment", "Environment", html_environment(run)},
                                         {"parameters", "Parameters", html_parameters(run)}};
  std::string out =
      head(run) + "<body>\n" + html_symbols() + top_bar(sections) + "<main>\n" + html_header(run) + html_headline(run);
  for (const Section& section : sections) out += section.markup;
  out += fmt::format("</main>\n<footer>Made by Assay {} from the records of run {}. Times are UTC.</footer>\n",
                     version(), escape_markup(run.id));
  out +=
      fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>\n</body>\n</html>\n",
                  json_for_script(data), kReportScript);
  return out;
}

namespace formats {

ReportFormat html_format() {
  return {.name = "html", .file = layout::kHtml, .render = [](const RunView& run, const PrintTarget&) {
            return render_html(run);
          }};
}

}  // namespace formats

}  // namespace assay
