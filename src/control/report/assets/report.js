
// What a still picture cannot do: values under the pointer, hiding a curve, a filter, light or dark.
// The page is complete without it. data-ready on the root says that everything below ran; data-error that something broke.
(function () {
  "use strict";
  var root = document.documentElement;
  window.addEventListener("error", function (event) {
    root.dataset.error = String(event.message);
  });

  function make(tag, className, parent) {
    var element = document.createElement(tag);
    element.className = className;
    parent.appendChild(element);
    return element;
  }

  // The same rules as number_text() in figures.cpp.
  function numberText(value) {
    if (typeof value !== "number") return String(value);
    var size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e15 || size < 1e-4) {
      return value.toExponential(2).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
    }
    if (size < 1e-3) return String(Number(value.toPrecision(3)));
    if (value === Math.floor(value) || size >= 1000) return value.toFixed(0);
    return value.toFixed(size >= 100 ? 1 : size >= 1 ? 3 : 4);
  }

  // Index of the entry of the ascending list that is nearest to the wanted value.
  function nearest(list, wanted) {
    var low = 0;
    var high = list.length - 1;
    while (high - low > 1) {
      var middle = (low + high) >> 1;
      if (list[middle] <= wanted) low = middle; else high = middle;
    }
    return wanted - list[low] <= list[high] - wanted ? low : high;
  }

  function fraction(value, range) {
    return range[1] > range[0] ? (value - range[0]) / (range[1] - range[0]) : 0.5;
  }

  function Chart(figure, data) {
    this.data = data;
    this.plot = figure.querySelector(".plot");
    this.canvas = figure.querySelector(".canvas");
    this.cursor = make("div", "cursor", this.canvas);
    this.tip = make("div", "tip", this.canvas);
    this.tip.setAttribute("role", "status");
    this.cursor.hidden = this.tip.hidden = true;
    this.series = data.series.map(function (one, index) {
      var button = figure.querySelector('.legend [data-series="' + index + '"]');
      var colour = button.className;
      var dot = make("i", "dot " + colour, this.canvas);
      dot.hidden = true;
      var entry = { x: one.x, y: one.y, label: one.label, colour: colour, dot: dot, on: true, value: button.querySelector("b") };
      entry.last = entry.value.textContent;
      var parts = figure.querySelectorAll('g[data-series="' + index + '"], .broken[data-series="' + index + '"]');
      button.addEventListener("click", function () {
        entry.on = !entry.on;
        button.setAttribute("aria-pressed", String(entry.on));
        parts.forEach(function (part) { part.classList.toggle("off", !entry.on); });
        if (!entry.on) dot.hidden = true;
      });
      return entry;
    }, this);
    this.listen();
  }

  Chart.prototype.longest = function () {
    return this.series.reduce(function (a, b) { return b.on && (!a || b.x.length > a.x.length) ? b : a; }, null);
  };

  // The recorded step nearest to the wanted one.
  Chart.prototype.snap = function (wanted) {
    var best = null;
    this.series.forEach(function (one) {
      if (!one.on || !one.x.length) return;
      var x = one.x[nearest(one.x, wanted)];
      if (best === null || Math.abs(x - wanted) < Math.abs(best - wanted)) best = x;
    });
    return best;
  };

  Chart.prototype.show = function (step, withTip) {
    var data = this.data;
    var at = fraction(step, data.x);
    var inside = at >= 0 && at <= 1;
    this.cursor.hidden = !inside;
    this.cursor.style.left = 100 * at + "%";
    this.tip.hidden = !withTip;
    this.tip.textContent = "";
    if (withTip) make("strong", "", this.tip).textContent = "step " + numberText(step);
    this.series.forEach(function (one) {
      if (!one.on || !one.x.length) return;
      var i = nearest(one.x, step);
      var y = one.y[i];
      var up = typeof y === "number" ? fraction(y, data.y) : -1;
      one.dot.hidden = !inside || up < 0 || up > 1;
      one.dot.style.left = 100 * fraction(one.x[i], data.x) + "%";
      one.dot.style.bottom = 100 * up + "%";
      one.value.textContent = numberText(y);
      if (!withTip) return;
      var row = make("div", one.colour, this.tip);
      make("i", "", row);
      row.appendChild(document.createTextNode(one.label + (one.x[i] !== step ? " (step " + numberText(one.x[i]) + ")" : "")));
      make("b", "", row).textContent = numberText(y);
    }, this);
    var room = 14;
    this.tip.style.left = at > 0.55 ? "auto" : "calc(" + 100 * at + "% + " + room + "px)";
    this.tip.style.right = at > 0.55 ? "calc(" + 100 * (1 - at) + "% + " + room + "px)" : "auto";
  };

  Chart.prototype.clear = function () {
    this.cursor.hidden = this.tip.hidden = true;
    this.series.forEach(function (one) {
      one.dot.hidden = true;
      one.value.textContent = one.last;
    });
  };

  var charts = [];
  function showAll(source, step) {
    if (step === null) return;
    source.step = step;
    charts.forEach(function (chart) { chart.show(step, chart === source); });
  }
  function clearAll() {
    charts.forEach(function (chart) { chart.clear(); });
  }

  Chart.prototype.listen = function () {
    var self = this;
    function follow(event) {
      var box = self.canvas.getBoundingClientRect();
      var at = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      showAll(self, self.snap(self.data.x[0] + at * (self.data.x[1] - self.data.x[0])));
    }
    this.plot.addEventListener("pointermove", follow);
    this.plot.addEventListener("pointerdown", follow);
    this.plot.addEventListener("pointerleave", clearAll);
    this.plot.addEventListener("blur", clearAll);
    this.plot.addEventListener("keydown", function (event) {
      var line = self.longest();
      if (event.key === "Escape") clearAll();
      if (!line || (event.key !== "ArrowLeft" && event.key !== "ArrowRight")) return;
      event.preventDefault();
      var i = self.step === undefined ? 0 : nearest(line.x, self.step) + (event.key === "ArrowLeft" ? -1 : 1);
      showAll(self, line.x[Math.min(line.x.length - 1, Math.max(0, i))]);
    });
  };

  function setUpTheme() {
    var button = document.getElementById("theme");
    var system = window.matchMedia("(prefers-color-scheme: dark)");
    var wanted = /(?:^#|&)theme=(light|dark)/.exec(location.hash);
    if (wanted) root.dataset.theme = wanted[1];
    button.hidden = false;
    button.addEventListener("click", function () {
      var dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }

  function setUpFilter() {
    var input = document.getElementById("parameter-filter");
    if (!input) return;
    var rows = Array.prototype.slice.call(document.querySelectorAll("#parameter-table tbody tr"));
    var count = document.getElementById("parameter-count");
    input.hidden = false;
    input.addEventListener("input", function () {
      var wanted = input.value.trim().toLowerCase();
      var shown = 0;
      rows.forEach(function (row) {
        row.hidden = row.textContent.toLowerCase().indexOf(wanted) < 0;
        if (!row.hidden) shown += 1;
      });
      count.textContent = wanted ? shown + " of " + rows.length : String(rows.length);
    });
  }

  setUpTheme();
  setUpFilter();
  var data = JSON.parse(document.getElementById("data").textContent);
  document.querySelectorAll(".chart").forEach(function (figure) {
    charts.push(new Chart(figure, data.charts[Number(figure.dataset.chart)]));
  });
  root.dataset.ready = "true";
})();
