// The clusters: found by words and kinds, shown a page at a time.

const PER_PAGE = 20;
const MEMBERS = 5;

class Clusters {
  constructor(data) {
    this.data = data;
    this.size = data.clusters.degree.length;
    this.starts = new Uint32Array(this.size + 1);
    data.clusters.listed.forEach((listed, n) => { this.starts[n + 1] = this.starts[n] + listed; });
    this.orders = new Map();
  }

  original(cluster) {
    const { origin, path } = this.data.clusters;
    return this.data.origins[origin[cluster]] + path[cluster];
  }

  copy(member, cluster) {
    const { origin, path } = this.data.members;
    return this.data.origins[origin[member]] + (path[member] === 0 ? this.data.clusters.path[cluster] : path[member]);
  }

  /** All URLs in lower case, made at the first search. */
  lower() {
    if (this.lowered) return this.lowered;
    const [originals, copies] = [new Array(this.size), new Array(this.starts[this.size])];
    for (let cluster = 0; cluster < this.size; cluster++) {
      originals[cluster] = this.original(cluster).toLowerCase();
      for (let member = this.starts[cluster]; member < this.starts[cluster + 1]; member++) {
        copies[member] = this.copy(member, cluster).toLowerCase();
      }
    }
    return (this.lowered = { originals, copies });
  }

  /** The wanted copies of a cluster, at most `most`. An original that matches brings all of its copies. */
  members(cluster, wanted, most = Infinity) {
    const { kind, detector } = this.data.members;
    const found = [];
    const whole = !wanted.text || this.lower().originals[cluster].includes(wanted.text);
    for (let n = this.starts[cluster]; n < this.starts[cluster + 1] && found.length < most; n++) {
      if (wanted.kind !== null && kind[n] !== wanted.kind) continue;
      if (wanted.detector !== null && detector[n] !== wanted.detector) continue;
      if (whole || this.lower().copies[n].includes(wanted.text)) found.push(n);
    }
    return found;
  }

  has(cluster, wanted) {
    if (wanted.kind === null && wanted.detector === null) {
      if (!wanted.text || this.lower().originals[cluster].includes(wanted.text)) return true;
    }
    return this.members(cluster, wanted, 1).length > 0;
  }

  find(wanted) {
    return this.ordered(wanted.order).filter((cluster) => this.has(cluster, wanted));
  }

  ordered(order) {
    if (!this.orders.has(order)) {
      const clusters = Uint32Array.from({ length: this.size }, (_, n) => n);
      const { resemblance, age } = this.data.members;
      const least = (column) => clusters.map((_, n) => this.least(column, n));
      if (order === "doubt") clusters.sort(by(least(resemblance)));
      if (order === "recent") clusters.sort(by(least(age)));
      this.orders.set(order, clusters);
    }
    return this.orders.get(order);
  }

  /** The least value of a column among a cluster's copies. Unknown values, and times to come, count as infinite. */
  least(column, cluster) {
    let least = 0xffffffff;
    for (let n = this.starts[cluster]; n < this.starts[cluster + 1]; n++) {
      if (column[n] >= 0 && column[n] < least) least = column[n];
    }
    return least;
  }
}

const by = (keys) => (a, b) => keys[a] - keys[b] || a - b;

function evidence(data, n) {
  const { kind, detector, hamming, resemblance, containment, ratio, size, age } = data.members;
  const parts = [
    [kind[n], () => el("span", { class: "kind" }, data.kinds[kind[n]])],
    [detector[n], () => el("span", {}, "by ", el("b", {}, data.detectors[detector[n]]))],
    [resemblance[n], () => el("span", {}, "resemblance ", el("b", {}, rate(resemblance[n])))],
    [containment[n], () => el("span", {}, "containment ", el("b", {}, rate(containment[n])))],
    [hamming[n], () => el("span", {}, "Hamming ", el("b", {}, hamming[n].toString()))],
    [ratio[n], () => el("span", {}, "length ratio ", el("b", {}, rate(ratio[n], 2)))],
    [size[n] || UNKNOWN, () => el("span", {}, bytes(size[n]))],
    [0, () => el("span", {}, `seen ${moment(data.made - age[n])}`)],
  ];
  return el("p", { class: "evidence" }, ...parts.filter(([known]) => known !== UNKNOWN).map(([, part]) => part()));
}

/** The beginning of a text, where a feed had it. */
const snippet = (text) => (text ? [el("p", { class: "snippet" }, shown(text))] : []);

/** One cluster: its original, some of its copies, and a button for more. */
function card(clusters, cluster, wanted) {
  const { degree, age } = clusters.data.clusters;
  const all = clusters.starts[cluster + 1] - clusters.starts[cluster];
  const members = clusters.members(cluster, wanted);
  const list = el("ul");
  let step = MEMBERS;
  const add = () => {
    const from = list.children.length;
    list.append(...members.slice(from, from + step).map((n) =>
      el("li", {}, link(clusters.copy(n, cluster)), evidence(clusters.data, n), ...snippet(clusters.data.members.snippet[n]))));
    step = 100;
    const left = members.length - list.children.length;
    more.textContent = `Show ${count(Math.min(left, step))} more of ${plural(members.length, "copy")}`;
    more.hidden = left === 0;
  };
  const more = button("", add);
  add();
  const notes = [plural(degree[cluster], "copy"), `first seen ${moment(clusters.data.made - age[cluster])}`];
  if (degree[cluster] > all) notes.push(`${count(degree[cluster] - all)} without URL`);
  if (members.length < all) notes.push(`${count(members.length)} of those with URL found`);
  return el("li", {}, el("h3", {}, link(clusters.original(cluster))), el("p", { class: "hint" }, notes.join(" · ")),
    ...snippet(clusters.data.clusters.snippet[cluster]), list, more);
}
