#include "param_server/server_checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "formats/safetensors.h"

namespace assay::ps {

namespace {

constexpr const char* kSuffix = ".safetensors";
constexpr const char* kDescription = "parameter_server";
constexpr const char* kHash = "sha256";

struct FoundCheckpoint {
  int64_t step = 0;
  ServerId server;
  fs::path path;
};

std::optional<FoundCheckpoint> parse_checkpoint_name(const fs::path& path) {
  const std::string name = path.filename().string();
  long long step = 0;
  int index = 0;
  int num_servers = 0;
  if (std::sscanf(name.c_str(), "step_%lld.server_%d_of_%d.", &step, &index, &num_servers) != 3) return std::nullopt;
  const ServerId server{index, num_servers};
  if (step < 0 || index < 0 || index >= num_servers || name != server_checkpoint_name(step, server))
    return std::nullopt;
  return FoundCheckpoint{step, server, path};
}

std::vector<FoundCheckpoint> checkpoints_in(const fs::path& folder) {
  std::vector<FoundCheckpoint> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (auto checkpoint = parse_checkpoint_name(entry.path())) found.push_back(*checkpoint);
  }
  return found;
}

std::string content_hash(const std::string& description, const std::vector<TensorView>& tensors) {
  Sha256 hash;
  hash.update(description);
  for (const TensorView& tensor : tensors) {
    hash.update(fmt::format("\n{} {} {}\n", tensor.name, tensor.dtype, tensor.num_bytes));
    hash.update(tensor.bytes, tensor.num_bytes);
  }
  return hash.hex();
}

const char* dtype_of(const TableSpec& spec) { return spec.element == Element::F64 ? "F64" : "F32"; }

std::vector<TensorView> tensors_of(const TableState& table) {
  const auto rows = static_cast<int64_t>(table.ids.size());
  std::vector<TensorView> out = {{table.spec.name + ".ids",
                                  "I64",
                                  {rows},
                                  reinterpret_cast<const std::byte*>(table.ids.data()),
                                  table.ids.size() * sizeof(int64_t)}};
  const auto add = [&](const char* name, const std::vector<std::byte>& values) {
    if (values.empty() && rows > 0) return;
    out.push_back(
        {table.spec.name + name, dtype_of(table.spec), {rows, table.spec.width}, values.data(), values.size()});
  };
  add(".weights", table.weights);
  add(".first", table.first);
  add(".second", table.second);
  return out;
}

std::vector<std::byte> bytes_of(const SafetensorsFile& file, const std::string& name, const TableState& table) {
  if (!file.has(name)) return {};
  const TensorView& tensor = file.at(name);
  const std::vector<int64_t> shape = {static_cast<int64_t>(table.ids.size()), table.spec.width};
  if (tensor.dtype != dtype_of(table.spec) || tensor.shape != shape) {
    throw DataError(fmt::format("tensor '{}' has another type or shape than its table", name));
  }
  return {tensor.bytes, tensor.bytes + tensor.num_bytes};
}

TableState table_of(const SafetensorsFile& file, const Json& description, const std::string& where) {
  TableState table{.spec = spec_of(description, where), .ids = {}, .weights = {}, .first = {}, .second = {}};
  const TensorView& ids = file.at(table.spec.name + ".ids");
  if (ids.dtype != "I64" || ids.shape.size() != 1) throw DataError("the ids of a table are not a list of int64");
  table.ids.resize(ids.num_bytes / sizeof(int64_t));
  if (!table.ids.empty()) std::memcpy(table.ids.data(), ids.bytes, ids.num_bytes);
  table.weights = bytes_of(file, table.spec.name + ".weights", table);
  table.first = bytes_of(file, table.spec.name + ".first", table);
  table.second = bytes_of(file, table.spec.name + ".second", table);
  return table;
}

ShardState read_checkpoint(const FoundCheckpoint& found) {
  const std::string where = found.path.string();
  const SafetensorsFile file(found.path);
  const auto& metadata = file.metadata();
  if (!metadata.contains(kDescription) || !metadata.contains(kHash)) {
    throw DataError(where + ": not a checkpoint of a parameter server");
  }
  if (content_hash(metadata.at(kDescription), file.tensors()) != metadata.at(kHash)) {
    throw DataError(where + ": damaged: its content does not have its SHA-256");
  }
  try {
    const Json description = parse_json(metadata.at(kDescription), where);
    ShardState state{.step = description.at("step").get<int64_t>(),
                     .num_updates = description.at("num_updates").get<int64_t>(),
                     .tables = {}};
    if (state.step != found.step) throw DataError(fmt::format("it is of step {}", state.step));
    for (const Json& table : description.at("tables")) state.tables.push_back(table_of(file, table, where));
    return state;
  } catch (const Json::exception&) {
    throw DataError(where + ": its description lacks an entry or has one of the wrong type");
  }
}

// The files for one step: the own one, or a whole set of another number of servers.
std::vector<FoundCheckpoint> files_for(const std::vector<FoundCheckpoint>& all, int64_t step, const ServerId& server) {
  std::map<int, std::vector<FoundCheckpoint>> sets;
  for (const FoundCheckpoint& found : all) {
    if (found.step != step) continue;
    if (found.server.num_servers != server.num_servers) {
      sets[found.server.num_servers].push_back(found);
    } else if (found.server.index == server.index) {
      return {found};
    }
  }
  for (const auto& [num_servers, files] : sets) {
    if (static_cast<int>(files.size()) == num_servers) return files;
  }
  return {};
}

void remove_old(const fs::path& folder, const ServerId& server, int keep) {
  const auto all = checkpoints_in(folder);
  std::set<int64_t, std::greater<>> steps;
  for (const FoundCheckpoint& found : all) {
    if (found.server.index == server.index && found.server.num_servers == server.num_servers) steps.insert(found.step);
  }
  if (static_cast<int>(steps.size()) <= keep) return;
  const int64_t oldest = *std::next(steps.begin(), keep - 1);
  for (const FoundCheckpoint& found : all) {
    // Server 0 also cleans up after servers that an earlier job had and this one has not.
    const bool ours =
        found.server.index == server.index || (server.index == 0 && found.server.index >= server.num_servers);
    std::error_code ignored;
    if (ours && found.step < oldest) fs::remove(found.path, ignored);
  }
}

void remove_unfinished(const fs::path& folder, const ServerId& server) {
  const std::string mark = fmt::format(".server_{}_of_{}{}.", server.index, server.num_servers, kSuffix);
  std::vector<fs::path> unfinished;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".tmp") && name.find(mark) != std::string::npos) unfinished.push_back(entry.path());
  }
  for (const fs::path& path : unfinished) fs::remove(path, ignored);
}

}  // namespace

