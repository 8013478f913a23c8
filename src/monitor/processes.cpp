#include "monitor/processes.h"

#include <dirent.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "base/text.h"

namespace assay {

ProcessTimes::ProcessTimes(std::filesystem::path proc, std::string tree_mark)
    : proc_(std::move(proc)), tree_mark_(std::move(tree_mark)) {}

ProcessTimes::Whose ProcessTimes::whose(pid_t pid) const {
  if (pid == ::getpid()) return Whose::Ours;
  std::ifstream file(proc_ / std::to_string(pid) / "environ", std::ios::binary);
  if (!file) return Whose::Foreign;  // of another user, or gone
  for (std::string entry; std::getline(file, entry, '\0');) {
    constexpr std::string_view kVariable = "ASSAY_TREE=";
    if (entry.compare(0, kVariable.size(), kVariable) != 0) continue;
    const std::string_view mark = std::string_view(entry).substr(kVariable.size());
    const bool ours = tree_mark_.empty() || mark == tree_mark_ ||
                      (mark.substr(0, tree_mark_.size()) == tree_mark_ && mark[tree_mark_.size()] == '/');
    return ours ? Whose::Ours : Whose::OtherRun;
  }
  return Whose::Foreign;
}

double ProcessTimes::seconds_of(pid_t pid) const {
  static const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file(proc_ / std::to_string(pid) / "stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = text.rfind(')');  // a program's name may hold blanks and brackets
  if (name_end == std::string::npos) return 0;
  std::istringstream words(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) words >> skipped;
  double sum = 0;
  for (int i = 0; i < 4; ++i) {  // utime, stime, cutime, cstime
    double ticks = 0;
    if (words >> ticks) sum += ticks;
  }
  return sum / ticks_per_second;
}

MarkedTime ProcessTimes::read() {
  MarkedTime out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(proc_.c_str()), ::closedir);
  if (!folder) return out;
  ++round_;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto number = parse_int(entry->d_name);
    if (!number) continue;
    const auto pid = static_cast<pid_t>(*number);
    Known& known = known_[pid];
    if (known.looks < 2) {
      const Whose now = whose(pid);
      if (known.looks == 0 || now != Whose::Foreign) known.whose = now;  // a zombie shows no environment any more
      ++known.looks;
    }
    known.seen = round_;
    if (known.whose == Whose::Ours) out.own += seconds_of(pid);
    if (known.whose == Whose::OtherRun) out.other_runs += seconds_of(pid);
  }
  std::erase_if(known_, [&](const auto& entry) { return entry.second.seen != round_; });
  return out;
}

}  // namespace assay
