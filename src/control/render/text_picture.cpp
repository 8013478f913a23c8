#include "render/text_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/json.h"
#include "render/seeded.h"
#include "render/words.h"

namespace assay {

namespace {

constexpr int kMinTexts = 2;
constexpr int kMaxTexts = 7;
constexpr double kMaxTurn = 15 * std::numbers::pi / 180;
constexpr double kGap = 4;  // pixels between texts, at least

struct Paint {
  double red = 0, green = 0, blue = 0;
  double lightness() const { return 0.299 * red + 0.587 * green + 0.114 * blue; }
};

Paint random_paint(Seeded& random) { return {random.between(0, 1), random.between(0, 1), random.between(0, 1)}; }

Paint contrasting_paint(Seeded& random, const Paint& ground) {
  while (true) {
    const Paint paint = random_paint(random);
    if (std::abs(paint.lightness() - ground.lightness()) > 0.35) return paint;
  }
}

// A colour that runs into a similar one, and some shapes that are no texts.
Paint draw_ground(cairo_t* cairo, const TextPictureOptions& options, Seeded& random) {
  const Paint ground = random_paint(random);
  const auto near = [&](double value) { return std::clamp(value + random.between(-0.12, 0.12), 0.0, 1.0); };
  cairo_pattern_t* gradient = cairo_pattern_create_linear(0, 0, options.width, options.height * random.between(0, 1));
  cairo_pattern_add_color_stop_rgb(gradient, 0, ground.red, ground.green, ground.blue);
  cairo_pattern_add_color_stop_rgb(gradient, 1, near(ground.red), near(ground.green), near(ground.blue));
  cairo_set_source(cairo, gradient);
  cairo_paint(cairo);
  cairo_pattern_destroy(gradient);
  for (uint64_t shapes = random.below(6); shapes > 0; --shapes) {
    cairo_set_source_rgb(cairo, near(ground.red), near(ground.green), near(ground.blue));
    const double x = random.between(0, options.width);
    const double y = random.between(0, options.height);
    const double size = random.between(20, 120);
    if (random.below(2) == 0) {
      cairo_rectangle(cairo, x, y, size, random.between(20, 120));
    } else {
      cairo_arc(cairo, x, y, size / 2, 0, 2 * std::numbers::pi);
    }
    cairo_fill(cairo);
  }
  return ground;
}

struct LayoutUnref {
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
};
using Layout = std::unique_ptr<PangoLayout, LayoutUnref>;

Layout make_layout(const Fonts& fonts, const Words& words, Seeded& random) {
  PangoContext* context = pango_font_map_create_context(fonts.map());
  cairo_font_options_t* drawing = cairo_font_options_create();
  // Outlines as the font has them: what a machine prefers would change the picture.
  cairo_font_options_set_antialias(drawing, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(drawing, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(drawing, CAIRO_HINT_METRICS_OFF);
  pango_cairo_context_set_font_options(context, drawing);
  cairo_font_options_destroy(drawing);
  Layout layout(pango_layout_new(context));
  g_object_unref(context);
  constexpr std::array kFamilies = {"DejaVu Sans", "DejaVu Sans Bold", "DejaVu Serif", "DejaVu Sans Mono"};
  const char* family = words.is_chinese ? "Noto Sans CJK SC" : kFamilies[random.below(kFamilies.size())];
  PangoFontDescription* font = pango_font_description_from_string(family);
  // Whole sizes: pango keeps the fonts it has opened, a size each.
  pango_font_description_set_absolute_size(font, static_cast<double>(13 + random.below(24)) * PANGO_SCALE);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  pango_layout_set_text(layout.get(), words.text.data(), static_cast<int>(words.text.size()));
  return layout;
}

// The rectangle around all corners.
struct Bounds {
  double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
};
Bounds bounds_of(const std::array<PicturePoint, 4>& corners) {
  Bounds b;
  for (const PicturePoint& p : corners) {
    b.left = std::min(b.left, p.x);
    b.right = std::max(b.right, p.x);
    b.top = std::min(b.top, p.y);
    b.bottom = std::max(b.bottom, p.y);
  }
  return b;
}
bool too_near(const Bounds& a, const Bounds& b) {
  return a.left < b.right + kGap && b.left < a.right + kGap && a.top < b.bottom + kGap && b.top < a.bottom + kGap;
}

// Draws one text where there is room; gives up after some tries.
void add_text(cairo_t* cairo, const Fonts& fonts, const TextPictureOptions& options, const Paint& ground,
              Seeded& random, std::vector<PlacedText>& texts) {
  const Words words = random_words(random);
  const Layout layout = make_layout(fonts, words, random);
  PangoRectangle ink;
  pango_layout_get_extents(layout.get(), &ink, nullptr);
  const double left = static_cast<double>(ink.x) / PANGO_SCALE;
  const double top = static_cast<double>(ink.y) / PANGO_SCALE;
  const double width = static_cast<double>(ink.width) / PANGO_SCALE;
  const double height = static_cast<double>(ink.height) / PANGO_SCALE;
  const Paint paint = contrasting_paint(random, ground);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const double turn = random.below(2) == 0 ? 0 : random.between(-kMaxTurn, kMaxTurn);
    const double x = random.between(0, options.width);
    const double y = random.between(0, options.height);
    const auto corner = [&](double across, double down) {
      return PicturePoint{x + across * std::cos(turn) - down * std::sin(turn),
                          y + across * std::sin(turn) + down * std::cos(turn)};
    };
    const std::array<PicturePoint, 4> corners = {corner(0, 0), corner(width, 0), corner(width, height),
                                                 corner(0, height)};
    const Bounds bounds = bounds_of(corners);
    if (bounds.left < 2 || bounds.top < 2 || bounds.right > options.width - 2 || bounds.bottom > options.height - 2) {
      continue;
    }
    if (std::any_of(texts.begin(), texts.end(),
                    [&](const PlacedText& other) { return too_near(bounds, bounds_of(other.corners)); })) {
      continue;
    }
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    cairo_rotate(cairo, turn);
    cairo_move_to(cairo, -left, -top);
    cairo_set_source_rgb(cairo, paint.red, paint.green, paint.blue);
    pango_cairo_show_layout(cairo, layout.get());
    cairo_restore(cairo);
    texts.push_back({words.text, corners});
    return;
  }
}

}  // namespace

TextPicture draw_text_picture(const Fonts& fonts, const TextPictureOptions& options, uint64_t number) {
  Seeded random(options.seed, number);
  TextPicture picture;
  picture.surface.reset(cairo_image_surface_create(CAIRO_FORMAT_RGB24, options.width, options.height));
  const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> cairo(cairo_create(picture.surface.get()), &cairo_destroy);
  const Paint ground = draw_ground(cairo.get(), options, random);
  const auto count = kMinTexts + static_cast<int>(random.below(kMaxTexts - kMinTexts + 1));
  for (int i = 0; i < count; ++i) add_text(cairo.get(), fonts, options, ground, random, picture.texts);
  if (cairo_status(cairo.get()) != CAIRO_STATUS_SUCCESS) {
    throw InternalError(fmt::format("cairo: {}", cairo_status_to_string(cairo_status(cairo.get()))));
  }
  return picture;
}

std::string labels_json(const std::vector<PlacedText>& texts) {
  Json list = Json::array();
  for (const PlacedText& text : texts) {
    Json points = Json::array();
    for (const PicturePoint& p : text.corners) {
      points.push_back({std::round(p.x * 100) / 100, std::round(p.y * 100) / 100});
    }
    list.push_back({{"transcription", text.text}, {"points", points}});
  }
  return to_line(list);
}

}  // namespace assay
