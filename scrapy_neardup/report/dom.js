"use strict";
// Elements, numbers and URLs. Strings get into the page as text nodes only, and URLs as links of http(s) only.

const RATE = 10000;
const UNKNOWN = -1;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function button(text, act, attributes = {}) {
  const node = el("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", act);
  return node;
}

/** A URL as people may read it: signs that are not seen, or turn the text around, are spelt out. */
function shown(url) {
  return url.replace(/[\p{Cc}\p{Cf}]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

function link(url) {
  let parsed = null;
  try {
    parsed = new URL(url);
  } catch {
    // no address: text
  }
  if (!parsed || !["http:", "https:"].includes(parsed.protocol)) {
    return el("span", { class: "url" }, url ? shown(url) : "without URL");
  }
  return el("a", { class: "url", href: parsed.href, title: shown(url), rel: "noreferrer noopener", target: "_blank" }, shown(url));
}

const numbers = new Intl.NumberFormat("en");
const count = (value) => numbers.format(value);
const plural = (value, word) => `${count(value)} ${value === 1 ? word : word.replace(/y$/, "ie") + "s"}`;
const rate = (value, digits = 3) => (value === UNKNOWN ? "–" : (value / RATE).toFixed(digits));

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  for (; value >= 999.5 && power < units.length - 1; power++) value /= 1000;
  return `${power && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

/** Seconds since the epoch, as people of this place read them. */
function moment(seconds, length = 16) {
  const time = new Date(seconds * 1000);
  if (Number.isNaN(time.getTime())) return "–";
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, length).replace("T", " ");
}

/** A table that shows `step` rows at first. `columns`: [title, class]; `row(n)`: the cells of row n. On a phone, rows are stacked. */
function table(caption, columns, rows, row, step = 20) {
  const head = el("tr", {}, ...columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)));
  const body = el("tbody");
  const add = () => {
    const from = body.rows.length;
    for (let n = from; n < Math.min(rows, from + step); n++) {
      const cells = row(n).map((cell, place) => el("td", { class: columns[place][1], "data-title": columns[place][0] }, cell));
      body.append(el("tr", {}, ...cells));
    }
    more.hidden = body.rows.length >= rows;
    more.textContent = `Show more of ${count(rows)}`;
  };
  const more = button("", add);
  add();
  const whole = el("table", {}, el("caption", {}, caption), el("thead", {}, head), body);
  // It can be scrolled by itself, so that the page need not be.
  const scrolled = el("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": caption }, whole);
  return el("div", {}, scrolled, more);
}
