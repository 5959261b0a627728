// Two small charts in SVG. All colours are CSS, so that light and dark need no drawing of their own.

const SPACE = "http://www.w3.org/2000/svg";
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const MOVE_MS = 350;
const SEAMLESS = 120; // so many bars and more are drawn as one shape, without gaps between them

export function make(name, className, parent) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (parent) parent.append(element);
  return element;
}

function draw(name, attributes, parent) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

function frame(parent, width, label) {
  const box = { viewBox: `0 0 ${width} 100`, preserveAspectRatio: "none", role: "img", tabindex: 0 };
  return draw("svg", { ...box, "aria-label": label }, parent);
}

const near = (value) => Math.round(value * 100) / 100;

// Bars from one height to another, in units of an even share; `top` is the height of the chart.
function bars(values, top, from, to) {
  const high = (value) => near(100 - (100 * Math.min(Math.max(value, from), to)) / top);
  const low = high(from);
  if (values.length >= SEAMLESS) {
    return `M0 ${low}` + values.map((v, i) => `V${high(v)}H${i + 1}`).join("") + `V${low}Z`;
  }
  const gap = values.length > 40 ? 0.1 : 0.16;
  return values
    .map((v, i) => (v > from ? `M${near(i + gap)} ${low}V${high(v)}h${near(1 - 2 * gap)}V${low}Z` : ""))
    .join("");
}

// Load per worker. A bar takes the query's colour up to the even share and a warning one above it.
export class Bars {
  constructor(parent) {
    const chart = make("div", "chart bars", parent);
    this.svg = frame(chart, 1, "Load per worker");
    this.within = draw("path", { class: "within" }, this.svg);
    this.excess = draw("path", { class: "excess" }, this.svg);
    this.even = draw("line", { class: "even", x1: 0, "vector-effect": "non-scaling-stroke" }, this.svg);
    this.top = make("span", "tick", chart);
    this.label = make("span", "share", chart);
    this.readout = make("p", "readout", parent);
    this.shown = [];
    this.worker = null;
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      this.point(Math.floor(((event.clientX - box.left) / box.width) * this.loads.length));
    });
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.svg.addEventListener("blur", () => this.point(null));
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.readout.setAttribute("aria-live", "polite");
      this.point(this.worker === null ? 0 : this.worker + step);
    });
  }

  point(worker) {
    this.worker = worker === null ? null : Math.max(0, Math.min(worker, this.loads.length - 1));
    this.readout.textContent = this.words();
  }

  // `words` says what a worker did, or all of them for null.
  set({ loads, mean, top, label, words }) {
    this.loads = loads;
    this.words = () => words(this.worker);
    this.svg.setAttribute("viewBox", `0 0 ${loads.length} 100`);
    this.even.setAttribute("x2", loads.length);
    this.svg.setAttribute("aria-label", words(null));
    this.label.textContent = label;
    this.point(this.worker);
    const target = loads.map((load) => (mean ? load / mean : 0));
    const same = this.shown.length === target.length;
    const start = { values: same ? this.shown : target, top: this.height || top };
    const begun = performance.now();
    cancelAnimationFrame(this.moving);
    const step = (now) => {
      const part = calm.matches || !same ? 1 : Math.min(1, Math.max(0, now - begun) / MOVE_MS);
      const eased = 1 - (1 - part) ** 3;
      this.shown = target.map((to, i) => start.values[i] + (to - start.values[i]) * eased);
      this.height = start.top + (top - start.top) * eased;
      this.paint();
      if (part < 1) this.moving = requestAnimationFrame(step);
    };
    step(begun);
  }

  paint() {
    this.within.setAttribute("d", bars(this.shown, this.height, 0, 1));
    this.excess.setAttribute("d", bars(this.shown, this.height, 1, this.height));
    const y = near(100 - 100 / this.height);
    this.even.setAttribute("y1", y);
    this.even.setAttribute("y2", y);
    this.label.style.bottom = `${100 - y}%`;
    const cut = this.shown.some((value) => value > this.height);
    this.top.textContent = `${this.height.toFixed(1)} ×${cut ? " and more" : ""}`;
  }
}

