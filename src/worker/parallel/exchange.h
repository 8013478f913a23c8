// Small things that processes tell each other: texts of any length.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace assay {

// The text of every member, in the order of ranks.
std::vector<std::string> gather_texts(comm::Communicator& group, const std::string& mine);
// The first member's text, on all of them.
void broadcast_text(comm::Communicator& group, std::string& text);

}  // namespace assay
