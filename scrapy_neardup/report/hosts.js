// The map of hosts: a column of hosts, with an arc from each mirror to its original.

const STATES = ["none learned", "not in force", "in force", "by the settings"];
const NAMED = 3; // such a rule has no figures
const MOST_HOSTS = 30;
const WIDE = 640; // what is said of a host stands beside its name, else below
const SIGN = 7.4; // pixels that a sign may take

/** The strongest edges between two hosts that leave the map readable. They come sorted by strength. */
function strongest(edges) {
  const hosts = new Set();
  const chosen = [];
  for (let n = 0; n < edges.urls.length; n++) {
    const [from, to] = [edges.mirror[n], edges.original[n]];
    const added = new Set([from, to].filter((host) => !hosts.has(host)));
    if (from === to || hosts.size + added.size > MOST_HOSTS) continue;
    added.forEach((host) => hosts.add(host));
    chosen.push(n);
  }
  return chosen;
}

/** Connected groups of hosts. The host with most copies elsewhere comes first, then its neighbours. */
function grouped(edges, chosen) {
  const weight = new Map();
  const near = new Map();
  for (const n of chosen) {
    const [from, to] = [edges.mirror[n], edges.original[n]];
    weight.set(from, weight.get(from) ?? 0);
    weight.set(to, (weight.get(to) ?? 0) + edges.urls[n] + 1);
    near.set(from, [...(near.get(from) ?? []), to]);
    near.set(to, [...(near.get(to) ?? []), from]);
  }
  const left = new Set([...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a)));
  const groups = [];
  for (const first of left) {
    const group = [first];
    left.delete(first);
    for (const host of group) {
      for (const other of near.get(host)) if (left.delete(other)) group.push(other);
    }
    groups.push(group);
  }
  return groups;
}

function ruleText(edges, n) {
  if (!edges.state[n]) return "no rule learned";
  if (edges.state[n] === NAMED) return "rule of the settings";
  return `rule ${STATES[edges.state[n]]}, confidence ${rate(edges.confidence[n])}, ` +
    `${count(edges.agreeing[n])} for, ${count(edges.disagreeing[n])} against`;
}

function edgeText(edges, hosts, n) {
  const [from, to] = [hosts[edges.mirror[n]], hosts[edges.original[n]]].map(shown);
  return `${from} → ${to}: ${plural(edges.urls[n], "copy")}, ${ruleText(edges, n)}${edges.paths[n] && `, paths ${edges.paths[n]}`}`;
}

function ruleNote(edges, n) {
  if (!edges.state[n]) return "";
  if (edges.state[n] === NAMED) return " · by the settings";
  return ` · ${rate(edges.confidence[n], 2)} (${edges.agreeing[n]} : ${edges.disagreeing[n]})`;
}

function cut(text, width, sign) {
  const room = Math.max(4, Math.floor(width / sign));
  return text.length > room ? `${text.slice(0, room - 1)}…` : text;
}

/** How far an arc reaches to the left of the hosts. */
const reachOf = (from, to) => 14 + Math.abs(to - from) * 0.42;

function arc(edges, hosts, n, x, ys) {
  const [from, to] = [ys.get(edges.mirror[n]), ys.get(edges.original[n])];
  const reach = Math.min(x - 6, reachOf(from, to)) / 0.75; // a curve gets that near to its handles
  const width = 1 + Math.min(3, Math.log10(edges.urls[n] + 1));
  // An edge back lies a little apart from the one there.
  const path = `M${x} ${from + 3} C${x - reach} ${from + 3} ${x - reach} ${to - 3} ${x} ${to - 3}`;
  const style = ["plain", "weak", "strong", "strong"][edges.state[n]];
  return svg("g", { class: `edge ${style}` }, svg("title", {}, edgeText(edges, hosts, n)),
    svg("path", { d: path, "stroke-width": width.toFixed(1) }),
    svg("path", { class: "tip", d: `M${x + 1} ${to - 3} l-9 -4.5 v9 z` }));
}

