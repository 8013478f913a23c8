#include "param_server/messages.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "ps_test_tools.h"

namespace assay::ps {

namespace {

uint64_t sixteen_bytes(uint32_t table) {
  if (table > 1) throw CommunicationError("no such table");
  return 16;
}

struct MessageExample {
  std::string payload;
  std::function<void(std::string_view)> decode;
};

std::vector<MessageExample> message_examples() {
  const PullRequest pull{.step = 3, .parts = {{.table = 0, .ids = {1, 2}}, {.table = 1, .ids = {}}}};
  const PushRequest push{
      .step = 9, .sequence = 4, .rate = 0.5, .blocks = {block_of(0, {5, 6}, {1, 2, 3, 4}), block_of(1, {}, {})}};
  const ChangedRows changed{.version = 8, .more = true, .ids = {3}, .values = block_of(0, {3}, {1, 2}).values};
  return {
      {encode(Hello{.trainer = 1, .num_trainers = 2, .job = "j"}), [](auto p) { decode_hello(p); }},
      {encode(HelloReply{.step = 4, .restored_step = 2}), [](auto p) { decode_hello_reply(p); }},
      {encode(std::vector<TableSpec>{f64_table("a", 2), f64_table("b", 3, {.name = "Adam"})}),
       [](auto p) { decode_specs(p); }},
      {encode(pull), [](auto p) { decode_pull(p); }},
      {encode(std::vector<PulledPart>{{{1, 0}, block_of(0, {1, 2}, {1, 2, 0, 0}).values}, {}}),
       [pull](auto p) { decode_pulled(p, pull, sixteen_bytes); }},
      {encode(push), [](auto p) { decode_push(p, sixteen_bytes); }},
      {encode(block_of(0, {7}, {1, 2})), [](auto p) { decode_block(p, sixteen_bytes); }},
      {encode(ChangedRequest{.table = 1, .since = 5, .max_rows = 10}), [](auto p) { decode_changed_request(p); }},
      {encode(changed), [](auto p) { decode_changed(p, 16); }},
      {encode(BarrierRequest{.sequence = 3, .limit_s = 2}), [](auto p) { decode_barrier(p); }},
      {encode(GatherRequest{.barrier = {.sequence = 3, .limit_s = 2}, .text = "abc"}),
       [](auto p) { decode_gather(p); }},
      {encode(std::vector<std::string>{"one", "", "two"}), [](auto p) { decode_texts(p); }},
      {encode(StartRequest{.step = 5, .barrier = {.sequence = 3, .limit_s = 2}}), [](auto p) { decode_start(p); }},
      {encode_step(77), [](auto p) { decode_step(p); }},
      {encode_text("words"), [](auto p) { decode_text(p); }},
  };
}

}  // namespace

TEST(PsMessages, ReadsMessagesBack) {
  const Hello hello{
      .trainer = 3, .num_trainers = 5, .server = 1, .num_servers = 2, .mode = Mode::Geo, .job = "x y", .instance = 99};
  EXPECT_EQ(decode_hello(encode(hello)), hello);
  const std::vector<TableSpec> specs = {f64_table("a", 2, {.name = "Adagrad", .weight_decay = 0.5},
                                                  {.kind = InitRule::Kind::Normal, .scale = 3, .seed = 1}),
                                        {.name = "b", .width = 9}};
  EXPECT_EQ(decode_specs(encode(specs)), specs);
  const PushRequest push = decode_push(
      encode(PushRequest{.step = 9, .sequence = 4, .rate = 0.5, .blocks = {block_of(1, {5, 6}, {1, 2, 3, 4})}}),
      sixteen_bytes);
  EXPECT_EQ(push.step, 9);
  EXPECT_EQ(push.sequence, 4u);
  EXPECT_EQ(push.rate, 0.5);
  EXPECT_FALSE(push.skips);
  EXPECT_TRUE(decode_push(encode(PushRequest{.skips = true}), sixteen_bytes).skips);
  EXPECT_EQ(push.blocks.at(0).table, 1u);
  EXPECT_EQ(push.blocks.at(0).ids, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(numbers_of(push.blocks.at(0).values), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(decode_text(encode_text("ganz gut")), "ganz gut");
  EXPECT_EQ(decode_step(encode_step(12)), 12);
}

TEST(PsMessages, KeepsTheKindOfErrors) {
  EXPECT_THROW(throw_error(encode_error(ConfigError("c")), "server 1"), ConfigError);
  EXPECT_THROW(throw_error(encode_error(DataError("c")), "server 1"), DataError);
  EXPECT_THROW(throw_error(encode_error(OutOfMemoryError("c")), "server 1"), OutOfMemoryError);
  EXPECT_THROW(throw_error(encode_error(std::bad_alloc()), "server 1"), OutOfMemoryError);
  EXPECT_THROW(throw_error("\xfe", "server 1"), CommunicationError);
  try {
    throw_error(encode_error(std::runtime_error("no reason")), "server 1");
    FAIL();
  } catch (const CommunicationError& error) {
    EXPECT_STREQ(error.what(), "server 1: no reason");
  }
}

TEST(PsMessages, RejectsATruncatedMessage) {
  for (const MessageExample& example : message_examples()) {
    EXPECT_NO_THROW(example.decode(example.payload));
    for (size_t size = 0; size < example.payload.size(); ++size) {
      EXPECT_THROW(example.decode(example.payload.substr(0, size)), Error);
    }
    EXPECT_THROW(example.decode(example.payload + "x"), Error);
  }
}

// Whatever comes, the answer is a value or a typed error, and memory stays in proportion to the bytes that came.
TEST(PsMessages, SurvivesGarbage) {
  std::mt19937_64 random(5);
  for (const MessageExample& example : message_examples()) {
    for (int round = 0; round < 3000; ++round) {
      std::string payload = example.payload;
      if (round % 3 == 0) {
        payload.resize(random() % 200);
        for (char& letter : payload) letter = static_cast<char>(random());
      } else {
        for (int i = 0; i < 1 + static_cast<int>(random() % 4) && !payload.empty(); ++i) {
          payload[random() % payload.size()] = static_cast<char>(round % 2 ? random() : 0xff);
        }
      }
      try {
        example.decode(payload);
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace assay::ps
