// What a program asks of the library that wraps SentencePiece (apps/sentencepiece). It is opened only when such a
// tokenizer is used: it takes time to load, and it brings a copy of protobuf that must not meet libtorch's. Plain
// functions, and every result goes through a function of the caller, so that neither side frees what the other made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay {

using TakeText = void (*)(void* context, const char* text, size_t size);
using TakeIds = void (*)(void* context, const int* ids, size_t count);
// The next line of text, until it returns false.
using NextLine = bool (*)(void* context, const char** text, size_t* size);

enum class SentencePieceKind : int { Normal, Unknown, Control, Byte };

struct SentencePieceApi {
  // A model, or null after giving the reason to `fail`.
  void* (*load)(const char* model, size_t size, void* context, TakeText fail);
  void (*release)(void* model);
  int (*num_pieces)(const void* model);
  SentencePieceKind (*piece)(const void* model, int id, void* context, TakeText take);
  // False after giving the reason to `fail`.
  bool (*encode)(const void* model, const char* text, size_t size, void* context, TakeIds take, TakeText fail);
  int (*end_id)(const void* model);      // -1: none
  int (*begin_id)(const void* model);    // -1: none
  int (*padding_id)(const void* model);  // -1: none
  // Gives the serialized model to `take`, or the reason to `fail` and returns false.
  bool (*train)(int vocabulary_size, const char* special_tokens, void* context, NextLine next, TakeText take,
                TakeText fail);
};

// The one symbol of the library.
using SentencePieceEntry = const SentencePieceApi* (*)();
inline constexpr const char* kSentencePieceEntry = "assay_sentencepiece";
inline constexpr const char* kSentencePieceLibrary = "assay_sentencepiece.so";

}  // namespace assay
