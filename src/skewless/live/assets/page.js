// The page: takes what the server pushes, keeps a bounded past, draws what is chosen.
// Names of keys and queries are data of strangers: they enter the page by textContent and title only.

import { Bars, Lines, make } from "./charts.js";

const COLOURS = 6;
const SHOWN_AT_FIRST = 6;
const HIGHEST = 6; // even shares that bars are drawn up to, so that the others stay visible
const LONGEST_WAIT_MS = 15000;
const byId = (id) => document.getElementById(id);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const brief = (value) => (value < 10000 ? digits.format(value) : compact.format(value));
const ratio = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));
const percent = (value) => `${value.toFixed(value < 1 ? 3 : value < 10 ? 2 : 1)} %`;
const span = (s) => (s < 1 ? `${whole.format(1000 * s)} ms` : s < 60 ? `${digits.format(s)} s` : `${digits.format(s / 60)} min`);
const or = (value, words) => (value === null || value === undefined ? "–" : words(value));

// In the order of a point, which begins with its time: see _point in history.py.
const LINES = [
  { title: "Busiest ÷ mean", hint: "1 is perfectly even", floor: 1, least: 1.1, words: ratio },
  { title: "σ of the loads", hint: "% of all messages", floor: 0, least: 0.5, words: percent },
  { title: "Throughput", hint: "messages a second", floor: 0, least: 1, words: (v) => `${brief(v)}/s` },
  { title: "Latency", hint: "trigger to commit", floor: 0, least: 0.01, words: span },
  { title: "Replication", hint: "workers per key", floor: 1, least: 1.1, words: ratio },
  { title: "Busiest worker", hint: "time it worked", floor: 0, least: 0.001, words: span },
];

let server = null;
let queries = new Map(); // by id, in the server's order
const choices = new Map(); // what the reader switched on or off, by id
const cards = new Map();
const charts = LINES.map((line) => new Lines(byId("lines"), line, moveCursor));
let cursor = null; // where in time the reader points, as a part of the width
let drawing = false;

function take(message) {
  const known = server === message.server ? queries : new Map();
  if (server !== message.server) choices.clear();
  server = message.server;
  byId("kept").textContent = message.kept;
  const changed = new Map(message.queries.map((query) => [query.id, query]));
  const used = new Set([...known.values()].map((query) => query.colour));
  queries = new Map();
  for (const id of message.order) {
    const before = known.get(id);
    const query = changed.get(id) ?? before;
    if (!query) continue;
    if (query !== before) {
      if (before && !message.all) query.points = before.points.concat(query.points);
      query.points = query.points.slice(-message.kept);
      query.colour = before?.colour ?? [...Array(used.size + 1).keys()].find((n) => !used.has(n));
      used.add(query.colour);
    }
    queries.set(id, query);
  }
  if (!drawing) requestAnimationFrame(render);
  drawing = true;
}

function shown() {
  const all = [...queries.values()];
  const alike = (a, b) => a.name === b.name && a.scheme === b.scheme;
  const newest = all.filter((query, i) => !all.slice(i + 1).some((later) => alike(query, later)));
  const first = new Set(newest.slice(-SHOWN_AT_FIRST));
  return all.filter((query) => choices.get(query.id) ?? first.has(query));
}

function render() {
  drawing = false;
  const visible = shown();
  const hue = (query) => query.colour % COLOURS;
  byId("empty").hidden = queries.size > 0;
  byId("lines").hidden = !visible.some((query) => query.points.length);
  renderSwitch(visible, hue);
  for (const [id, card] of cards) {
    if (!visible.some((query) => query.id === id)) card.root.remove(), cards.delete(id);
  }
  const highest = Math.max(1.25, ...visible.map((query) => query.points.at(-1)?.[1] ?? 1));
  const top = Math.min(Math.ceil(highest * 1.06 * 4) / 4, HIGHEST);
  for (const query of visible) {
    if (!cards.has(query.id)) cards.set(query.id, newCard());
    const card = cards.get(query.id);
    card.root.dataset.wide = query.workers > 100;
    byId("queries").append(...(card.root.isConnected ? [] : [card.root]));
    fill(card, query, top, hue(query));
  }
  renderLines(visible, hue);
}

function renderLines(visible, hue) {
  const drawn = visible.filter((query) => query.points.length);
  if (!drawn.length) return;
  let first = Math.min(...drawn.map((query) => query.points[0][0]));
  const last = Math.max(...drawn.map((query) => query.points.at(-1)[0]));
  if (last - first < 1) first = last - 1;
  const time = cursor === null ? null : first + cursor * (last - first);
  charts.forEach((chart, i) => {
    const series = drawn.map((query) => ({
      id: query.id,
      colour: hue(query),
      times: query.points.map((point) => point[0]),
      values: query.points.map((point) => point[i + 1]),
    }));
    chart.set(series, [first, last], time);
  });
}

function moveCursor(to) {
  const wanted = typeof to === "function" ? to(cursor) : to;
  cursor = wanted === null ? null : Math.max(0, Math.min(1, wanted));
  if (!drawing) requestAnimationFrame(render);
  drawing = true;
}

