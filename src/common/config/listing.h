// Configuration for people: every effective value with its place, and the schema, as aligned text and as Markdown.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/console.h"
#include "base/json.h"
#include "config/case.h"

namespace assay {

using Paint = std::function<std::string(std::string_view, Colour)>;

// One line a value: key, value as YAML would write it, place; then what was changed and what that means.
std::string render_config(const ResolvedCase& resolved, const Paint& paint);

// One line a key: type, default, range, meaning.
std::string render_schema(const Paint& paint);
Json schema_json();
// The same as a table a section, for docs/reference/configuration.md.
std::string schema_markdown();
// The table of other systems' names, for docs/reference/configuration.md.
std::string names_markdown();

// A value as YAML: text is quoted only where it would read as something else.
std::string yaml_text(const Value& value);

}  // namespace assay
