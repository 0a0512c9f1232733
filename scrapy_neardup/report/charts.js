// Bars, drawn for the width that there is.

/** Draw now and whenever the width of a box changes. */
function drawn(box, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (!box.clientWidth || box.clientWidth === width) return;
    width = box.clientWidth;
    box.replaceChildren(draw(width));
  }).observe(box);
  return box;
}

/** The least round number, 1, 2 or 5 and zeros, that is not below a value. */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/** The lines of a grid that reaches to a value: some three to five, at round numbers. */
function gridOf(most) {
  const step = round(most / 4);
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, n) => n * step);
}

/** One bar: `title` is said of it, what is not zero is seen. */
function bar(x, base, width, height, title) {
  const tall = height > 0 ? Math.max(height, 2) : 0;
  return svg(
    "rect",
    { class: "bar", x: x.toFixed(1), y: (base - tall).toFixed(1), width: width.toFixed(1), height: tall.toFixed(1) },
    svg("title", {}, title),
  );
}

/** A small chart without axes. */
function spark(values, titles, label) {
  const HEIGHT = 56;
  return drawn(el("div", { class: "spark" }), (width) => {
    const top = Math.max(...values, 1);
    const step = Math.min(width / values.length, 48);
    const bars = values.map((value, n) =>
      bar(n * step, HEIGHT, Math.max(step - 2, 1), (value / top) * HEIGHT, titles[n]));
    return svg("svg", { width, height: HEIGHT + 1, role: "img", "aria-label": label }, ...bars,
      svg("line", { class: "axis", x1: 0, x2: width, y1: HEIGHT + 0.5, y2: HEIGHT + 0.5 }));
  });
}

/** A histogram. `tick(n)`: what stands below bar n, or ""; `shift`: where, 0 its left edge; `name(n)`: what it counts. */
function histogram(values, { tick, shift, name }, label) {
  const [LEFT, TOP, HEIGHT, FOOT] = [48, 10, 150, 22];
  return drawn(el("div"), (width) => {
    const base = TOP + HEIGHT;
    const step = (width - LEFT - 14) / values.length;
    const grid = gridOf(Math.max(...values));
    const tall = (value) => (value / grid[grid.length - 1]) * HEIGHT;
    const lines = grid.flatMap((value) => {
      const y = base - tall(value) + 0.5;
      return [
        svg("line", { class: value ? "grid" : "axis", x1: LEFT, x2: width, y1: y, y2: y }),
        svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, count(value)),
      ];
    });
    const bars = values.map((value, n) =>
      bar(LEFT + n * step + 1, base, Math.max(step - 2, 1), tall(value), `${name(n)}: ${count(value)}`));
    const ticks = [...values, 0].map((_, n) =>
      svg("text", { x: LEFT + (n + shift) * step, y: base + FOOT - 6, "text-anchor": "middle" }, tick(n)));
    return svg("svg", { width, height: base + FOOT, role: "img", "aria-label": label }, ...lines, ...bars, ...ticks);
  });
}

/** The same numbers as a table, for those who don't see the chart. */
function asTable(caption, title, values, name) {
  const filled = values.map((_, n) => n).filter((n) => values[n]);
  const rows = table(caption, [[title, ""], ["Copies", "number"]], filled.length,
    (n) => [name(filled[n]), count(values[filled[n]])], 100);
  return el("details", {}, el("summary", {}, "As a table"), rows);
}

/** Draw the distribution of the copies over a measure. `bin(value)`: the number of its bar; the rest as in `histogram`. */
function distribution(box, measure, bins, bin, shape) {
  const values = new Array(bins).fill(0);
  let known = 0;
  for (const value of measure) {
    if (value === UNKNOWN) continue;
    values[Math.min(bin(value), bins - 1)]++;
    known++;
  }
  const title = box.querySelector("figcaption").textContent;
  if (!known) return box.append(el("p", { class: "hint" }, "No copy has one."));
  const label = `${title} of ${plural(known, "copy")}; the same is in the table below`;
  return box.append(histogram(values, shape, label), asTable(title, title, values, shape.name));
}
