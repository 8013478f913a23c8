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

void ProcessTimes::look_at(pid_t pid, Known& known) const {
  static const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file(proc_ / std::to_string(pid) / "stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = text.rfind(')');    // a program's name may hold blanks and brackets
  if (name_end == std::string::npos) return;  // gone meanwhile
  std::istringstream words(text.substr(name_end + 1));
  std::string skipped;
  words >> skipped >> known.parent;
  for (int field = 5; field < 14; ++field) words >> skipped;
  double sum = 0;
  for (int i = 0; i < 4; ++i) {  // utime, stime, cutime, cstime
    double ticks = 0;
    if (words >> ticks) sum += ticks;
  }
  known.seconds = sum / ticks_per_second;
}

// The time of a process that has ended is its parent's if that waited for it, and is among the parent's then. Of others
// it is kept here: what was used stays used.
void ProcessTimes::keep_times_of_ended() {
  for (const auto& [pid, known] : known_) {
    if (known.seen == round_ || known.whose == Whose::Foreign) continue;
    const auto parent = known_.find(known.parent);
    const bool is_inherited =
        parent != known_.end() && parent->second.seen == round_ && parent->second.whose == known.whose;
    if (is_inherited) continue;
    (known.whose == Whose::Ours ? ended_.own : ended_.other_runs) += known.seconds;
  }
  std::erase_if(known_, [&](const auto& entry) { return entry.second.seen != round_; });
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
    if (known.whose == Whose::Foreign) continue;
    look_at(pid, known);
    (known.whose == Whose::Ours ? out.own : out.other_runs) += known.seconds;
  }
  keep_times_of_ended();
  out.own += ended_.own;
  out.other_runs += ended_.other_runs;
  return out;
}

}  // namespace assay