std::string server_checkpoint_name(int64_t step, const ServerId& server) {
  return fmt::format("step_{}.server_{}_of_{}{}", step, server.index, server.num_servers, kSuffix);
}

fs::path write_server_checkpoint(const fs::path& folder, const ShardState& state, const ServerId& server, int keep) {
  make_folder(folder);
  Json description = {{"step", state.step}, {"num_updates", state.num_updates}, {"tables", Json::array()}};
  std::vector<TensorView> tensors;
  for (const TableState& table : state.tables) {
    description["tables"].push_back(to_json(table.spec));
    for (TensorView& tensor : tensors_of(table)) tensors.push_back(std::move(tensor));
  }
  const std::string text = to_line(description);
  const fs::path path = folder / server_checkpoint_name(state.step, server);
  write_safetensors(path, tensors, {{kDescription, text}, {kHash, content_hash(text, tensors)}});
  sync_folder(folder);
  remove_old(folder, server, std::max(keep, 1));
  return path;
}

std::vector<ShardState> load_server_checkpoint(const fs::path& folder, int64_t step, const ServerId& server) {
  std::vector<ShardState> states;
  for (const FoundCheckpoint& found : files_for(checkpoints_in(folder), step, server)) {
    states.push_back(read_checkpoint(found));
  }
  if (states.empty()) {
    throw DataError(fmt::format("{}: no checkpoint {}, and none of all servers of another number", folder.string(),
                                server_checkpoint_name(step, server)));
  }
  return states;
}

std::vector<ShardState> load_newest_server_checkpoint(const fs::path& folder, const ServerId& server,
                                                      const std::function<void(const std::string&)>& on_damaged) {
  remove_unfinished(folder, server);
  const auto all = checkpoints_in(folder);
  std::set<int64_t, std::greater<>> steps;
  for (const FoundCheckpoint& found : all) steps.insert(found.step);
  for (const int64_t step : steps) {
    if (files_for(all, step, server).empty()) continue;
    try {
      return load_server_checkpoint(folder, step, server);
    } catch (const DataError& error) {
      on_damaged(error.what());
    }
  }
  return {};
}

}  // namespace assay::ps
