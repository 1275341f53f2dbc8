"use strict";
/* Draws the charts of the report as SVG from the numbers in #eunomia-data. All text goes in as text, never as markup. */
(() => {
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const data = JSON.parse(document.getElementById("eunomia-data").textContent);
  const namespace = document.getElementById("svg").namespaceURI;

  /* ---- numbers as people read them (the same text as number_format.py) ---- */
  const grouped = (value, places) =>
    value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });

  function threeDigits(value) {
    const size = Math.abs(value);
    if (size >= 100 || value === 0) return grouped(value, 0);
    return grouped(value, size >= 10 ? 1 : size >= 1 ? 2 : Math.min(6, 2 - Math.floor(Math.log10(size))));
  }

  function duration(seconds, digits) {
    const size = Math.abs(seconds);
    if (size < 100) return digits(seconds) + " s";
    if (size < 100 * MINUTE) return digits(seconds / MINUTE) + " min";
    if (size < 2 * DAY) return digits(seconds / HOUR) + " h";
    return digits(seconds / DAY) + " d";
  }

  function shown(value, unit) {
    if (value === null || value === undefined) return "–";
    if (unit === "s") return duration(value, threeDigits);
    if (unit === "share") return grouped(100 * value, 1) + " %";
    if (unit === "usd") return "$" + grouped(value, value >= 1000 ? 0 : 2);
    if (unit === "count") return Number.isInteger(value) ? grouped(value, 0) : threeDigits(value);
    return unit === "ratio" ? threeDigits(value) : String(value);
  }

  const short = (value) => grouped(value, 0) === "0" && value !== 0 ? String(Number(value.toPrecision(2))) :
    value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : 0 });

  function tickLabel(value, unit) {
    if (unit === "s") return value === 0 ? "0" : timeTick(value);
    if (unit === "share") return short(100 * value) + " %";
    return (unit === "usd" ? "$" : "") + (value >= 1e6 ? short(value / 1e6) + " M" : value >= 1e5 ? short(value / 1e3) + " k" : short(value));
  }

  function timeTick(seconds) {
    for (const [size, name] of [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"]])
      if (seconds >= size && Math.abs(seconds / size - Math.round(2 * seconds / size) / 2) < 1e-9)
        return short(seconds / size) + " " + name;
    return seconds < MINUTE ? short(seconds) + " s" : duration(seconds, short);
  }

  /* ---- scales and ticks ---- */
  const TIME_STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 50 * DAY, 100 * DAY, 200 * DAY, 500 * DAY];
  const TIME_LADDER = [0.001, 0.01, 0.1, 1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 100 * DAY, 1000 * DAY];
  const TIME_RUNGS = [2, 5, 20, 30, 120, 300, 1200, 1800, 2 * HOUR, 3 * HOUR, 12 * HOUR, 2 * DAY, 4 * DAY, 14 * DAY, 60 * DAY];

  function linearTicks(low, high, unit, most) {
    const rough = (high - low) / Math.max(most, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    let step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
    if (unit === "s" && rough > 0.5) step = TIME_STEPS.find((k) => k >= rough) || step;
    if (unit === "count") step = Math.max(step, 1);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  }

  function logTicks(low, high, unit, most) {
    const powers = [], rungs = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
      powers.push(Number((10 ** p).toPrecision(1)));
      rungs.push(...[2, 5].map((k) => Number((k * 10 ** p).toPrecision(1))));
    }
    const inside = (ticks) => ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    const main = inside(unit === "s" ? TIME_LADDER : powers), more = inside(unit === "s" ? TIME_RUNGS : rungs);
    const all = [...main, ...more].sort((a, b) => a - b);
    const ticks = all.length <= most ? all : main;
    const skip = Math.ceil(ticks.length / Math.max(most, 2));
    return ticks.filter((_, k) => k % skip === 0);
  }

  function scaleOf(axis, values, from, to, most) {
    const known = values.filter((value) => value !== null && (axis.scale !== "log" || value > 0));
    let low = axis.low ?? Math.min(...known), high = axis.high ?? Math.max(...known);
    if (!known.length) [low, high] = [axis.low ?? 1, axis.high ?? 2];
    if (!(high > low)) axis.scale === "log" ? [low, high] = [low / 2, low * 2] : [low, high] = [low, low + (low || 1)];
    const log = axis.scale === "log", turn = log ? Math.log : (value) => value;
    const across = (turn(high) - turn(low)) || 1;
    const place = (value) => from + (to - from) * (turn(value) - turn(low)) / across;
    const back = (pixel) => { const t = turn(low) + across * (pixel - from) / (to - from); return log ? Math.exp(t) : t; };
    return { low, high, place, back, ticks: (log ? logTicks : linearTicks)(low, high, axis.unit, most) };
  }

  /* ---- elements ---- */
  function svg(name, attributes, parent) {
    const element = document.createElementNS(namespace, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (parent) parent.append(element);
    return element;
  }

  function html(name, className, parent, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  const colour = (style) => "s" + style % 8;
  const dashes = (style) => "d" + (style + Math.floor(style / 8)) % 8;
  const line = (parent, name, x1, y1, x2, y2) => svg("line", { class: name, x1, y1, x2, y2 }, parent);

  function label(parent, text, x, y, anchor, width, name) {
    const fits = Math.max(1, Math.floor(width / 6.6)), letters = Array.from(text);
    const element = svg("text", { x, y, "text-anchor": anchor, class: name || "" }, parent);
    element.textContent = letters.length > fits ? letters.slice(0, Math.max(1, fits - 1)).join("") + "…" : text;
    return element;
  }

  function swatch(kind, style, parent) {
    const icon = svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true", class: colour(style) }, parent);
    if (kind === "bars") bar(icon, style, 5, 0, 16, 12);
    else svg("path", { class: "curve " + dashes(style), d: "M0 6H26" }, icon);
  }

  function bar(parent, style, x, y, width, height) {
    const group = svg("g", { class: colour(style) }, parent);
    svg("rect", { class: "bar ground", x, y, width, height }, group);
    const hatching = style % 4, gap = 7;
    let d = "";
    if (hatching === 1 || hatching === 3)
      for (let t = gap; t < width + height; t += gap)
        d += `M${x + Math.min(t, width)} ${y + Math.max(0, t - width)}L${x + Math.max(0, t - height)} ${y + Math.min(t, height)}`;
    if (hatching === 2) for (let t = gap; t < height; t += gap) d += `M${x} ${y + t}H${x + width}`;
    if (d) svg("path", { class: "hatch", d }, group);
  }

  /* ---- one panel ---- */
  function drawPanel(chart, panel, box, hidden, domain) {
    const width = Math.max(240, Math.round(box.clientWidth)), many = chart.panels.length > 1;
    const height = many ? 210 : Math.round(Math.min(320, Math.max(230, width * 0.55)));
    const edge = { left: 58, right: 14, top: 24, bottom: 42 };
    const series = panel.series.filter((one) => !hidden.has(one.name));
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img",
      "aria-label": `${chart.title} ${panel.title}. ${chart.y.label} against ${chart.x.label}. Arrow keys read values.` });
    const plot = { left: edge.left, right: width - edge.right, top: edge.top, bottom: height - edge.bottom };
    const bars = chart.kind === "bars";
    const heights = series.flatMap((one) => [...one.y, ...(one.high || [])]);
    const yAxis = chart.y.high === null ? { ...chart.y, high: 1.08 * Math.max(0, ...heights) } : chart.y;
    const y = scaleOf(yAxis, heights, plot.bottom, plot.top, bars || many ? 4 : 5);
    const x = bars ? bands(chart, series, plot) : scaleOf(chart.x, domain, plot.left, plot.right, Math.max(3, Math.floor((plot.right - plot.left) / 68)));
    if (chart.kind === "line") x.ticks = [...new Set(domain)].sort((a, b) => a - b).filter((_, k, all) => k % Math.ceil(all.length / 8) === 0);
    drawAxes(root, chart, plot, x, y, bars);
    if (bars) series.forEach((one, place) => drawBars(root, chart, one, place, x, y));
    else series.forEach((one) => drawCurve(root, chart, one, x, y));
    box.querySelector("svg")?.remove();
    box.prepend(root);
    const heading = box.querySelector("h4");
    if (heading) box.prepend(heading);
    listen(root, box, chart, panel, series, plot, x, y, width);
  }

  function drawAxes(root, chart, plot, x, y, bars) {
    label(root, chart.y.label, 2, 12, "start", plot.right);
    for (const tick of y.ticks) {
      line(root, "grid", plot.left, y.place(tick), plot.right, y.place(tick));
      label(root, tickLabel(tick, chart.y.unit), plot.left - 6, y.place(tick) + 4, "end", 60);
    }
    for (const tick of x.ticks) {
      line(root, "grid", x.place(tick), plot.top, x.place(tick), plot.bottom);
      const anchor = x.place(tick) > plot.right - 12 ? "end" : "middle";
      label(root, tickLabel(tick, chart.x.unit), x.place(tick) + (anchor === "end" ? 10 : 0), plot.bottom + 16, anchor, 70);
    }
    line(root, "axis", plot.left, plot.bottom, plot.right, plot.bottom);
    label(root, bars && chart.categories.length === 1 ? "" : chart.x.label, (plot.left + plot.right) / 2, plot.bottom + 35, "middle", plot.right);
    if (chart.mark && chart.mark[0] >= x.low && chart.mark[0] <= x.high) {
      const at = x.place(chart.mark[0]);
      line(root, "mark", at, plot.top, at, plot.bottom);
      const before = plot.right - at < 70;
      label(root, chart.mark[1], at + (before ? -4 : 4), plot.bottom - 6, before ? "end" : "start", 90);
    }
  }

  function bands(chart, series, plot) {
    const count = Math.max(1, chart.categories.length), band = (plot.right - plot.left) / count;
    const each = Math.min(64, band * 0.84 / Math.max(1, series.length));
    const middle = (category) => plot.left + band * (category + 0.5);
    const longest = Math.max(0, ...series.flatMap((one) => one.y.map((value) => shown(value, chart.y.unit).length)));
    return { band, each, count, middle, room: each >= 6.6 * longest, bottom: plot.bottom, low: 0, high: count, ticks: [],
      start: (category, place) => middle(category) + each * (place - series.length / 2) };
  }

  function drawBars(root, chart, one, place, x, y) {
    one.x.forEach((category, k) => {
      const left = x.start(category, place), width = Math.max(1, x.each - 2);
      const top = one.y[k] === null ? x.bottom : y.place(one.y[k]);
      if (one.y[k] !== null) bar(root, one.style, left + 1, top, width, Math.max(0, x.bottom - top));
      if (one.high && one.high[k] !== one.low[k]) line(svg("g", { class: colour(one.style) }, root), "axis", left + x.each / 2, y.place(one.low[k]), left + x.each / 2, y.place(one.high[k]));
      const text = one.y[k] === null ? "" : shown(one.y[k], chart.y.unit);
      if (x.room) label(root, text, left + x.each / 2, top - 5, "middle", 200, "value");
      if (x.count === 1 && x.each >= 28) label(root, one.name, left + x.each / 2, x.bottom + 16, "middle", x.each);
      if (x.count > 1 && place === 0) label(root, chart.categories[category], x.middle(category), x.bottom + 16, "middle", x.band - 4);
    });
  }

  function drawBand(group, one, x, y) {
    const point = (k, end) => `${x.place(Math.max(one.x[k], x.low)).toFixed(1)} ${y.place(end[k]).toFixed(1)}`;
    const stretch = [];
    const close = () => {
      if (stretch.length > 1) {
        const there = stretch.map((k) => point(k, one.high)), back = [...stretch].reverse().map((k) => point(k, one.low));
        svg("path", { class: "band", d: `M${[...there, ...back].join("L")}Z` }, group);
      }
      stretch.length = 0;
    };
    one.high.forEach((end, k) => end === null ? close() : stretch.push(k));
    close();
  }

  function drawCurve(root, chart, one, x, y) {
    const group = svg("g", { class: colour(one.style) }, root);
    if (one.high && chart.kind === "line") drawBand(group, one, x, y);
    let d = "", open = false;
    one.x.forEach((at, k) => {
      if (one.y[k] === null) { open = false; return; }
      const px = x.place(Math.max(at, x.low)).toFixed(1), py = y.place(one.y[k]).toFixed(1);
      const rises = chart.kind === "cdf" && !(at <= chart.x.low);  // values below a fixed left end are in the first point
      d += !open ? (rises ? `M${px} ${y.place(0)}V${py}` : `M${px} ${py}`) : chart.kind === "line" ? `L${px} ${py}` : `H${px}V${py}`;
      open = true;
      if (one.high && one.high[k] !== null) line(group, "span", px, y.place(one.low[k]), px, y.place(one.high[k]));
    });
    if (chart.kind === "cdf" && open) d += `H${x.place(x.high)}`;
    svg("path", { class: "curve " + dashes(one.style), d }, group);
    if (chart.kind === "line") one.x.forEach((at, k) => {
      if (one.y[k] !== null) svg("circle", { class: "dot", cx: x.place(at), cy: y.place(one.y[k]), r: 4 }, group);
    });
  }

  /* ---- reading values ---- */
  function held(one, at) {
    let low = -1, high = one.x.length - 1;
    while (low < high) { const middle = Math.ceil((low + high) / 2); if (one.x[middle] <= at) low = middle; else high = middle - 1; }
    return low;
  }

  function listen(root, box, chart, panel, series, plot, x, y, width) {
    const tip = box.querySelector(".tip"), cross = svg("g", { visibility: "hidden" }, root);
    const points = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const steps = chart.kind === "steps" || chart.kind === "cdf";
    let place = -1;
    const hide = () => { tip.hidden = true; cross.setAttribute("visibility", "hidden"); };
    const show = (pixel) => {
      if (!series.length || !points.length) return;
      const at = steps ? x.back(pixel) : nearest(points, pixel, (p) => chart.kind === "bars" ? x.middle(p) : x.place(p));
      const px = chart.kind === "bars" ? x.middle(at) : x.place(at);
      tip.replaceChildren(html("strong", "", null, chart.kind === "bars" ? chart.categories.length > 1 ? `${chart.x.label}: ${chart.categories[at]}` : chart.title
        : chart.x.unit === "plain" ? `${chart.x.label}: ${at}` : (chart.kind === "cdf" ? "at most " : "at ") + shown(at, chart.x.unit)));
      for (const one of series) {
        const k = steps ? held(one, at) : one.x.indexOf(at);
        const value = k < 0 ? (chart.kind === "cdf" ? 0 : null) : one.y[k], row = html("p", "", tip);
        swatch(chart.kind, one.style, row);
        html("span", "name", row, one.name);
        html("b", "", row, shown(value, chart.y.unit));
        if (one.details && one.details[k]) html("small", "", tip, one.details[k]);
      }
      cross.replaceChildren();
      if (chart.kind !== "bars") line(cross, "cross", px, plot.top, px, plot.bottom);
      cross.setAttribute("visibility", "visible");
      tip.hidden = false;
      const ratio = box.clientWidth / width, left = px * ratio;
      tip.style.left = Math.max(0, left > box.clientWidth / 2 ? left - tip.offsetWidth - 12 : Math.min(left + 12, box.clientWidth - tip.offsetWidth)) + "px";
      const top = root.getBoundingClientRect().top - box.getBoundingClientRect().top;
      tip.style.top = top + plot.top * ratio + 4 + "px";
    };
    const pixelOf = (event) => {
      const area = root.getBoundingClientRect();
      return Math.min(plot.right, Math.max(plot.left, (event.clientX - area.left) * width / area.width));
    };
    root.addEventListener("pointermove", (event) => show(pixelOf(event)));
    root.addEventListener("pointerdown", (event) => show(pixelOf(event)));
    root.addEventListener("pointerleave", hide);
    root.addEventListener("blur", hide);
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const stops = steps ? 48 : points.length - 1;
      place = Math.min(stops, Math.max(0, place + step));
      show(steps ? plot.left + (plot.right - plot.left) * place / stops
        : chart.kind === "bars" ? x.middle(points[place]) : x.place(points[place]));
    });
  }

  const nearest = (points, pixel, placeOf) =>
    points.reduce((best, point) => Math.abs(placeOf(point) - pixel) < Math.abs(placeOf(best) - pixel) ? point : best);

  /* ---- one chart ---- */
  function hang(figure, chart) {
    const plot = figure.querySelector(".plot"), hidden = new Set();
    const panels = html("div", "panels", plot), legend = html("ul", "legend", plot);
    const boxes = chart.panels.map((panel) => {
      const box = html("div", "panel", panels);
      if (panel.title) html("h4", "", box, panel.title);
      const tip = html("div", "tip", box);
      tip.hidden = true;
      tip.setAttribute("role", "status");
      return box;
    });
    const draw = () => {
      if (!plot.clientWidth) return;
      const domain = chart.panels.flatMap((panel) => panel.series.filter((one) => !hidden.has(one.name)).flatMap((one) => one.x));
      if (chart.mark) domain.push(chart.mark[0]);
      chart.panels.forEach((panel, k) => drawPanel(chart, panel, boxes[k], hidden, domain));
    };
    const styles = new Map(chart.panels.flatMap((panel) => panel.series.map((one) => [one.name, one.style])));
    for (const [name, style] of styles) {
      const button = html("button", "", html("li", "", legend));
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      swatch(chart.kind, style, button);
      html("span", "", button, name);
      button.addEventListener("click", () => {
        hidden.has(name) ? hidden.delete(name) : hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        draw();
      });
    }
    let drawn = 0;
    new ResizeObserver(() => { if (plot.clientWidth !== drawn) { drawn = plot.clientWidth; draw(); } }).observe(plot);
  }

  const figureByName = new Map([...document.querySelectorAll("figure[data-chart]")].map((one) => [one.dataset.chart, one]));
  for (const chart of data.charts) hang(figureByName.get(chart.name), chart);

  const choice = document.getElementById("load");
  if (choice) {
    const choose = () => document.querySelectorAll("figure[data-load]").forEach((one) => { one.hidden = one.dataset.load !== choice.value; });
    choice.value = String(choice.options.length - 1);
    choice.addEventListener("change", choose);
    choice.closest(".choice").hidden = false;
    choose();
  }
})();
