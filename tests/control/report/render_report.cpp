// assay_render_report RESULT_JSON FOLDER: writes every report of a result into a folder. For tests only.
#include <cstdio>
#include <exception>

#include "report/result_json.h"
#include "report/terminal.h"
#include "report/write_reports.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: assay_render_report RESULT_JSON FOLDER\n", stderr);
    return 2;
  }
  try {
    const assay::RunView run = assay::run_view_of(assay::read_json_file(argv[1]), argv[1]);
    assay::write_reports(run, argv[2]);
    std::fputs(assay::render_terminal(run, false, 100).c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
