"""report.html in a real browser: no script error, no request, charts that answer the pointer and the keyboard, light and
dark, narrow, printed, without scripts, and with hostile names."""
import base64
import hashlib
import math
import pathlib
import re
import tempfile
import unittest

import report_data
from browser import Browser
from report_formats_test import render


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    """WCAG 2's contrast ratio of two colours "#rrggbb"."""
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class ReportHtml(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="assay-report.")
        cls.addClassCleanup(temporary.cleanup)
        cls.pages = {}
        for make in (report_data.demo, report_data.failing, report_data.empty, report_data.hostile):
            folder = pathlib.Path(temporary.name) / make.__name__
            folder.mkdir()
            render(make(), folder)
            cls.pages[make.__name__] = folder / "report.html"
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def load(self, page, fragment="", **view):
        self.browser.set_view(**{"width": 1240, **view})
        self.browser.open(self.pages[page], fragment)

    def value(self, expression):
        return self.browser.evaluate(expression)

    def box(self, selector):
        return self.value(f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center', "
                          "behavior: 'instant'}); const b = e.getBoundingClientRect(); return {x: b.x, y: b.y, "
                          "width: b.width, height: b.height}; })()")

    def test_loads_without_errors_and_requests(self):
        for page in self.pages:
            with self.subTest(page):
                self.load(page)
                self.assertEqual(self.value("document.documentElement.dataset.ready"), "true")
                self.assertIsNone(self.value("document.documentElement.dataset.error"))
                self.assertEqual(self.browser.exceptions, [])
                foreign = [u for u in self.browser.requests if not u.startswith(("file:", "data:"))]
                self.assertEqual(foreign, [])

    def test_shows_every_curve(self):
        self.load("demo")
        titles = self.value("[...document.querySelectorAll('.chart h3')].map(e => e.textContent)")
        self.assertEqual(titles, ["Loss", "Accuracy", "Throughput", "Learning rate"])
        lengths = self.value("[...document.querySelectorAll('.canvas .line')].map(e => e.getTotalLength())")
        self.assertEqual(len(lengths), 5)
        self.assertGreater(min(lengths), 1000)
        self.assertEqual(self.value("document.querySelectorAll('.share i').length"), 4)
        self.assertEqual(self.value("document.querySelectorAll('.verdict').length"), 5)

    def test_draws_lines_where_the_numbers_are(self):
        # The pixel position of the last validation point, computed here from the data and the axis labels of the page.
        self.load("demo")
        accuracy = report_data.demo()["curves"][2]["y"]
        labels = self.value("[...document.querySelectorAll('[data-chart=\"1\"] .ticks-y span')].map(e => {"
                            "const b = e.getBoundingClientRect(); return [Number(e.textContent), b.y + b.height / 2]; })")
        (low, low_y), (high, high_y) = labels[0], labels[-1]
        first = self.value("(() => { const p = document.querySelector('[data-chart=\"1\"] .line'); const q = p.getPointAtLength(0);"
                           "const m = p.getScreenCTM(); return q.y * m.d + m.f; })()")
        wanted = low_y + (accuracy[0] - low) / (high - low) * (high_y - low_y)
        self.assertLess(abs(first - wanted), 1.5)

    def test_shows_values_at_the_pointer(self):
        self.load("demo")
        box = self.box('[data-chart="0"] .canvas')
        self.browser.move_pointer(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tip = self.value("document.querySelector('[data-chart=\"0\"] .tip').innerText")
        step = int(re.search(r"step (\d+)", tip)[1])
        self.assertLess(abs(step - 2345 / 2), 10)
        curve = report_data.demo()["curves"][0]
        self.assertIn(f"{curve['y'][curve['x'].index(step)]:.4f}", tip)
        # The other charts follow, without a box of their own.
        self.assertFalse(self.value("document.querySelector('[data-chart=\"2\"] .cursor').hidden"))
        self.assertTrue(self.value("document.querySelector('[data-chart=\"2\"] .tip').hidden"))
        self.browser.move_pointer(2, 2)
        self.assertEqual(self.value("document.querySelectorAll('.cursor:not([hidden])').length"), 0)

    def test_formats_numbers_in_the_script_as_in_the_program(self):
        self.load("demo")
        values = "[...document.querySelectorAll('.legend b')].map(e => e.textContent)"
        before = self.value(values)
        for chart in range(4):
            box = self.box(f'[data-chart="{chart}"] .canvas')
            self.browser.move_pointer(box["x"] + box["width"] - 1, box["y"] + 20)
            self.assertFalse(self.value(f"document.querySelector('[data-chart=\"{chart}\"] .cursor').hidden"))
            legend = f"[...document.querySelectorAll('[data-chart=\"{chart}\"] .legend b')].map(e => e.textContent)"
            shown = self.value(legend)
            self.browser.move_pointer(2, 2)
            self.assertEqual(shown, self.value(legend))
        self.assertEqual(self.value(values), before)

    def test_shows_values_by_keyboard(self):
        self.load("demo")
        self.value("document.querySelector('[data-chart=\"0\"] .plot').focus()")
        for _ in range(3):
            self.browser.press("ArrowRight")
        self.assertIn("step 30", self.value("document.querySelector('[data-chart=\"0\"] .tip').innerText"))
        self.browser.press("ArrowLeft")
        self.assertIn("step 20", self.value("document.querySelector('[data-chart=\"0\"] .tip').innerText"))
        self.browser.press("Escape")
        self.assertTrue(self.value("document.querySelector('[data-chart=\"0\"] .tip').hidden"))

    def test_hides_a_curve_by_the_legend(self):
        self.load("demo")
        box = self.box('[data-chart="0"] .legend [data-series="1"]')
        self.browser.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        state = "getComputedStyle(document.querySelector('[data-chart=\"0\"] g[data-series=\"1\"]')).display"
        self.assertEqual(self.value(state), "none")
        self.browser.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.assertNotEqual(self.value(state), "none")

    def test_searches_parameters(self):
        self.load("demo")
        self.value("document.querySelector('#parameter-filter').focus()")
        self.browser.type("optimizer")
        rows = self.value("[...document.querySelectorAll('#parameter-table tbody tr')].filter(r => r.offsetHeight > 0)"
                          ".map(r => r.textContent)")
        self.assertEqual(len(rows), 6)
        self.assertTrue(all("Optimizer." in row for row in rows))
        self.assertEqual(self.value("document.querySelector('#parameter-count').textContent"), "6 of 27")

    def test_shows_broken_losses(self):
        self.load("failing")
        marks = self.value("[...document.querySelectorAll('.broken')].map(e => { const b = e.getBoundingClientRect();"
                           "return [e.title, e.innerText, b.width, b.height]; })")
        self.assertEqual([m[0] for m in marks], ["train: Infinity at step 410", "train: NaN at step 870"])
        self.assertEqual([m[1] for m in marks], ["Infinity", "NaN"])
        for mark in marks:
            self.assertGreaterEqual(mark[2], 2)
            self.assertGreater(mark[3], 100)

    def test_follows_light_and_dark(self):
        background = "getComputedStyle(document.body).backgroundColor"
        pictures = {}
        for scheme in ("light", "dark"):
            self.load("demo", scheme=scheme)
            pictures[scheme] = (self.value(background), self.browser.screenshot())
        self.assertNotEqual(pictures["light"][0], pictures["dark"][0])
        self.assertNotEqual(pictures["light"][1], pictures["dark"][1])
        # The button overrules the system, and so does the address.
        box = self.box("#theme")
        self.browser.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.assertEqual(self.value(background), pictures["light"][0])
        self.load("demo", "#theme=dark", scheme="light")
        self.assertEqual(self.value(background), pictures["dark"][0])
        # On paper it is always light.
        self.load("demo", "#theme=dark", scheme="dark", media="print")
        self.assertEqual(self.value("getComputedStyle(document.querySelector('.card')).backgroundColor"), "rgb(255, 255, 255)")

    def test_fits_any_width(self):
        for page in ("demo", "failing", "hostile"):
            for width in (320, 400, 768, 1240, 2560):
                with self.subTest(page=page, width=width):
                    self.load(page, width=width)
                    self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)

    def test_prints_on_paper(self):
        self.load("demo")
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
        self.assertTrue(2 <= pages <= 8, pages)

    def test_shows_everything_without_scripts(self):
        text = self.pages["demo"].read_text()
        plain = self.pages["demo"].parent / "plain.html"
        plain.write_text(re.sub(r"<script>.*</script>", "", text, flags=re.S))
        self.browser.set_view(1240)
        self.browser.open(plain)
        self.assertIsNone(self.value("document.documentElement.dataset.ready || null"))
        sizes = self.value("[...document.querySelectorAll('.canvas .line')].map(e => e.getBoundingClientRect().width)")
        self.assertEqual(len(sizes), 5)
        self.assertGreater(min(sizes), 100)
        # What would do nothing is not shown.
        self.assertEqual(self.value("[...document.querySelectorAll('#theme, #parameter-filter')].map(e => e.offsetHeight)"), [0, 0])

    def test_keeps_hostile_names_as_text(self):
        self.load("hostile")
        self.assertIsNone(self.value("document.documentElement.dataset.owned || null"))
        self.assertEqual(self.value("document.querySelectorAll('img, iframe, object').length"), 0)
        self.assertEqual(self.value("document.scripts.length"), 2)
        self.assertIn("<script>document", self.value("document.querySelector('h1').textContent"))
        for chart in range(self.value("document.querySelectorAll('.chart').length")):
            box = self.box(f'[data-chart="{chart}"] .canvas')
            self.browser.move_pointer(box["x"] + box["width"] / 2, box["y"] + 50)
        self.assertEqual(self.value("document.querySelectorAll('img').length"), 0)
        self.assertIsNone(self.value("document.documentElement.dataset.owned || null"))

    def test_allows_only_its_own_script(self):
        text = self.pages["demo"].read_text()
        script = re.search(r"<script>(.*?)</script>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}'", text)
        # A script that got in anyway does not run.
        added = self.pages["demo"].parent / "added.html"
        added.write_text(text.replace("</main>", "<script>document.documentElement.dataset.owned = 1</script></main>"))
        self.browser.open(added)
        self.assertIsNone(self.value("document.documentElement.dataset.owned || null"))
        self.assertEqual(self.value("document.documentElement.dataset.ready"), "true")

    def test_is_accessible(self):
        self.load("failing")
        self.assertEqual(self.value("document.querySelectorAll('h1').length"), 1)
        self.assertEqual(self.value("[...document.querySelectorAll('th')].filter(e => !e.scope).length"), 0)
        self.assertEqual(self.value("[...document.querySelectorAll('button, input')].filter(e => !(e.getAttribute('aria-label')"
                                    "|| e.textContent.trim())).length"), 0)
        self.assertEqual(self.value("[...document.querySelectorAll('.plot')].filter(e => e.getAttribute('aria-label').length < 20)"
                                    ".length"), 0)
        identifiers = self.value("[...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(identifiers), len(set(identifiers)))

    def test_has_enough_contrast(self):
        style = re.search(r"<style>(.*?)</style>", self.pages["demo"].read_text(), re.S)[1]
        blocks = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", style)]
        self.assertEqual(len(blocks), 3)
        self.assertEqual(blocks[1], blocks[2])  # dark by the system and dark by the button
        for colours in blocks:
            for text in ("ink", "soft", "faint"):
                for surface in ("surface", "page", "sunken"):
                    self.assertGreaterEqual(contrast(colours[text], colours[surface]), 4.5, (text, surface))
            for tone in ("pass", "fail", "warn", "skip"):
                for surface in (f"{tone}-tint", "surface"):
                    self.assertGreaterEqual(contrast(colours[tone], colours[surface]), 4.5, (tone, surface))
            for index in range(1, 9):  # lines need 3
                self.assertGreaterEqual(contrast(colours[f"c{index}"], colours["surface"]), 3, index)
        self.assertTrue(math.isclose(contrast("#ffffff", "#000000"), 21))

    def test_handles_a_huge_curve(self):
        result = report_data.demo()
        result["curves"][0]["x"] = list(range(100_000))
        result["curves"][0]["y"] = [math.sin(i / 500) + 2 for i in range(100_000)]
        folder = self.pages["demo"].parent.parent / "huge"
        folder.mkdir()
        render(result, folder)
        self.assertLess((folder / "report.html").stat().st_size, 300_000)
        self.browser.open(folder / "report.html")
        self.assertEqual(self.value("document.documentElement.dataset.ready"), "true")


if __name__ == "__main__":
    unittest.main()
