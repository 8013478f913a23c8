// assay data: the group of commands about data sets. Each has a file of its own, data_<name>.cpp.
#include "context.h"

namespace assay {

void add_data_command(CLI::App& app, Context& context) {
  auto* data = app.add_subcommand("data", "Prepare and list data sets, train tokenizers, encode texts");
  data->require_subcommand(1);
  add_data_prepare_command(*data, context);
  add_data_list_command(*data, context);
  add_data_tokenizer_command(*data, context);
  add_data_encode_command(*data, context);
}

}  // namespace assay
