// Foreign text on its way into a format that gives characters a meaning. Each function first makes the text plain
// (report/plain_text.h), so the result is one line of valid UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace assay {

// Content or a quoted attribute of HTML or XML 1.0.
std::string escape_markup(std::string_view text);

// A cell of a Markdown table or running text: no markup, no HTML, no mention of an account.
std::string escape_markdown(std::string_view text);
// The fence (three backticks or more) that none of the lines can close.
std::string code_fence(const std::vector<std::string>& lines);

// JSON that may stand inside <script type="application/json">: nothing in it can end the element or a line of script.
std::string json_for_script(const Json& value);

}  // namespace assay
