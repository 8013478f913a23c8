#include "comm/protocol.h"

#include <fmt/format.h>

namespace assay::comm {

namespace {
constexpr uint64_t kMostRanks = 1u << 20;  // a larger count is damage
}

std::string call_text(const Activity& activity) {
  const std::string number = activity.number > 0 ? fmt::format(" #{}", activity.number) : "";
  std::string text = fmt::format("{}{} of {}", activity.kind, number, activity.group_name);
  if (!activity.purpose.empty()) text += " (" + activity.purpose + ")";
  return text;
}

void encode(Encoder& out, const Member& member) {
  out.i32(member.rank).i32(member.pid).text(member.host).text(member.kernel).text(member.address);
  out.text(member.interface).text(member.transport);
}

Member decode_member(Decoder& in) {
  Member member;
  member.rank = in.i32();
  member.pid = in.i32();
  member.host = in.text();
  member.kernel = in.text();
  member.address = in.text();
  member.interface = in.text();
  member.transport = in.text();
  return member;
}

void encode(Encoder& out, const Activity& activity) {
  out.u64(activity.group).text(activity.group_name).u64(activity.ranks.size());
  for (const int rank : activity.ranks) out.i32(rank);
  out.u64(activity.number).text(activity.kind).text(activity.purpose).u64(static_cast<uint64_t>(activity.bytes));
  out.u8(activity.waiting).f64(activity.seconds);
}

Activity decode_activity(Decoder& in) {
  Activity activity;
  activity.group = in.u64();
  activity.group_name = in.text();
  const uint64_t count = in.u64();
  if (count > kMostRanks) throw WireError("a group of an impossible size");
  for (uint64_t i = 0; i < count; ++i) activity.ranks.push_back(in.i32());
  activity.number = in.u64();
  activity.kind = in.text();
  activity.purpose = in.text();
  activity.bytes = static_cast<int64_t>(in.u64());
  activity.waiting = in.u8() != 0;
  activity.seconds = in.f64();
  return activity;
}

void encode(Encoder& out, const std::vector<Activity>& activities) {
  out.u64(activities.size());
  for (const Activity& activity : activities) encode(out, activity);
}

std::vector<Activity> decode_activities(Decoder& in) {
  const uint64_t count = in.u64();
  if (count > kMostRanks) throw WireError("an impossible number of groups");
  std::vector<Activity> activities;
  for (uint64_t i = 0; i < count; ++i) activities.push_back(decode_activity(in));
  return activities;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < ranks.size(); ++i) {
    text += i == 0 ? " " : i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace assay::comm
