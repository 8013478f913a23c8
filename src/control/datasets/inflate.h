// zlib and gzip data that is unpacked in memory. Data of others: what it claims about its size is not believed.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Throws DataError naming `where` when it is not whole zlib or gzip data, or larger than `max_bytes`.
std::string inflate_bytes(std::string_view packed, size_t max_bytes, const std::string& where);

}  // namespace assay