/** A host's name, and where its strongest edge leads. */
function hostLabel(edges, hosts, host, own, x, y, width, longest) {
  const wide = width > WIDE;
  const name = cut(shown(hosts[host]), wide ? longest : width - x - 12, SIGN);
  const parts = [svg("circle", { cx: x + 6, cy: y, r: 4, class: own.length ? "mirror" : "original" }),
    svg("text", { class: "host", x: x + 18, y: y + 4 }, svg("title", {}, shown(hosts[host])), name)];
  if (own.length) {
    const others = own.length > 1 ? `, and to ${own.length - 1} more` : "";
    const n = own[0];
    const text = `${plural(edges.urls[n], "URL")}${ruleNote(edges, n)}${others}`;
    const left = wide ? x + longest + 42 : x + 18;
    parts.push(svg("text", { class: "note", x: left, y: y + (wide ? 4 : 19) }, cut(text, width - left, SIGN)));
  }
  return parts;
}

function arcs(edges, hosts, chosen, width) {
  const row = width > WIDE ? 26 : 40;
  const ys = new Map();
  let y = 16;
  for (const group of grouped(edges, chosen)) {
    for (const host of group) ys.set(host, (y += row) - row);
    y += 12;
  }
  const widest = Math.max(...chosen.map((n) => reachOf(ys.get(edges.mirror[n]), ys.get(edges.original[n]))));
  const x = Math.round(Math.min(widest + 8, width * 0.28));
  const longest = Math.min((width - x) * 0.5, SIGN * Math.max(...[...ys.keys()].map((host) => shown(hosts[host]).length)));
  const labels = [...ys].flatMap(([host, at]) =>
    hostLabel(edges, hosts, host, chosen.filter((n) => edges.mirror[n] === host), x, at, width, longest));
  // Those in force are drawn last, on top.
  const lines = [...chosen].reverse().map((n) => arc(edges, hosts, n, x, ys));
  const label = `${plural(chosen.length, "edge")} between ${plural(ys.size, "host")}; the same is in the table below`;
  return svg("svg", { width, height: y, role: "img", "aria-label": label }, ...lines, ...labels);
}

function legend() {
  const entry = (kind, text) => el("li", {}, svg("svg", { width: 30, height: 12, "aria-hidden": "true" },
    svg("g", { class: `edge ${kind}` }, svg("path", { d: "M0 6 H24", "stroke-width": 2 }),
      svg("path", { class: "tip", d: "M29 6 l-9 -4.5 v9 z" }))), text);
  return el("ul", { class: "legend" }, entry("strong", "rule in force"), entry("weak", "rule not in force"),
    entry("plain", "copies counted, no rule"));
}

function drawHosts(data, box) {
  const { edges, hosts } = data;
  if (!edges.urls.length) return box.append(el("p", { class: "hint" }, "No host mirrors another."));
  const chosen = strongest(edges);
  if (chosen.length) {
    const shownOf = chosen.length < data.pairs
      ? ` The map shows ${count(chosen.length)} of ${plural(data.pairs, "pair")}, the strongest.` : "";
    box.append(
      el("p", { class: "hint" }, `An arrow leads from a mirror to its original, the host whose pages are held. Beside a mirror
        are the number of its URLs that gave a copy and the confidence of the rule (pages for : against).${shownOf}`),
      legend(), drawn(el("div", { class: "map" }), (width) => arcs(edges, hosts, chosen, width)));
  }
  const columns = [["Mirror", "name"], ["Original", "name"], ["Paths", "name"], ["Copies", "number"], ["Rule", ""],
    ["Confidence", "number"], ["For", "number"], ["Against", "number"]];
  const rest = edges.urls.length < data.pairs ? `, the strongest ${count(edges.urls.length)} of ${count(data.pairs)}` : "";
  const known = (value) => (value === UNKNOWN ? "–" : count(value));
  return box.append(table(`Hosts and their mirrors${rest}`, columns, edges.urls.length, (n) => [
    shown(hosts[edges.mirror[n]]), edges.mirror[n] === edges.original[n] ? "the same host" : shown(hosts[edges.original[n]]),
    edges.paths[n] || "equal", count(edges.urls[n]), STATES[edges.state[n]], rate(edges.confidence[n]),
    known(edges.agreeing[n]), known(edges.disagreeing[n])]));
}
