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

  canonical(cluster) {
    const { origin, path } = this.data.clusters;
    return this.data.origins[origin[cluster]] + path[cluster];
  }

  mirror(member, cluster) {
    const { origin, path } = this.data.members;
    return this.data.origins[origin[member]] + (path[member] === 0 ? this.data.clusters.path[cluster] : path[member]);
  }

  /** All URLs in lower case, made at the first search. */
  lower() {
    if (this.lowered) return this.lowered;
    const [canonicals, mirrors] = [new Array(this.size), new Array(this.starts[this.size])];
    for (let cluster = 0; cluster < this.size; cluster++) {
      canonicals[cluster] = this.canonical(cluster).toLowerCase();
      for (let member = this.starts[cluster]; member < this.starts[cluster + 1]; member++) {
        mirrors[member] = this.mirror(member, cluster).toLowerCase();
      }
    }
    return (this.lowered = { canonicals, mirrors });
  }

  /** The mirrors of a cluster that are wanted, at most so many. A canonical that is found brings all of its mirrors. */
  members(cluster, wanted, most = Infinity) {
    const { kind, detector } = this.data.members;
    const found = [];
    const whole = !wanted.text || this.lower().canonicals[cluster].includes(wanted.text);
    for (let n = this.starts[cluster]; n < this.starts[cluster + 1] && found.length < most; n++) {
      if (wanted.kind !== null && kind[n] !== wanted.kind) continue;
      if (wanted.detector !== null && detector[n] !== wanted.detector) continue;
      if (whole || this.lower().mirrors[n].includes(wanted.text)) found.push(n);
    }
    return found;
  }

  has(cluster, wanted) {
    if (wanted.kind === null && wanted.detector === null) {
      if (!wanted.text || this.lower().canonicals[cluster].includes(wanted.text)) return true;
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

  /** The least of a column among a cluster's mirrors; what is unknown, or not yet, counts as very much. */
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

/** One cluster: its canonical, some of its mirrors, and a button for more. */
function card(clusters, cluster, wanted) {
  const { degree, age } = clusters.data.clusters;
  const all = clusters.starts[cluster + 1] - clusters.starts[cluster];
  const members = clusters.members(cluster, wanted);
  const list = el("ul");
  let step = MEMBERS;
  const add = () => {
    const from = list.children.length;
    list.append(...members.slice(from, from + step).map((n) =>
      el("li", {}, link(clusters.mirror(n, cluster)), evidence(clusters.data, n))));
    step = 100;
    const left = members.length - list.children.length;
    more.textContent = `Show ${count(Math.min(left, step))} more of ${plural(members.length, "mirror")}`;
    more.hidden = left === 0;
  };
  const more = button("", add);
  add();
  const notes = [plural(degree[cluster], "mirror"), `first seen ${moment(clusters.data.made - age[cluster])}`];
  if (degree[cluster] > all) notes.push(`${count(degree[cluster] - all)} without URL`);
  if (members.length < all) notes.push(`${count(members.length)} of those with URL found`);
  return el("li", {}, el("h3", {}, link(clusters.canonical(cluster))), el("p", { class: "hint" }, notes.join(" · ")),
    list, more);
}
