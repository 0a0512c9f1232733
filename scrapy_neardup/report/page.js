// Puts the parts together.

const byId = (id) => document.getElementById(id);

function total(column) {
  let sum = 0;
  for (const value of column) sum += value;
  return sum;
}

function drawHead(data) {
  document.title = `Near-duplicates · ${data.store.name}`;
  byId("store").append(shown(data.store.name));
  byId("made").append(`Made ${moment(data.made)}`);
}

function drawTotals(data) {
  const tiles = [
    ["Documents held", count(data.store.documents)],
    ["Clusters", count(data.clusters.degree.length)],
    ["Copies", count(total(data.clusters.degree))],
    ["Size of the copies", bytes(total(data.members.size))],
  ];
  for (const [name, value] of tiles) byId("totals").append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

const SAVINGS = [
  ["documents", "Documents", count],
  ["duplicates", "Duplicates", count],
  ["skipped", "Requests skipped", count],
  ["rescued", "Dead links rescued", count],
  ["bytes", "Bytes saved", bytes],
];
const LAST_RUNS = 60;

function drawRuns(runs, box) {
  const rows = runs.id.length;
  if (!rows) return box.append(el("p", { class: "hint" }, "This store has no statistics of its runs."));
  const last = Math.max(0, rows - LAST_RUNS);
  const charts = SAVINGS.map(([name, title, format]) => {
    const titles = runs.id.map((id, n) => `${shown(id)}: ${format(runs[name][n])}`).slice(last);
    const chart = spark(runs[name].slice(last), titles, `${title} by run; the same is in the table below`);
    return el("figure", {}, el("figcaption", {}, title, el("b", {}, format(total(runs[name])))), chart);
  });
  const columns = [["Run", "name"], ["Spider or command", "name"], ["Started", ""], ["Closed", ""], ...SAVINGS.map(([, title]) => [title, "number"])];
  if (runs.changes.some(Boolean)) columns.push(["Changes", "name"]);
  const shownOf = rows > LAST_RUNS ? `, the last ${LAST_RUNS} of ${count(rows)} drawn` : "";
  return box.append(
    el("p", { class: "hint" }, `In all, and run by run from the oldest${shownOf}.`),
    el("div", { class: "sparks" }, ...charts),
    table("Runs, the newest first", columns, rows, (place) => {
      const n = rows - 1 - place;
      const closed = runs.closed[n] === UNKNOWN ? "not closed" : moment(runs.closed[n]);
      const saved = SAVINGS.map(([name, , format]) => format(runs[name][n]));
      const row = [shown(runs.id[n]), shown(runs.writer[n]) || "–", moment(runs.started[n]), closed, ...saved, runs.changes[n] || "–"];
      return row.slice(0, columns.length);
    }, 10));
}

function drawDistances(data) {
  const { resemblance, hamming } = data.members;
  const BINS = 20;
  const edge = (n) => (n / BINS).toFixed(2);
  distribution(byId("resemblances"), resemblance, BINS, (value) => Math.floor((value * BINS) / RATE),
    { shift: 0, tick: (n) => (n % 4 ? "" : (n / BINS).toFixed(1)), name: (n) => `${edge(n)} to ${edge(n + 1)}` });
  let most = 8;
  for (const value of hamming) if (value > most) most = value;
  const every = Math.ceil(most / 10);
  distribution(byId("hammings"), hamming, most + 1, (value) => value,
    { shift: 0.5, tick: (n) => (n % every || n > most ? "" : n.toString()), name: (n) => n.toString() });
}

class Browser {
  constructor(data) {
    this.clusters = new Clusters(data);
    data.kinds.forEach((name, n) => byId("kind").append(el("option", { value: n }, name)));
    data.detectors.forEach((name, n) => byId("detector").append(el("option", { value: n }, name)));
    let timer = 0;
    byId("filter").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search(), 150);
    });
    byId("filter").addEventListener("submit", (event) => event.preventDefault());
    this.search();
  }

  search() {
    const chosen = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
    this.wanted = { text: byId("text").value.trim().toLowerCase(), kind: chosen("kind"), detector: chosen("detector"),
      order: byId("order").value };
    this.found = this.clusters.find(this.wanted);
    this.last = Math.max(0, Math.ceil(this.found.length / PER_PAGE) - 1);
    this.show(0);
  }

  show(page) {
    this.page = Math.min(Math.max(page, 0), this.last);
    const first = this.page * PER_PAGE;
    const cards = Array.from(this.found.slice(first, first + PER_PAGE), (n) => card(this.clusters, n, this.wanted));
    byId("list").replaceChildren(...cards);
    byId("list").start = first + 1;
    byId("found").textContent = this.status();
    this.pages();
  }

  status() {
    if (!this.clusters.size) return "This store knows no copies.";
    const page = this.last ? `, page ${count(this.page + 1)} of ${count(this.last + 1)}` : "";
    return `${count(this.found.length)} of ${plural(this.clusters.size, "cluster")}${page}`;
  }

  turn(page) {
    this.show(page);
    // The button that was pressed is no more: who uses the keyboard goes on from the top of the list.
    byId("found").focus();
    byId("clusters").scrollIntoView();
  }

  pages() {
    byId("pages").hidden = this.last === 0;
    const go = (text, page) => {
      const made = button(text, () => this.turn(page));
      made.disabled = page < 0 || page > this.last || page === this.page;
      return made;
    };
    const at = el("input", { type: "number", min: 1, max: this.last + 1, value: this.page + 1 });
    at.addEventListener("change", () => this.turn((Math.trunc(at.valueAsNumber) || 1) - 1));
    byId("pages").replaceChildren(go("First", 0), go("Previous", this.page - 1),
      el("label", {}, "Page ", at, ` of ${count(this.last + 1)}`), go("Next", this.page + 1), go("Last", this.last));
  }
}

function draw() {
  const data = JSON.parse(byId("data").textContent);
  byId("data").remove();
  drawHead(data);
  drawTotals(data);
  drawRuns(data.runs, byId("runs"));
  new Browser(data);
  drawHosts(data, byId("map"));
  drawDistances(data);
}

draw();
