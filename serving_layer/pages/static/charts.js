// Draws a period with uPlot: final values solid, provisional ones dashed, what they are compared with behind them.
"use strict";
(() => {
  const seconds = (text) => Date.parse(text) / 1000;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ROUND_MS = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600].map((s) => s * 1000);
  const duration = (ms) => ms % 60000 ? `${ms / 1000} s` : ms % 3600000 || !ms ? `${ms / 60000} min` : `${ms / 3600000} h`;
  const MANY_POINTS = 62; // from here on, dots would hide the line
  const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

  // Where a point is drawn: when it begins, or by the clocks of its stores where each has its own.
  const place = (point, zone) => seconds(zone ? point.start : `${(point.local ?? `${point.date}T00:00:00`).slice(0, 19)}Z`);
  // All points, but of hours not the empty ones at both ends of the day.
  function visible(points, until, isHourly) {
    const full = points.map((point) => Boolean(point.value) || Boolean(point.before));
    const first = isHourly ? Math.max(full.indexOf(true) - 1, 0) : 0, last = isHourly ? full.lastIndexOf(true) + 1 : points.length;
    return points.map((point, n) => {
      const at = seconds(point.start), ends = point.ends ? seconds(point.ends) : points[n + 1] ? seconds(points[n + 1].start) : at + (at - seconds(points[n - 1]?.start ?? point.start) || 86400);
      return { ...point, begun: at <= until, partial: at <= until && until < ends };
    }).slice(first, last + 1);
  }

  function columns(points) {
    const value = (point) => point.begun && !point.partial ? point.value : null;
    const final = points.map((point) => point.final ? value(point) : null);
    // A dashed line begins where the solid one ends, so that no hour seems to be missing between them.
    const provisional = points.map((point, n) => !point.final || points[n + 1]?.final === false ? value(point) : null);
    return [points.map((point) => point.at), points.map((point) => point.before ?? null), final, provisional, points.map((point) => point.begun && point.partial ? point.value : null)];
  }

  class Chart {
    constructor(element) {
      this.element = element;
      this.readout = element.parentElement.querySelector(".readout");
      this.rows = JSON.parse(element.dataset.rows);
      this.known = new Map(this.rows.map((row) => [row.start, row]));
      this.annotations = JSON.parse(element.dataset.annotations);
      this.isHourly = element.dataset.grain === "hour";
      const language = document.documentElement.lang, timeZone = element.dataset.zone || "UTC"; // none: the clocks of several
      this.axisLabel = new Intl.DateTimeFormat(language === "en" ? "en-GB" : language, { day: "numeric", month: "short", timeZone });
      this.hour = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
      this.wet = (element.dataset.wet || "").split(" ").filter(Boolean).map(seconds);
      element.addEventListener("galatea:answer", ({ detail: { body, points } }) => this.show(points, galatea.knownUntil(body.as_of)));
      if (element.dataset.drill) {
        element.classList.add("opens");
        element.addEventListener("click", () => this.open(this.plot?.cursor.idx));
      }
      new ResizeObserver(() => this.plot?.setSize(this.size())).observe(element);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
      this.until = -Infinity;
      this.show(this.rows, element.dataset.until.replace(" ", "T"));
    }
    size() { return { width: this.element.clientWidth, height: this.element.clientHeight }; }
    // Points of an answer say no labels, and hours not what they are compared with: the page said so.
    show(points, asOf) {
      this.until = Math.max(this.until, seconds(asOf)); // the page may know more than answers say: what speed has read of others
      const until = this.until, rows = points.map((point) => ({ label: "", ...this.known.get(point.start), ...point, at: place(point, this.element.dataset.zone) }));
      const text = JSON.stringify([rows, until]);
      if (text === this.shown) return;
      this.shown = text;
      this.points = visible(rows, until, this.isHourly);
      this.draw();
    }
    draw() {
      if (!this.points) return;
      const { left = -10, top = -10 } = this.plot?.cursor ?? {}; // what is read under the pointer stays while new points arrive
      this.plot?.destroy();
      this.plot = new uPlot(this.options(), columns(this.points), this.element);
      this.plot.setCursor({ left, top });
    }
    line(name, more) { return { stroke: colour(name), ...more, points: this.points.length > MANY_POINTS ? { show: false } : more.points ?? { show: false } }; }
    options() {
      const { zone, unit } = this.element.dataset, dim = colour("--dim"), grid = { stroke: colour("--soft"), width: 1 };
      const font = `${Math.round(rem() * 0.75)}px system-ui, sans-serif`;
      const isDay = this.isHourly && this.points.length < 27, written = isDay ? this.hour : this.axisLabel, lineWidth = rem() * 0.135;
      const axis = { stroke: dim, grid, ticks: { show: false }, font };
      const short = (value) => unit === "ms" ? duration(value) : value.toLocaleString(document.documentElement.lang, { notation: "compact" }).replace("-", "−");
      const dots = { show: true, size: rem() * 0.4, width: rem() * 0.08, fill: colour("--sheet") };
      return {
        ...this.size(), legend: { show: false }, padding: [8, rem() * 1.4, 0, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: rem() * 0.5 } },
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), zone || "UTC"),
        scales: { y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] } },
        axes: [
          { ...axis, size: rem() * 1.9, grid: { show: false }, space: rem() * 4, values: (_, at) => at.map((each) => written.format(each * 1000)), incrs: isDay ? [1, 2, 3, 6, 12].map((hours) => hours * 3600) : [1, 2, 3, 7, 14, 28, 61, 91, 182, 365].map((days) => days * 86400) },
          { ...axis, size: rem() * 3.2, space: rem() * 2.2, values: (_, at) => at.map(short), ...(unit === "ms" ? { incrs: ROUND_MS } : {}) },
        ],
        series: [
          {},
          this.line("--before", { width: rem() * 0.075 }),
          this.line("--accent", { width: lineWidth, fill: `${colour("--accent")}1c`, points: { ...dots, fill: colour("--accent") } }),
          this.line("--accent", { width: lineWidth, dash: [rem() * 0.36, rem() * 0.3], points: dots }),
          { stroke: colour("--accent"), width: lineWidth, paths: () => null, points: { ...dots, width: lineWidth } }, // what is not over: no line leads to a part of a point
        ],
        hooks: { drawClear: [(plot) => this.rain(plot)], draw: [(plot) => this.annotate(plot)], setCursor: [(plot) => this.read(plot.cursor.idx ?? this.latest())] },
      };
    }
    rain(plot) {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.fillStyle = colour("--rain");
      for (const at of this.wet) {
        const left = Math.max(plot.valToPos(at, "x", true), bbox.left), right = Math.min(plot.valToPos(at + 3600, "x", true), bbox.left + bbox.width);
        if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
      ctx.restore();
    }
    // The days of an annotation, above the plot, with its number in the list of the page.
    annotate(plot) {
      const { ctx, bbox } = plot, ends = (n) => this.points[n + 1]?.at ?? Infinity, ratio = devicePixelRatio;
      const day = (point) => point.date ?? new Intl.DateTimeFormat("en-CA", { timeZone: this.element.dataset.zone || "UTC" }).format(point.at * 1000);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("--annotation");
      ctx.lineWidth = 2 * ratio;
      ctx.textAlign = "left";
      ctx.textBaseline = "middle";
      ctx.font = `${Math.round(rem() * 0.7 * ratio)}px system-ui, sans-serif`;
      this.annotations.forEach(([first, last], number) => {
        // A week or a month belongs to an annotation that begins within it.
        const within = this.points.flatMap((point, n) => day(point) <= last && (day(point) >= first || (this.points[n + 1] && day(this.points[n + 1]) > first)) ? [n] : []);
        if (!within.length) return;
        const at = (moment) => Math.min(Math.max(plot.valToPos(moment, "x", true), bbox.left), bbox.left + bbox.width);
        const left = at(this.points[within[0]].at), right = Math.max(at(Math.min(ends(within.at(-1)), plot.scales.x.max)), left + 6 * ratio), y = bbox.top + (5 + 11 * (number % 3)) * ratio;
        ctx.beginPath();
        ctx.moveTo(left, y);
        ctx.lineTo(right, y);
        ctx.stroke();
        ctx.fillText(String(number + 1), right + 3 * ratio, y); // at its end, because a number at its begin would be read with those of the axis
      });
      ctx.restore();
    }
    latest() { return this.points.findLastIndex((point) => point.begun && !point.partial && point.value !== null); }
    read(number) {
      const point = this.points?.[number];
      if (!point) return;
      const { tr, full } = galatea, text = (value) => value === null || value === undefined ? tr("unknown") : full(value, this.element.dataset);
      const now = point.begun ? `${text(point.value)}, ${tr(point.final ? "final" : "provisional")}${point.partial ? `, ${tr("so far")}` : ""}` : tr("not started");
      const before = this.element.dataset.beforeName ? ` · ${this.element.dataset.beforeName} ${text(point.before)}` : "";
      this.readout.textContent = `${point.label} · ${now}${before}`;
    }
    // What a point is made of: the receipts of an hour, the hours of a day.
    open(number) {
      const point = this.points?.[number];
      if (point?.begun) location.assign(this.element.dataset.drill + encodeURIComponent(this.isHourly ? point.start : point.date));
    }
    // The plot on the ground of its card, as a picture.
    save(name) {
      const canvas = this.element.querySelector("canvas");
      if (!canvas) return;
      const picture = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height }), pen = picture.getContext("2d");
      pen.fillStyle = colour("--sheet");
      pen.fillRect(0, 0, picture.width, picture.height);
      pen.drawImage(canvas, 0, 0);
      picture.toBlob((blob) => {
        const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${name}.png` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      });
    }
  }
  const drawn = new Map();
  document.querySelectorAll("[data-plot]").forEach((element) => drawn.set(element.closest("figure").id, new Chart(element)));
  document.querySelectorAll("[data-save]").forEach((button) => {
    button.hidden = !drawn.has(button.dataset.save);
    button.addEventListener("click", () => drawn.get(button.dataset.save)?.save(document.title.split(" · ")[0]));
  });
})();
