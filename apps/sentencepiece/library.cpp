// Debian's SentencePiece behind plain functions, see text/sentence_piece_api.h.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/sentence_piece_api.h"

namespace {

using assay::SentencePieceKind;
using sentencepiece::SentencePieceProcessor;

const SentencePieceProcessor& processor(const void* model) {
  return *static_cast<const SentencePieceProcessor*>(model);
}

void give(void* context, assay::TakeText take, const std::string& text) { take(context, text.data(), text.size()); }

void* load(const char* model, size_t size, void* context, assay::TakeText fail) {
  try {
    auto loaded = std::make_unique<SentencePieceProcessor>();
    const auto status = loaded->LoadFromSerializedProto({model, size});
    if (status.ok() && loaded->GetPieceSize() > 0) return loaded.release();
    give(context, fail, status.ok() ? "it has no pieces" : status.ToString());
  } catch (const std::exception& error) {
    give(context, fail, error.what());
  }
  return nullptr;
}

void release(void* model) { delete static_cast<SentencePieceProcessor*>(model); }

int num_pieces(const void* model) { return processor(model).GetPieceSize(); }

SentencePieceKind piece(const void* model, int id, void* context, assay::TakeText take) {
  const SentencePieceProcessor& p = processor(model);
  give(context, take, p.IdToPiece(id));
  if (p.IsUnknown(id)) return SentencePieceKind::Unknown;
  if (p.IsControl(id)) return SentencePieceKind::Control;
  return p.IsByte(id) ? SentencePieceKind::Byte : SentencePieceKind::Normal;
}

bool encode(const void* model, const char* text, size_t size, void* context, assay::TakeIds take,
            assay::TakeText fail) {
  try {
    std::vector<int> ids;
    const auto status = processor(model).Encode({text, size}, &ids);
    if (status.ok()) {
      take(context, ids.data(), ids.size());
      return true;
    }
    give(context, fail, status.ToString());
  } catch (const std::exception& error) {
    give(context, fail, error.what());
  }
  return false;
}

int end_id(const void* model) { return processor(model).eos_id(); }
int begin_id(const void* model) { return processor(model).bos_id(); }
int padding_id(const void* model) { return processor(model).pad_id(); }

class Lines final : public sentencepiece::SentenceIterator {
 public:
  Lines(void* context, assay::NextLine next) : context_(context), next_(next) { Next(); }
  bool done() const override { return done_; }
  void Next() override {
    const char* text = nullptr;
    size_t size = 0;
    done_ = !next_(context_, &text, &size);
    if (!done_) line_.assign(text, size);
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void* context_;
  assay::NextLine next_;
  std::string line_;
  bool done_ = false;
};

// Nothing is normalised and every byte is a piece, so that any text comes back as it was.
bool train(int vocabulary_size, const char* special_tokens, void* context, assay::NextLine next, assay::TakeText take,
           assay::TakeText fail) {
  try {
    Lines lines(context, next);
    std::string model;
    const auto status =
        sentencepiece::SentencePieceTrainer::Train({{"model_type", "unigram"},
                                                    {"vocab_size", std::to_string(vocabulary_size)},
                                                    {"hard_vocab_limit", "false"},
                                                    {"byte_fallback", "true"},
                                                    {"normalization_rule_name", "identity"},
                                                    {"add_dummy_prefix", "false"},
                                                    {"remove_extra_whitespaces", "false"},
                                                    {"pad_id", "3"},
                                                    {"control_symbols", special_tokens},
                                                    {"num_threads", "2"},  // not the machine's: sums depend on it
                                                    {"minloglevel", "2"}},
                                                   &lines, &model);
    if (status.ok()) {
      give(context, take, model);
      return true;
    }
    give(context, fail, status.ToString());
  } catch (const std::exception& error) {
    give(context, fail, error.what());
  }
  return false;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const assay::SentencePieceApi* assay_sentencepiece() {
  static const assay::SentencePieceApi api = {load,   release,  num_pieces, piece, encode,
                                              end_id, begin_id, padding_id, train};
  return &api;
}
