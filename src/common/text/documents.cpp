#include "text/documents.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace assay {

namespace {

Document parse_document(std::string_view line, const std::string& where) {
  Json json;
  try {
    json = parse_json(line, where);
  } catch (const DataError&) {
    throw DataError(fmt::format("{}: not valid JSON; a line is {{\"text\": \"...\"}}", where));
  }
  Document document;
  const auto text = json.is_object() ? json.find("text") : json.end();
  if (!json.is_object() || text == json.end() || !text->is_string()) {
    throw DataError(
        fmt::format("{}: no text; a line is {{\"text\": \"...\"}}, with \"label\": 0 for classification", where));
  }
  document.text = text->get<std::string>();
  const auto label = json.find("label");
  if (label != json.end()) {
    if (!label->is_number_unsigned() || label->get<uint64_t>() > INT32_MAX) {
      throw DataError(fmt::format("{}: label {} is not an integer from 0", where, to_line(*label)));
    }
    document.label = label->get<int64_t>();
  }
  return document;
}

}  // namespace

DocumentReader::DocumentReader(const std::filesystem::path& path) : path_(path), file_(path) {
  const std::string extension = lower(path.extension().string());
  is_lines_ = extension == ".jsonl";
  if (!is_lines_ && extension != ".txt") {
    throw DataError(fmt::format("{}: texts are read from .jsonl (one object per line) and .txt files", path.string()));
  }
}

std::optional<Document> DocumentReader::next() {
  const std::string_view bytes = file_.bytes();
  if (!is_lines_) {
    if (at_ == bytes.size()) return std::nullopt;
    at_ = bytes.size();
    return Document{.text = std::string(bytes), .label = {}, .line = 0};
  }
  while (at_ < bytes.size()) {
    const size_t end = std::min(bytes.find('\n', at_), bytes.size());
    const std::string_view line = trim(bytes.substr(at_, end - at_));
    at_ = std::min(end + 1, bytes.size());
    ++line_;
    if (line.empty()) continue;
    Document document = parse_document(line, fmt::format("{}:{}", path_.string(), line_));
    document.line = line_;
    return document;
  }
  return std::nullopt;
}

}  // namespace assay
