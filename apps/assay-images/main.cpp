// Writes data sets of pictures for `assay data prepare`: a program of its own, so that assay itself does not load
// libraries for fonts and pictures. Prints "DONE TOTAL" lines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/signals.h"
#include "base/time.h"
#include "render/image_sets.h"

namespace {

// A line a few times a second, and an end when the user asks for one.
class Counter {
 public:
  void operator()(int64_t done, int64_t total) {
    if (assay::stop_signal() != 0) throw assay::InterruptedError("interrupted");
    if (done < total && printed_.seconds() < 0.2) return;
    fmt::print("{} {}\n", done, total);
    std::fflush(stdout);
    printed_.restart();
  }

 private:
  assay::Stopwatch printed_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes data sets of pictures; assay data prepare starts it");
  app.require_subcommand(1);
  std::string output;
  assay::TextImageSet text;
  assay::FashionImageSet fashion;
  std::vector<std::string> fonts;
  std::string idx;
  auto* text_command = app.add_subcommand("text", "Pictures of texts, with their outlines");
  text_command->add_option("--font", fonts, "Font files")->required();
  text_command->add_option("--train", text.num_train, "Pictures for training")->required();
  text_command->add_option("--test", text.num_test, "Pictures held out")->required();
  text_command->add_option("--seed", text.seed, "Seed of everything random")->capture_default_str();
  auto* fashion_command = app.add_subcommand("fashion", "Fashion-MNIST as an image folder");
  fashion_command->add_option("--idx", idx, "Folder of its idx files")->required();
  fashion_command->add_option("--train", fashion.num_train, "Pictures a class for training")->required();
  fashion_command->add_option("--test", fashion.num_test, "Pictures a class held out")->required();
  for (auto* command : {text_command, fashion_command}) {
    command->add_option("--output", output, "Folder to write into")->required();
  }
  CLI11_PARSE(app, argc, argv);
  try {
    assay::catch_stop_signals();
    Counter counter;
    const auto count = [&](int64_t done, int64_t total) { counter(done, total); };
    if (text_command->parsed()) {
      text.fonts.assign(fonts.begin(), fonts.end());
      assay::write_text_images(text, output, count);
    } else {
      fashion.idx_folder = idx;
      assay::write_fashion_images(fashion, output, count);
    }
    return 0;
  } catch (const assay::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return assay::exit_code(error.kind());
  }
}
