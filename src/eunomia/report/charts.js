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
    value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0 });

  function tickLabel(value, unit, time) {
    if (unit === "s") return value === 0 ? "0" : time ? short(value / time[0]) + " " + time[1] : timeTick(value);
    if (unit === "share") return short(100 * value) + " %";
    return (unit === "usd" ? "$" : "") + (value >= 1e6 ? short(value / 1e6) + " M" : value >= 1e5 ? short(value / 1e3) + " k" : short(value));
  }

  function timeTick(seconds) {
    for (const [size, name] of [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"]])
      if (seconds >= size && Math.abs(seconds / size - Math.round(2 * seconds / size) / 2) < 1e-9)
        return short(seconds / size) + " " + name;
    return seconds < MINUTE ? short(seconds) + " s" : duration(seconds, short);
  }

  function timeUnit(ticks) { // the largest unit of which the last tick has one, and every tick whole quarters
    const last = ticks[ticks.length - 1];
    return [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"]].find(([size]) =>
      last >= size && ticks.every((tick) => Math.abs(4 * tick / size - Math.round(4 * tick / size)) < 1e-9));
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
    if (all.length < 2) return linearTicks(low, high, unit, most); // a range without two round numbers of the ladder
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
    const ticks = (log ? logTicks : linearTicks)(low, high, axis.unit, most), time = log ? null : timeUnit(ticks);
    return { low, high, place, back, ticks, name: (tick) => tickLabel(tick, axis.unit, time) };
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

  const colour = (style, palette) => (palette === "parts" ? "t" : "s") + style % 8;
  const dashes = (style) => "d" + (style + Math.floor(style / 8)) % 8;
  const line = (parent, name, x1, y1, x2, y2) => svg("line", { class: name, x1, y1, x2, y2 }, parent);

  function label(parent, text, x, y, anchor, width, name) {
    const fits = Math.max(1, Math.floor(width / 6.6)), letters = Array.from(text);
    const element = svg("text", { x, y, "text-anchor": anchor, class: name || "" }, parent);
    element.textContent = letters.length > fits ? letters.slice(0, Math.max(1, fits - 1)).join("") + "…" : text;
    return element;
  }

  function swatch(kind, style, parent, palette) {
    const both = kind === "both", width = both ? 44 : 26;
    const icon = svg("svg", { viewBox: `0 0 ${width} 12`, "aria-hidden": "true", class: colour(style, palette) }, parent);
    if (both) icon.classList.add("both");
    if (both || kind === "bars") bar(icon, style, both ? 0 : 5, 0, both ? 14 : 16, 12, palette);
    if (kind !== "bars") svg("path", { class: "curve " + dashes(style), d: both ? "M18 6H44" : "M0 6H26" }, icon);
    return icon;
  }

  function bar(parent, style, x, y, width, height, palette) {
    const group = svg("g", { class: colour(style, palette) }, parent);
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
    const series = panel.series.filter((one) => !hidden.has(one.name));
    if (chart.kind === "bars" || chart.kind === "forest") return drawRows(chart, panel, series, box, hidden, width);
    const height = many ? 210 : Math.round(Math.min(320, Math.max(230, width * 0.55)));
    const edge = { left: 62, right: 14, top: 24, bottom: 42 };
    const root = frame(chart, panel, width, height, `${chart.y.label} against ${chart.x.label}. Arrow keys read values.`);
    const plot = { left: edge.left, right: width - edge.right, top: edge.top, bottom: height - edge.bottom };
    const heights = series.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]).filter((one) => one !== null);
    const y = scaleOf(padded(chart.y, heights, chart.kind), heights, plot.bottom, plot.top, many ? 4 : 5);
    const x = scaleOf(chart.x, domain, plot.left, plot.right, Math.max(3, Math.floor((plot.right - plot.left) / 68)));
    if (chart.kind === "line") x.ticks = [...new Set(domain)].sort((a, b) => a - b).filter((_, k, all) => k % Math.ceil(all.length / 8) === 0);
    drawAxes(root, chart, plot, x, y);
    series.forEach((one) => drawCurve(root, chart, one, x, y));
    place(box, root);
    listen(root, box, chart, panel, series, plot, x, y, width);
  }

  function frame(chart, panel, width, height, what) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${chart.title} ${panel.title}. ${what}` });
  }

  function place(box, root) {
    box.querySelector("svg.picture")?.remove();
    root.classList.add("picture");
    box.prepend(root);
    const heading = box.querySelector("h4");
    if (heading) box.prepend(heading);
  }

  /* The ends of a y axis: fixed ones stay; a line's axis shows differences and need not begin at 0. */
  function padded(axis, values, kind) {
    const low = Math.min(...values), high = Math.max(...values), room = 0.08 * (high - low || Math.abs(high) || 1);
    const ends = { ...axis };
    if (axis.high === null) ends.high = axis.low === null ? high + room : 1.08 * Math.max(0, ...values);
    if (axis.low === null && kind === "line") ends.low = low > 0 ? Math.max(0, low - room) : low - room;
    return ends;
  }

  function drawAxes(root, chart, plot, x, y) {
    label(root, chart.y.label, 2, 12, "start", plot.right);
    for (const tick of y.ticks) {
      line(root, "grid", plot.left, y.place(tick), plot.right, y.place(tick));
      label(root, y.name(tick), plot.left - 6, y.place(tick) + 4, "end", 60);
    }
    for (const tick of x.ticks) {
      line(root, "grid", x.place(tick), plot.top, x.place(tick), plot.bottom);
      const anchor = x.place(tick) > plot.right - 12 ? "end" : "middle";
      label(root, x.name(tick), x.place(tick) + (anchor === "end" ? 10 : 0), plot.bottom + 16, anchor, 70);
    }
    line(root, "axis", plot.left, plot.bottom, plot.right, plot.bottom);
    label(root, chart.x.label, (plot.left + plot.right) / 2, plot.bottom + 35, "middle", plot.right);
    if (chart.mark && chart.mark[0] >= x.low && chart.mark[0] <= x.high) {
      const at = x.place(chart.mark[0]);
      line(root, "mark", at, plot.top, at, plot.bottom);
      const before = plot.right - at < 70;
      label(root, chart.mark[1], at + (before ? -4 : 4), plot.bottom - 6, before ? "end" : "start", 90);
    }
  }

  /* ---- rows: horizontal bars, and dots with whiskers ---- */
  const LETTER = 6.7;  // width of a character of the text, about
  const CHANGES = [-0.9, -0.75, -0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5, 1, 3, 9, 30];
  const signedText = (part) => (part > 10 ? grouped(part + 1, 0) + " times" :
    (part < 0 ? "−" : "+") + grouped(Math.abs(100 * part), Math.abs(part) >= 0.1 ? 0 : 1) + " %");

  /* The rows of a panel, each with its height; a heading is a row without a value. */
  function rowsOf(chart, series, hidden) {
    const rows = [], forest = chart.kind === "forest", alone = !forest && chart.categories.length <= 1;
    const text = (one, k) => forest ? forestText(one, k) : shown(one.y[k], chart.y.unit);
    const add = (one, k, name) => rows.push({ one, k, name, value: text(one, k), height: name ? 34 : 16 });
    if (alone) series.forEach((one) => one.x.forEach((_, k) => one.y[k] !== null && add(one, k, one.name)));
    else if (forest) for (const one of series) {
      const known = one.x.map((_, k) => k).filter((k) => one.y[k] !== null && !hidden.has(chart.categories[one.x[k]]));
      if (known.length && one.name) rows.push({ heading: one.name, height: 24 });
      known.forEach((k) => add(one, k, chart.categories[one.x[k]]));
    } else chart.categories.forEach((category, at) => {
      const inside = series.map((one) => [one, one.x.indexOf(at)]).filter(([one, k]) => k >= 0 && one.y[k] !== null);
      if (inside.length) rows.push({ heading: category, height: 24 });
      inside.forEach(([one, k]) => add(one, k, ""));
    });
    return rows;
  }

  function forestText(one, k) {
    const ends = one.low && one.low[k] !== null ? `, ${signedText(one.low[k])} to ${signedText(one.high[k])}` : "";
    return signedText(one.y[k]) + ends;
  }

  /* Where names and values of a forest stand: beside the whiskers, over them, or over them on two lines. */
  function layForest(rows, width) {
    const [name, value] = ["name", "value"].map((key) => LETTER * Math.max(4, ...rows.map((row) => row[key].length)) + 8);
    const beside = width - name - value >= 160;
    for (const row of rows) {
      row.beside = beside;
      row.split = !beside && (row.name.length + row.value.length + 2) * LETTER > width;
      row.height = beside ? 24 : row.split ? 48 : 34;
    }
    return beside ? { left: name + 4, right: width - value - 8 } : { left: 8, right: Math.max(90, width - 12) };
  }

  function drawRows(chart, panel, series, box, hidden, width) {
    const rows = rowsOf(chart, series, hidden), forest = chart.kind === "forest", bottom = 36;
    const shownRows = rows.filter((row) => row.one), longest = Math.max(4, ...shownRows.map((row) => row.value.length));
    const ends = forest ? layForest(shownRows, width) : { left: 8, right: Math.max(90, width - 22 - LETTER * longest) };
    const inner = rows.reduce((sum, row) => sum + row.height, 0), height = Math.max(60, inner + bottom + 8);
    const root = frame(chart, panel, width, height, `${forest ? chart.x.label : chart.y.label}. Arrow keys read values.`);
    const plot = { ...ends, top: 4, bottom: inner + 4 };
    const x = forest ? changeScale(shownRows, plot) : barScale(chart, shownRows, plot);
    for (const [at, text] of x.ticks) {
      line(root, at === x.zero ? "axis" : "grid", at, plot.top, at, plot.bottom);
      const edge = Math.abs(at - plot.right) < 20 ? "end" : at < 24 ? "start" : "middle";
      label(root, text, edge === "end" ? at + 8 : edge === "start" ? at - 4 : at, plot.bottom + 15, edge, 80);
    }
    label(root, forest ? chart.x.label : chart.categories.length > 1 ? `${chart.y.label}, by ${chart.x.label}` : chart.y.label, plot.left, plot.bottom + 31, "start", width - 16);
    let top = plot.top;
    for (const row of rows) {
      row.top = top;
      if (row.heading !== undefined) label(root, row.heading, 4, top + 18, "start", width - 8, "heading");
      else forest ? drawDot(root, row, x, width) : drawBar(root, chart, row, x, plot);
      top += row.height;
    }
    place(box, root);
    listenRows(root, box, chart, panel, shownRows, width);
  }

  function barScale(chart, rows, plot) {
    const most = Math.max(0, ...rows.map((row) => Math.max(row.one.y[row.k], row.one.high ? row.one.high[row.k] ?? 0 : 0)));
    const scale = scaleOf({ ...chart.y, low: 0, high: chart.y.high ?? (most || 1) }, [0, most], plot.left, plot.right, Math.max(2, Math.floor((plot.right - plot.left) / 90)));
    return { place: scale.place, zero: plot.left, ticks: scale.ticks.map((tick) => [scale.place(tick), scale.name(tick)]) };
  }

  function changeScale(rows, plot) {
    const ends = rows.flatMap((row) => [row.one.y[row.k], ...(row.one.low ? [row.one.low[row.k], row.one.high[row.k]] : [])]).filter((end) => end !== null);
    const turn = (part) => Math.log(1 + Math.max(-0.97, Math.min(part, 30)));
    const low = Math.min(turn(-0.1), ...ends.map(turn)), high = Math.max(turn(0.1), ...ends.map(turn)), room = 0.04 * (high - low);
    const place = (part) => plot.left + (plot.right - plot.left) * (turn(part) - low + room) / (high - low + 2 * room);
    let last = -100;
    const ticks = [0, ...CHANGES.filter((part) => part)].map((part) => [place(part), part]).sort((a, b) => a[0] - b[0])
      .filter(([at, part]) => at >= plot.left && at <= plot.right && (part === 0 || Math.abs(at - place(0)) > 52))
      .filter(([at, part]) => (part === 0 || at - last > 52) && ((last = at), true))
      .map(([at, part]) => [at, part === 0 ? "0 %" : signedText(part)]);
    return { place, zero: place(0), ticks };
  }

  function drawBar(root, chart, row, x, plot) {
    const { one, k } = row, thick = row.name ? 14 : 12, top = row.top + row.height - thick - 2, y = top + thick / 2;
    if (row.name) label(root, row.name, plot.left - 4, top - 5, "start", 1e4, "value");
    const end = x.place(Math.max(0, one.y[k]));
    bar(root, one.style, plot.left, top, Math.max(1, end - plot.left), thick, chart.palette);
    let after = end;
    if (one.high && one.high[k] !== null && one.high[k] !== one.low[k]) {
      after = Math.max(end, x.place(one.high[k]));
      line(root, "whisker", x.place(Math.max(0, one.low[k])), y, after, y);
    }
    label(root, row.value, after + 6, y + 4, "start", 1e4, "value");
  }

  function drawDot(root, row, x, width) {
    const { one, k } = row, y = row.top + row.height - (row.beside ? 12 : 9), tone = one.tones ? one.tones[k] : "noise";
    const first = row.beside ? y + 4 : row.top + 14;
    label(root, row.name, 4, first, "start", 1e4, "value");
    label(root, row.value, row.split ? 4 : width - 8, row.split ? first + 15 : first, row.split ? "start" : "end", 1e4, "value " + tone);
    const group = svg("g", { class: "difference " + tone }, root);
    if (one.low && one.low[k] !== null) line(group, "whisker", x.place(one.low[k]), y, x.place(one.high[k]), y);
    if (tone === "better" || tone === "worse") svg("circle", { cx: x.place(one.y[k]), cy: y, r: 5 }, group);
    else svg("circle", { class: "open", cx: x.place(one.y[k]), cy: y, r: 4.5 }, group);
  }

  function listenRows(root, box, chart, panel, rows, width) {
    const tip = box.querySelector(".tip");
    let at = -1;
    const hide = () => { tip.hidden = true; };
    const show = (k) => {
      const row = rows[k];
      if (!row) return;
      at = k;
      const name = row.name || row.one.name, where = chart.kind === "forest" ? panel.title : chart.categories.length > 1 ? `${chart.x.label}: ${chart.categories[row.one.x[row.k]]}` : chart.title;
      tip.replaceChildren(html("strong", "", null, where));
      const text = html("p", "", tip);
      html("span", "name", text, name);
      html("b", "", text, row.value);
      if (row.one.details && row.one.details[row.k]) html("small", "", tip, row.one.details[row.k]);
      tip.hidden = false;
      tip.style.left = Math.max(0, box.clientWidth - tip.offsetWidth - 4) + "px";
      const top = root.getBoundingClientRect().top - box.getBoundingClientRect().top;
      tip.style.top = top + (row.top + row.height) * box.clientWidth / width + 2 + "px";
    };
    const rowAt = (event) => {
      const area = root.getBoundingClientRect(), y = (event.clientY - area.top) * width / area.width;
      return rows.findIndex((row) => y >= row.top && y < row.top + row.height);
    };
    const point = (event) => { const k = rowAt(event); k < 0 ? hide() : show(k); };
    root.addEventListener("pointermove", point);
    root.addEventListener("pointerdown", point);
    root.addEventListener("pointerleave", hide);
    root.addEventListener("blur", hide);
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step || !rows.length) return;
      event.preventDefault();
      show(Math.min(rows.length - 1, Math.max(0, at + step)));
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
    const group = svg("g", { class: colour(one.style, chart.palette) }, root);
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
      const at = steps ? x.back(pixel) : nearest(points, pixel, x.place);
      const px = x.place(at);
      tip.replaceChildren(html("strong", "", null, chart.x.unit === "plain" ? `${chart.x.label}: ${at}` : (chart.kind === "cdf" ? "at most " : "at ") + shown(at, chart.x.unit)));
      for (const one of series) {
        const k = steps ? held(one, at) : one.x.indexOf(at);
        const value = k < 0 ? (chart.kind === "cdf" ? 0 : null) : one.y[k], row = html("p", "", tip);
        swatch(chart.kind, one.style, row, chart.palette);
        html("span", "name", row, one.name);
        html("b", "", row, shown(value, chart.y.unit));
        if (one.details && one.details[k]) html("small", "", tip, one.details[k]);
      }
      cross.replaceChildren();
      line(cross, "cross", px, plot.top, px, plot.bottom);
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
      show(steps ? plot.left + (plot.right - plot.left) * place / stops : x.place(points[place]));
    });
  }

  const nearest = (points, pixel, placeOf) =>
    points.reduce((best, point) => Math.abs(placeOf(point) - pixel) < Math.abs(placeOf(best) - pixel) ? point : best);

  /* ---- which runs are shown, in all charts of runs at once ---- */
  const BEST = 5, MANY = 8;
  const runs = data.best || [];                 // names of the compared runs, best first
  const shared = { hidden: new Set(runs.length > MANY ? runs.slice(BEST) : []), draws: [], buttons: new Map() };
  const isShared = (chart) => chart.kind === "forest" || chart.panels.every((panel) => panel.series.every((one) => runs.includes(one.name)));

  function show(names, visible) {
    for (const name of names) {
      visible ? shared.hidden.delete(name) : shared.hidden.add(name);
      shared.buttons.get(name)?.setAttribute("aria-pressed", String(visible));
    }
    shared.draws.forEach((draw) => draw());
  }

  function legendOfRuns(list) {
    const styles = new Map(data.charts.filter(isShared).flatMap((chart) => chart.panels.flatMap((panel) => panel.series.map((one) => [one.name, one.style]))));
    for (const name of runs) {
      if (!styles.has(name)) continue;
      const button = html("button", "", html("li", "", list));
      button.type = "button";
      button.setAttribute("aria-pressed", String(!shared.hidden.has(name)));
      swatch("both", styles.get(name), button);
      html("span", "", button, name);
      shared.buttons.set(name, button);
      button.addEventListener("click", () => show([name], shared.hidden.has(name)));
    }
    list.hidden = shared.buttons.size < 2;
    const more = document.getElementById("more-runs");
    if (!more || runs.length <= MANY) return;
    more.hidden = false;
    for (const [text, names] of [[`best ${BEST}`, runs.slice(0, BEST)], [`all ${runs.length}`, runs], ["none", []]]) {
      const button = html("button", "", more, text);
      button.type = "button";
      button.addEventListener("click", () => { show(runs, false); show(names, true); });
    }
  }

  /* ---- one chart ---- */
  function hang(figure, chart) {
    const plot = figure.querySelector(".plot"), common = isShared(chart), hidden = common ? shared.hidden : new Set();
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
      chart.panels.forEach((panel, k) => {
        boxes[k].hidden = runs.includes(panel.title) && shared.hidden.has(panel.title);
        if (!boxes[k].hidden) drawPanel(chart, panel, boxes[k], hidden, domain);
      });
    };
    const styles = common ? [] : new Map(chart.panels.flatMap((panel) => panel.series.map((one) => [one.name, one.style])));
    for (const [name, style] of styles) {
      const button = html("button", "", html("li", "", legend));
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      swatch(chart.kind, style, button, chart.palette);
      html("span", "", button, name);
      button.addEventListener("click", () => {
        hidden.has(name) ? hidden.delete(name) : hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        draw();
      });
    }
    legend.hidden = !legend.children.length;
    shared.draws.push(draw);
    saveButtons(figure, chart, boxes);
    let drawn = plot.clientWidth;
    draw();
    new ResizeObserver(() => { if (plot.clientWidth !== drawn) { drawn = plot.clientWidth; requestAnimationFrame(draw); } }).observe(plot);
  }

  /* ---- saving ---- */
  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linejoin", "font-size", "font-family", "font-weight", "text-anchor", "paint-order"];

  function saveButtons(figure, chart, boxes) {
    const bar = html("p", "save", figure, "Save ");
    for (const [form, make] of [["PNG", png], ["SVG", async (...all) => new Blob([picture(...all)[0]], { type: "image/svg+xml" })], ["CSV", async (one) => new Blob([csv(chartRows(one))], { type: "text/csv" })]]) {
      const button = html("button", "", bar, form);
      button.type = "button";
      button.setAttribute("aria-label", `Save ${chart.title} as ${form}`);
      button.addEventListener("click", async () => download(await make(chart, boxes), `${chart.name}.${form.toLowerCase()}`));
    }
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /* Return a chart as one SVG text with its styles in it, its width and its height. */
  function picture(chart, boxes) {
    const shownBoxes = boxes.filter((box) => !box.hidden), own = getComputedStyle(document.body);
    const width = Math.max(...shownBoxes.map((box) => box.querySelector("svg.picture").viewBox.baseVal.width), 240) + 16;
    const root = svg("svg", { width, "font-family": own.fontFamily });
    const paper = svg("rect", { width, fill: own.backgroundColor }, root);
    let y = 26;
    const write = (text, x, size, weight) => { svg("text", { x, y, fill: own.color, "font-size": size, "font-weight": weight || "normal" }, root).textContent = text; };
    write(chart.load === null ? chart.title : `${chart.title} at load ${chart.load}`, 8, 15, "bold");
    chart.panels.forEach((panel, k) => {
      if (boxes[k].hidden) return;
      y += 10;
      if (panel.title) { y += 12; write(panel.title, 8, 12, "bold"); y += 4; }
      const drawn = boxes[k].querySelector("svg.picture"), group = svg("g", { transform: `translate(8 ${y})` }, root);
      for (const child of drawn.children) group.append(styled(child));
      y += drawn.viewBox.baseVal.height;
    });
    const names = new Map(chart.panels.flatMap((panel) => panel.series.map((one) => [one.name, one.style])));
    let x = 8;
    if (chart.kind !== "forest" && (chart.kind !== "bars" || chart.categories.length > 1)) for (const [name, style] of names) {
      if (isShared(chart) && shared.hidden.has(name)) continue;
      const wide = 40 + 7 * name.length;
      if (x + wide > width && x > 8) x = 8, y += 18;
      const icon = swatch(chart.kind, style, document.getElementById("svg"), chart.palette), group = svg("g", { transform: `translate(${x} ${y})` }, root);
      for (const child of icon.children) group.append(styled(child));
      icon.remove();
      y += 10; write(name, x + 32, 12); y -= 10;
      x += wide;
    }
    const height = y + 24;
    root.setAttribute("height", height);
    paper.setAttribute("height", height);
    return [new XMLSerializer().serializeToString(root), width, height];
  }

  function styled(element) {
    const copy = element.cloneNode(false);
    if (element.nodeType !== 1) return copy;
    const style = getComputedStyle(element);
    for (const name of KEPT) copy.setAttribute(name, style.getPropertyValue(name));
    copy.removeAttribute("class");
    if (element.getAttribute("visibility") === "hidden") return document.createComment("");
    for (const child of element.childNodes) copy.append(styled(child));
    return copy;
  }

  function png(chart, boxes) {
    const [text, width, height] = picture(chart, boxes), image = new Image(), sharp = 2;
    return new Promise((resolve, reject) => {
      const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
      image.onerror = reject;
      image.onload = () => {
        const canvas = document.createElement("canvas");
        canvas.width = sharp * width;
        canvas.height = sharp * height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        URL.revokeObjectURL(address);
        canvas.toBlob(resolve, "image/png");
      };
      image.src = address;
    });
  }

  function chartRows(chart) {
    const rows = [["panel", "name", chart.x.label, chart.kind === "forest" ? chart.x.label : chart.y.label, "low", "high"]];
    for (const panel of chart.panels) for (const one of panel.series) one.x.forEach((x, k) => {
      const at = chart.categories.length && x < chart.categories.length ? chart.categories[x] : x;
      rows.push([panel.title, one.name, at, one.y[k], one.low ? one.low[k] : null, one.high ? one.high[k] : null]);
    });
    return rows;
  }

  const csv = (rows) => rows.map((row) => row.map((cell) => {
    const text = cell === null || cell === undefined ? "" : String(cell);
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }).join(",")).join("\n") + "\n";

  /* ---- tables: sort by a column, show the best rows first ---- */
  function sortable(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const valueOf = (row, k) => { const cell = row.cells[k]; return cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v === "" ? null : Number(cell.dataset.v); };
    heads.forEach((head, k) => {
      const button = html("button", "sort", null, head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row, at) => [valueOf(row, k), at, row]);
        rows.sort(([a, i], [b, j]) => a === null || b === null ? (a === null) - (b === null) || i - j
          : (typeof a === "number" && typeof b === "number" ? sign * (a - b) : sign * String(a).localeCompare(String(b), "en", { numeric: true })) || i - j);
        body.append(...rows.map((row) => row[2]));
        table.classList.add("sorted");
      });
    });
    const rest = [...body.rows].filter((row) => row.classList.contains("rest"));
    if (!rest.length) return;
    const button = html("button", "more"), count = body.rows.length;
    const label = (open) => { button.textContent = open ? "Show the best rows only" : `Show all ${count} rows`; };
    button.type = "button";
    table.classList.add("few");
    label(false);
    button.addEventListener("click", () => label(!table.classList.toggle("few")));
    table.parentElement.after(button);
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  const saveRuns = document.getElementById("save-runs");
  if (saveRuns && data.runs) {
    const names = [...new Set(data.runs.flatMap((run) => Object.keys(run.summary)))];
    const rows = [["policy", "load", "seed", ...names], ...data.runs.map((run) => [run.label, run.load, run.seed, ...names.map((name) => run.summary[name])])];
    saveRuns.hidden = false;
    saveRuns.addEventListener("click", () => download(new Blob([csv(rows)], { type: "text/csv" }), "runs.csv"));
  }

  const legend = document.getElementById("legend");
  if (legend) legendOfRuns(legend);
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
