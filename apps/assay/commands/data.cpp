// assay data: the group of commands about data sets. Each has a file of its own, data_<name>.cpp.
#include "command.h"

namespace assay {

Command data_prepare_command();
Command data_list_command();
Command data_tokenizer_command();
Command data_encode_command();

Command data_command() {
  return {.name = "data",
          .summary = "Prepare and list data sets, train tokenizers, encode texts",
          .examples =
              "  assay data list\n  assay data prepare sotu\n"
              "  assay data tokenizer train --vocab 8192 -o tokenizer train.jsonl\n"
              "  assay data encode --tokenizer tokenizer -o data/train train.jsonl",
          .commands = {data_prepare_command(), data_list_command(), data_tokenizer_command(), data_encode_command()}};
}

}  // namespace assay
