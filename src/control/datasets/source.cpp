#include "datasets/source.h"

#include <fmt/format.h>

namespace assay {

std::string Source::text() const {
  return kind == Kind::Npm ? fmt::format("npm {}@{}", package, version) : fmt::format("apt {}", package);
}

Json to_json(const Source& source) {
  Json json = {{"kind", source.kind == Source::Kind::Npm ? "npm" : "debian"},
               {"package", source.package},
               {"version", source.version}};
  if (!source.sha256.empty()) json["sha256"] = source.sha256;
  for (const SourceFile& file : source.files) json["files"][file.path] = file.sha256;
  return json;
}

}  // namespace assay
