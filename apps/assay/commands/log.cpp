// assay log convert, assay log show: log files of every dialect, read, merged and written.
#include <fmt/format.h>
#include <poll.h>

#include <regex>

#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "command.h"
#include "record/log_file.h"
#include "record/show.h"
#include "record/stream.h"

namespace assay {

namespace {

constexpr int kPollMs = 200;

constexpr const char* kConvertExamples =
    R"(  assay log convert rank0.log --to dllogger              the log as DLLogger's JSON stream, on standard output
  assay log convert train.json --to mllog -o train.mllog
  assay log convert rank0.log --to assay --skip-unknown  only lines that some dialect knows)";

constexpr const char* kConvertNotes =
    R"(assay, dllogger, tcap, perflog and mllog hold every record without loss, whatever it was read from; the two text
dialects hold what their loggers print, and no more.)";

constexpr const char* kShowExamples = R"(  assay log show rank0.log
  assay log show runs/last/steps/*/records.jsonl --metric train.loss --metric train.ips
  assay log show rank*.log --json          all ranks merged by time, as record lines
  assay log show records.jsonl --follow    until Ctrl-C)";

struct LogOptions {
  std::vector<std::string> files;
  std::string from;
  std::string to;
  std::string output;
  std::vector<std::string> metrics;
  bool skip_unknown = false;
  bool keep_damaged = false;
  bool follow = false;

  ReadOptions reading() const {
    return {.dialect = from,
            .unknown = skip_unknown ? ReadOptions::Unknown::Skip : ReadOptions::Unknown::Keep,
            .damaged = keep_damaged ? ReadOptions::Damaged::Keep : ReadOptions::Damaged::Fail};
  }
};

std::string dialect_list(bool writable) {
  std::vector<std::string> names;
  for (const Dialect* dialect : dialects()) {
    if (!writable || dialect->writer()) names.emplace_back(dialect->name());
  }
  return join(names, ", ");
}

void add_reading_options(Command& command, LogOptions& options) {
  command.options.push_back(
      {.names = "--from",
       .value = &options.from,
       .help = fmt::format("Read only lines of this dialect (default: each line by its own mark): {}",
                           dialect_list(/*writable=*/false))});
  command.options.push_back({.names = "--skip-unknown",
                             .value = &options.skip_unknown,
                             .help = "Leave out lines of no dialect (default: as messages)"});
  command.options.push_back({.names = "--keep-damaged",
                             .value = &options.keep_damaged,
                             .help = "Treat damaged lines as unknown ones (default: an error)"});
}

std::string counted(const LogContents& contents, const LogOptions& options) {
  std::vector<std::string> parts;
  for (const auto& [dialect, count] : contents.num_lines) parts.push_back(fmt::format("{} {}", count, dialect));
  const char* fate = options.skip_unknown ? "skipped" : "kept as messages";
  if (contents.num_unknown > 0) parts.push_back(fmt::format("{} unknown ({})", contents.num_unknown, fate));
  if (contents.num_damaged > 0) parts.push_back(fmt::format("{} damaged ({})", contents.num_damaged, fate));
  if (contents.torn) parts.push_back("1 torn at the end (left out)");
  return "lines: " + join(parts, ", ");
}

LogContents read_or_refuse(const std::string& file, const LogOptions& options) {
  LogContents contents = read_log(file, options.reading());
  if (contents.records.empty()) {
    throw InvalidError(fmt::format("{}: no record in it{}", file, contents.torn ? ", only a torn line" : ""));
  }
  return contents;
}

void convert(const LogOptions& options, Context& context) {
  const Dialect& target = dialect_named(options.to);
  if (!target.writer()) {
    throw UsageError(
        fmt::format("--to {}: can only be read; possible: {}", options.to, dialect_list(/*writable=*/true)));
  }
  const std::string& file = options.files.front();
  const LogContents contents = read_or_refuse(file, options);
  const std::string text = to_log(contents.records, target);
  if (options.output.empty()) {
    context.console.print(text);
  } else {
    write_file_atomic(options.output, text);
  }
  context.console.info(fmt::format("{}: {}", file, counted(contents, options)));
  if (!target.lossless()) {
    context.console.info(fmt::format("{} holds only what its logger prints; --to assay keeps everything", options.to));
  }
}

// rank3.log, rank3.out.log: the rank of the lines in it that name none.
int rank_of_file(const std::string& file) {
  std::smatch match;
  const std::string name = fs::path(file).filename().string();
  static const std::regex kPattern("rank([0-9]{1,6})\\b.*");
  return std::regex_match(name, match, kPattern) ? std::stoi(match[1]) : 0;
}

