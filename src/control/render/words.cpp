#include "render/words.h"

#include <fmt/format.h>

#include <array>

namespace assay {

namespace {

constexpr std::array kEnglish = {
    "about",   "above",    "account",  "across",   "address",  "after",     "agency",   "airport", "always",
    "amount",  "answer",   "April",    "area",     "August",   "autumn",    "avenue",   "bakery",  "bank",
    "before",  "bicycle",  "board",    "book",     "bridge",   "budget",    "building", "bus",     "cafe",
    "camera",  "castle",   "centre",   "change",   "church",   "city",      "clinic",   "coffee",  "college",
    "corner",  "country",  "court",    "danger",   "December", "design",    "doctor",   "door",    "east",
    "engine",  "entrance", "evening",  "exit",     "factory",  "family",    "February", "ferry",   "field",
    "floor",   "flower",   "forest",   "Friday",   "garage",   "garden",    "gate",     "glass",   "green",
    "harbour", "health",   "history",  "hotel",    "house",    "insurance", "island",   "January", "journal",
    "June",    "kitchen",  "lake",     "language", "level",    "library",   "light",    "London",  "machine",
    "main",    "market",   "medicine", "menu",     "metro",    "Monday",    "morning",  "motor",   "museum",
    "music",   "network",  "never",    "north",    "notice",   "November",  "ocean",    "office",  "open",
    "orange",  "order",    "palace",   "paper",    "park",     "people",    "pharmacy", "phone",   "platform",
    "police",  "post",     "press",    "quality",  "quick",    "radio",     "railway",  "rent",    "river",
    "road",    "room",     "sale",     "school",   "science",  "second",    "service",  "shop",    "south",
    "square",  "stairs",   "station",  "storm",    "street",   "summer",    "Sunday",   "supply",  "theatre",
    "ticket",  "today",    "tower",    "town",     "traffic",  "train",     "travel",   "tunnel",  "under",
    "union",   "valley",   "village",  "water",    "week",     "welcome",   "west",     "winter",  "wood",
    "yellow"};
constexpr std::array kChinese = {
    "欢迎", "中国",   "北京", "上海", "广州", "医院", "学校", "银行", "超市", "餐厅", "酒店", "图书馆", "地铁", "公园",
    "机场", "火车站", "出口", "入口", "小心", "禁止", "停车", "营业", "时间", "电话", "地址", "公司",   "有限", "科技",
    "服务", "中心",   "大学", "计算", "网络", "数据", "模型", "训练", "文字", "识别", "检测", "春天",   "夏天", "秋天",
    "冬天", "星期",   "今天", "明天", "早上", "晚上", "东方", "西湖", "南京", "高山", "流水", "大海",   "森林", "花园",
    "牛奶", "面包",   "水果", "茶叶", "咖啡", "打折", "优惠", "免费", "会员", "新闻", "报纸", "音乐",   "电影", "书店"};

std::string english(Seeded& random) {
  std::string text = kEnglish[random.below(kEnglish.size())];
  for (uint64_t more = random.below(3); more > 0; --more)
    text += std::string(" ") + kEnglish[random.below(kEnglish.size())];
  if (random.below(5) == 0) {
    for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

std::string figures(Seeded& random) {
  switch (random.below(3)) {
    case 0: return fmt::format("{}", random.below(100'000));
    case 1: return fmt::format("{}.{:02}.{}", 1 + random.below(28), 1 + random.below(12), 1990 + random.below(40));
    default: return fmt::format("${}.{:02}", random.below(1000), random.below(100));
  }
}

}  // namespace

Words random_words(Seeded& random) {
  const uint64_t kind = random.below(10);
  if (kind < 5) return {english(random), false};
  if (kind < 7) return {figures(random), false};
  std::string text;
  for (uint64_t count = 1 + random.below(3); count > 0; --count) text += kChinese[random.below(kChinese.size())];
  return {text, true};
}

}  // namespace assay
