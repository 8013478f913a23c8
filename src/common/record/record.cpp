#include "record/record.h"

#include <array>
#include <utility>

namespace assay {

namespace {

constexpr std::array<std::pair<Record::Type, std::string_view>, 7> kTypes{{
    {Record::Type::Event, "event"},
    {Record::Type::Parameters, "parameters"},
    {Record::Type::Metadata, "metadata"},
    {Record::Type::Metrics, "metrics"},
    {Record::Type::Environment, "environment"},
    {Record::Type::Result, "result"},
    {Record::Type::Message, "message"},
}};

}  // namespace

std::string_view type_name(Record::Type type) {
  for (const auto& [known, name] : kTypes) {
    if (known == type) return name;
  }
  return "message";
}

std::optional<Record::Type> type_of(std::string_view name) {
  for (const auto& [type, known] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

}  // namespace assay