void set_rank(std::vector<Record>& records, int rank) {
  for (Record& record : records) {
    if (record.rank == 0) record.rank = rank;
  }
}

// Prints records as they come; says whether any of them had what was asked for.
class Printer {
 public:
  Printer(const LogOptions& options, Context& context) : lines_(options.metrics), context_(context) {
    if (!context.json) context.console.print(context.console.paint(RecordLines::header(), Colour::Dim) + "\n");
  }

  bool print(const std::vector<Record>& records) {
    std::string text;
    for (const Record& record : records) {
      const std::string line = lines_.line(record);
      if (line.empty()) continue;
      text += context_.json ? to_record_line(record) : line;
      text += '\n';
    }
    if (!text.empty()) context_.console.print(text);
    return !text.empty();
  }

 private:
  RecordLines lines_;
  Context& context_;
};

void refuse_missing_metric(const LogOptions& options, const std::vector<Record>& records) {
  std::vector<std::string> known;
  for (const Record& record : records) {
    if (record.type != Record::Type::Metrics || !record.data.is_object()) continue;
    for (const auto& [key, value] : record.data.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) known.push_back(key);
    }
  }
  for (const std::string& name : options.metrics) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw InvalidError(fmt::format("no record has the metric '{}'{}; there are: {}", name, did_you_mean(name, known),
                                   known.empty() ? "none" : join(known, ", ")));
  }
}

void show(const LogOptions& options, Context& context) {
  std::vector<std::vector<Record>> files;
  for (const std::string& file : options.files) {
    LogContents contents = read_or_refuse(file, options);
    set_rank(contents.records, rank_of_file(file));
    context.console.detail(fmt::format("{}: {}", file, counted(contents, options)));
    files.push_back(std::move(contents.records));
  }
  const std::vector<Record> records = merge_by_time(std::move(files));
  refuse_missing_metric(options, records);
  Printer(options, context).print(records);
}

void follow(const LogOptions& options, Context& context) {
  std::vector<LogFollower> followers;
  for (const std::string& file : options.files) followers.emplace_back(file, options.reading());
  Printer printer(options, context);
  while (stop_signal() == 0) {
    std::vector<std::vector<Record>> news;
    for (size_t i = 0; i < followers.size(); ++i) {
      news.push_back(followers[i].next().records);
      set_rank(news.back(), rank_of_file(options.files[i]));
    }
    printer.print(merge_by_time(std::move(news)));
    pollfd stop{.fd = stop_fd(), .events = POLLIN, .revents = 0};
    ::poll(&stop, 1, kPollMs);
  }
  context.exit_code = kExitInterrupted;
}

}  // namespace

Command log_command() {
  auto options = std::make_shared<LogOptions>();
  Command converting{.name = "convert",
                     .summary = "Write a log file in another dialect",
                     .examples = kConvertExamples,
                     .notes = kConvertNotes,
                     .options = {{.names = "FILE",
                                  .value = &options->files,
                                  .help = "Log file; lines of several dialects may be mixed",
                                  .required = true,
                                  .most = 1},
                                 {.names = "--to",
                                  .value = &options->to,
                                  .help = "Dialect to write: " + dialect_list(/*writable=*/true),
                                  .required = true},
                                 {.names = "-o,--output",
                                  .value = &options->output,
                                  .help = "File to write, whole or not at all (default: standard output)"}},
                     .run = [options](Context& context) { convert(*options, context); }};
  Command showing{
      .name = "show",
      .summary = "Print log files for reading, several merged by time",
      .examples = kShowExamples,
      .options = {{.names = "FILE", .value = &options->files, .help = "Log files", .required = true},
                  {.names = "--metric",
                   .value = &options->metrics,
                   .help = "Only records with this metric; may be repeated",
                   .one_per_use = true},
                  {.names = "-f,--follow", .value = &options->follow, .help = "Go on as the files grow"}},
      .run = [options](Context& context) { options->follow ? follow(*options, context) : show(*options, context); }};
  for (Command* command : {&converting, &showing}) add_reading_options(*command, *options);
  return {.name = "log",
          .summary = "Convert and show log files of every dialect",
          .examples = "  assay log show rank0.log\n  assay log convert rank0.log --to dllogger",
          .commands = {std::move(converting), std::move(showing)}};
}

}  // namespace assay
