// GPT-2 writes bytes into its text files as letters: printable ones as themselves, the others as U+0100 and up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// The order in which GPT-2 numbers its first 256 tokens.
std::array<uint8_t, 256> bytes_in_gpt2_order();
// The letters for bytes, as UTF-8.
std::string letters_of(std::string_view bytes);
// The way back; nothing when a character is none of the 256.
std::optional<std::string> bytes_of(std::string_view letters);

}  // namespace assay