function renderSwitch(visible, hue) {
  const group = byId("switch");
  const buttons = new Map([...group.children].map((button) => [button.dataset.id, button]));
  for (const [id, button] of buttons) if (!queries.has(id)) button.remove();
  for (const query of queries.values()) {
    const button = buttons.get(query.id) ?? make("button", "", group);
    if (!button.dataset.id) {
      button.type = "button";
      button.dataset.id = query.id;
      make("i", "", button);
      make("bdi", "name", button);
      make("span", "state", button);
      button.addEventListener("click", () => {
        choices.set(query.id, button.getAttribute("aria-pressed") !== "true");
        render();
      });
    }
    button.setAttribute("aria-pressed", visible.includes(query));
    const [mark, name, state] = button.children;
    mark.className = `mark q${hue(query)}`;
    name.textContent = button.title = query.name;
    state.textContent = state.dataset.state = query.state;
  }
}

function newCard() {
  const root = make("article", "card");
  const head = make("div", "head", root);
  const card = { root, mark: make("i", "mark", head), name: make("h2", "", head) };
  card.title = make("bdi", "", card.name);
  card.state = make("span", "state", head);
  card.about = make("p", "about", root);
  card.why = make("p", "why", root);
  card.body = make("div", "body", root);
  const figures = make("dl", "figures", card.body);
  card.figures = LINES.map((line) => {
    const pair = make("div", "", figures);
    make("dt", "", pair).textContent = line.title;
    return make("dd", "", pair);
  });
  card.bars = new Bars(card.body);
  const aside = make("div", "aside", card.body);
  const table = make("table", "keys", aside);
  const names = make("tr", "", make("thead", "", table));
  for (const name of ["Hottest keys", "Share", "Workers"]) make("th", "", names).textContent = name;
  card.keys = make("tbody", "", table);
  card.plan = make("p", "plan", aside);
  return card;
}

function fill(card, query, top, colour) {
  const { newest } = query;
  card.root.className = `card q${colour}`;
  card.mark.className = `mark q${colour}`;
  card.title.textContent = card.name.title = query.name;
  card.state.textContent = card.state.dataset.state = query.state;
  card.why.textContent = query.why ?? "";
  card.body.hidden = !newest;
  card.about.hidden = !newest;
  if (!newest || card.filled === newest && card.top === top) return;
  Object.assign(card, { filled: newest, top });
  const batches = newest.batch === null ? "batch job" : `micro-batch ${whole.format(newest.batch)}`;
  const named = query.scheme === query.name ? "" : `${query.scheme} · `;
  card.about.textContent = `${named}${whole.format(query.workers)} workers · ${batches} · ${whole.format(query.messages)} messages so far`;
  card.figures.forEach((cell, i) => (cell.textContent = or(query.points.at(-1)[i + 1], LINES[i].words)));
  const { loads, busy, messages } = newest;
  const mean = messages / loads.length;
  const words = (worker) => {
    if (worker !== null) return `Worker ${worker}: ${whole.format(loads[worker])} messages, ${ratio(loads[worker] / mean)} of an even share, ${span(busy[worker])} at work`;
    const most = loads.indexOf(Math.max(...loads));
    return `Most at worker ${most}: ${whole.format(loads[most])} of ${whole.format(messages)} messages`;
  };
  card.bars.set({ loads, mean, top, words, label: `even share ${whole.format(mean)}` });
  fillKeys(card, query);
}

function fillKeys(card, query) {
  const { hot, plan, messages } = query.newest;
  const rows = (hot ?? []).map(([name, count, workers]) => {
    const row = make("tr");
    const cell = make("td", "key", row);
    const text = make("bdi", "", cell);
    const blank = name !== null && !name.trim();
    text.textContent = name === null ? "(null)" : name === "" ? "(empty)" : blank ? `(${name.length} blank)` : name;
    text.className = name === null || blank ? "none" : "";
    cell.title = text.textContent;
    const share = make("td", "number", row);
    make("i", "bar", share).style.width = `${(48 * count) / hot[0][1]}%`; // room is left for the number
    make("span", "", share).textContent = percent((100 * count) / messages);
    make("td", "number", row).textContent = `${whole.format(workers)} of ${whole.format(query.workers)}`;
    return row;
  });
  card.keys.replaceChildren(...rows);
  card.keys.parentElement.hidden = !rows.length;
  const keys = rows.length ? "" : `Hottest keys: ${hot ? "none stands out" : "not reported by this computation"}. `;
  const [named, split, widest] = plan ?? [];
  const planned = !plan
    ? "Plan: this scheme keeps no list of keys."
    : named && split === null
      ? `Plan: names ${whole.format(named)} ${named === 1 ? "key" : "keys"}; each task decides how widely to split them.`
      : named
        ? `Plan: names ${whole.format(named)} keys, splits ${whole.format(split)}, the widest over ${whole.format(widest)} workers.`
        : "Plan: no key is named or split.";
  card.plan.textContent = keys + planned;
}

let source = null;
let wait_ms = 500;
let timer = null;

function say(state, words) {
  byId("connection").dataset.state = document.body.dataset.connection = state;
  byId("connection").textContent = words;
}

function connect() {
  clearTimeout(timer);
  source?.close();
  source = new EventSource("events");
  source.onmessage = (event) => {
    wait_ms = 500;
    say("live", "live");
    take(JSON.parse(event.data));
  };
  // Not left to the browser: it would try for ever at one pace, and give up where it is refused.
  source.onerror = () => {
    source.close();
    say("lost", "no connection; this is the last that was seen");
    timer = setTimeout(connect, wait_ms);
    wait_ms = Math.min(2 * wait_ms, LONGEST_WAIT_MS);
  };
}

// A page that nobody looks at holds no connection; it gets all it missed when it is looked at again.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) return connect();
  clearTimeout(timer);
  source?.close();
});
if (!document.hidden) connect();