// Round numbers between a floor and the most, two to four of them.
function ticks(floor, most) {
  const rough = (most - floor) / 3;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((n) => n * size >= rough) * size;
  const found = floor && floor % step ? [floor] : [];
  for (let n = Math.ceil(floor / step); n * step <= most; n++) found.push(n * step);
  return found;
}

// One figure of several queries through time.
export class Lines {
  constructor(parent, { title, hint, floor, least, words }, onCursor) {
    Object.assign(this, { floor, least, words, paths: new Map() });
    const figure = make("figure", "line", parent);
    const head = make("figcaption", "", figure);
    make("strong", "", head).textContent = title;
    make("span", "hint", head).textContent = hint;
    this.values = make("span", "values", head);
    const chart = make("div", "chart", figure);
    this.svg = frame(chart, 1000, title);
    this.grid = draw("path", { class: "grid", "vector-effect": "non-scaling-stroke" }, this.svg);
    this.cursor = draw("path", { class: "cursor", "vector-effect": "non-scaling-stroke" }, this.svg);
    this.ticks = make("div", "ticks", chart);
    const times = make("div", "times", chart);
    this.times = [make("time", "", times), make("time", "", times), make("time", "", times)];
    const at = (event) => {
      const box = this.svg.getBoundingClientRect();
      return (event.clientX - box.left) / box.width;
    };
    this.svg.addEventListener("pointermove", (event) => onCursor(at(event)));
    this.svg.addEventListener("pointerleave", () => onCursor(null));
    this.svg.addEventListener("blur", () => onCursor(null));
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 0.02, ArrowLeft: -0.02 }[event.key];
      if (!step) return;
      event.preventDefault();
      onCursor((now) => (now ?? 1) + step);
    });
  }

  // Series are {id, colour, times, values}; `cursor` is a time, or null for the newest.
  set(series, [first, last], cursor) {
    const known = series.flatMap((one) => one.values.filter((value) => value !== null));
    const most = Math.max(this.least, ...known.map((value) => value * 1.04));
    const x = (time) => near((1000 * (time - first)) / (last - first));
    const y = (value) => near(100 - (100 * (value - this.floor)) / (most - this.floor));
    const marks = ticks(this.floor, most);
    this.grid.setAttribute("d", marks.map((mark) => `M0 ${y(mark)}H1000`).join(""));
    const clock = (time) => new Date(1000 * time).toLocaleTimeString("en-GB");
    [first, cursor, last].forEach((time, i) => (this.times[i].textContent = time === null ? "" : clock(time)));
    this.cursor.setAttribute("d", cursor === null ? "" : `M${x(cursor)} 0V100`);
    this.ticks.replaceChildren(
      ...marks.map((mark) => {
        const tick = make("span", "");
        tick.textContent = mark ? this.words(mark) : "0";
        tick.style.bottom = `${100 - y(mark)}%`;
        return tick;
      }),
    );
    for (const [id, path] of this.paths) {
      if (!series.some((one) => one.id === id)) path.remove(), this.paths.delete(id);
    }
    this.values.replaceChildren();
    for (const { id, colour, times, values } of series) {
      if (!this.paths.has(id)) {
        this.paths.set(id, draw("path", { "vector-effect": "non-scaling-stroke" }, this.svg));
      }
      const path = this.paths.get(id);
      path.setAttribute("class", `series q${colour}`);
      let pen = "M";
      const steps = values.map((value, i) => {
        const step = value === null ? "" : `${pen}${x(times[i])} ${y(value)}`;
        pen = value === null ? "M" : "L";
        return step;
      });
      // A step of no length shows a single point as a dot.
      path.setAttribute("d", steps.some(Boolean) ? steps.join("") + "h0" : "");
      let at = values.length - 1;
      while (cursor !== null && at > 0 && times[at] > cursor) at--;
      const value = make("span", `value q${colour}`, this.values);
      value.textContent = values[at] === null || at < 0 ? "–" : this.words(values[at]);
    }
  }
}
