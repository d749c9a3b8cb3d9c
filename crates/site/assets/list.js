// The list on the start page. The page itself contains the newest rows. The file with all rows is
// loaded when the reader searches, filters or scrolls to their end. The address holds the query.

import { canonical } from "./name.js";
import { DEFAULT_SORT, FILTERS, SORTS, cleared, fields, found, inSight, narrows, parse, readQuery, writeQuery } from "./rows.js";

const SEARCH_DELAY_MS = 80;

// Browsers stop drawing at some ten million pixels.
const ROWS_SCROLLED_MAX = 150000;

// A list up to this size is loaded as soon as the reader may need it.
const UNASKED_BYTES_MAX = 2000000;

// Up to this many rows are drawn at once, in a view as tall as they are.
const ROWS_FEW = 10;

// On phones, a longer name takes two small lines in the room of one.
const LINE_CHARS_MAX = 36;

const SIGNUP = { yes: "open", no: "closed", "": "–" };
const CONTROLS = ["q", "software", "version", "state", "signup", "since", "sort"];

const element = (id) => document.getElementById(id);
const grouped = (number) => number.toLocaleString("en").replaceAll(",", "\u00a0");

const view = element("list-view");
const { made } = view.dataset;
const bytes = Number(view.dataset.bytes);
let loading;
let table;
let rows = [];
let rowHeight = 40;
let drawn = { first: -1, end: -1 };
let query = readQuery(location.search);

/** The whole list, requested once. */
function load() {
  loading ??= (async () => {
    const response = await fetch("/list.txt", { credentials: "omit" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    table = parse(await response.text());
  })();
  return loading;
}

async function refresh() {
  const status = element("list-status");
  if (table === undefined) {
    status.textContent = "Loading the list …";
    try {
      await load();
    } catch (error) {
      loading = undefined;
      status.textContent = `The list could not be loaded (${error.message}). Try again in a minute.`;
      return;
    }
  }
  rows = found(table, query, made);
  status.textContent = narrows(query) ? `${grouped(rows.length)} of ${grouped(table.count)} instances` : `${grouped(table.count)} instances`;
  element("list-more").hidden = rows.length <= ROWS_SCROLLED_MAX;
  element("list-none").hidden = rows.length > 0;
  const among = filters();
  element("list-among").textContent = among === "" ? "" : ` among ${among}`;
  element("list-clear").hidden = among === "";
  element("list-clear").href = `${location.pathname}${writeQuery(cleared(query))}`;
  element("list-ask").href = `/why.html#${encodeURIComponent(canonical(query.q).host ?? query.q.trim())}`;
  element("list-load")?.remove();
  element("list-table").setAttribute("aria-rowcount", String(rows.length + 1));
  view.classList.toggle("short", rows.length <= ROWS_FEW);
  view.hidden = rows.length === 0;
  view.scrollTop = 0;
  heads();
  redraw();
}

/** The filters that are on, as the form names them. */
function filters() {
  const names = FILTERS.filter((name) => query[name].trim() !== "").map((name) => {
    const control = element(`list-${name}`);
    const value = control.selectedOptions?.[0]?.textContent ?? query[name];
    return `${control.labels[0].textContent}: ${value}`;
  });
  return names.join(", ");
}

function heads() {
  for (const name of SORTS) {
    const order = query.sort === name ? "ascending" : query.sort === `-${name}` ? "descending" : "none";
    element(`list-by-${name}`).setAttribute("aria-sort", order);
  }
}

function redraw() {
  drawn = { first: -1, end: -1 };
  draw();
}

function draw() {
  if (table === undefined) return;
  const count = Math.min(rows.length, ROWS_SCROLLED_MAX);
  const height = Math.max(view.clientHeight, ROWS_FEW * rowHeight);
  const sight = inSight(view.scrollTop, height, rowHeight, count);
  if (sight.first === drawn.first && sight.end === drawn.end) return;
  drawn = sight;
  const made = Array.from(rows.slice(sight.first, sight.end), (row, at) => rowOf(fields(table, row), sight.first + at + 2));
  element("list-rows").replaceChildren(...made);
  gap("list-before", sight.first);
  gap("list-after", count - sight.end);
  const first = made[0];
  // A row's height is known once one is drawn: it depends on the reader's font and screen.
  if (first !== undefined) {
    const height = first.getBoundingClientRect().height;
    if (height > 0 && Math.abs(height - rowHeight) > 0.5) {
      rowHeight = height;
      requestAnimationFrame(redraw);
    }
  }
}

// Rows that are not drawn, as one body of the same height.
function gap(id, count) {
  const body = element(id);
  body.hidden = count === 0;
  body.firstElementChild.style.height = `${count * rowHeight}px`;
}

function cell(kind, role, name, content) {
  const made = document.createElement(kind);
  made.setAttribute("role", role);
  made.className = name;
  made.append(content);
  return made;
}

function link(href, text) {
  const made = document.createElement("a");
  made.href = href;
  made.append(text);
  return made;
}

function isolated(text) {
  const made = document.createElement("bdi");
  made.textContent = text;
  return made;
}

// A state's word for people, from the form.
function wordOf(state) {
  return [...element("list-state").options].find(({ value }) => value === state)?.textContent.toLowerCase() ?? state;
}

// A name that may wrap at its dots.
function wrapping(host) {
  const made = document.createDocumentFragment();
  host.split(".").forEach((label, number) => made.append(...(number > 0 ? [".", document.createElement("wbr"), label] : [label])));
  return made;
}

// The same elements as those of the rows in the page.
function rowOf(values, index) {
  const made = document.createElement("tr");
  made.setAttribute("role", "row");
  made.setAttribute("aria-rowindex", String(index));
  const isLong = values.host.length + [...values.unicode].length > LINE_CHARS_MAX;
  const host = cell("th", "rowheader", isLong ? "host long" : "host", link(`https://${values.host}/`, wrapping(values.host)));
  host.scope = "row";
  host.firstElementChild.rel = "nofollow noopener noreferrer";
  if (values.unicode !== "") host.append(" ", isolated(values.unicode));
  const state = link(`/why.html#${values.host}`, wordOf(values.state));
  state.className = `state ${values.state}`;
  state.setAttribute("aria-label", `${state.textContent}: the answer for ${values.host}`);
  made.append(
    host,
    cell("td", "cell", "software", isolated(values.software)),
    cell("td", "cell", "version", isolated(values.version)),
    cell("td", "cell", "is", state),
    cell("td", "cell", "signup", SIGNUP[values.open_registrations] ?? "–"),
    cell("td", "cell", "day first", values.first_seen),
    cell("td", "cell", "day last", values.last_alive),
  );
  return made;
}

/** Shows the query in the form. Adds a software that the form does not offer. */
function fill() {
  const software = element("list-software");
  if (query.software !== "" && ![...software.options].some((option) => option.value === query.software)) {
    software.append(new Option(query.software, query.software));
  }
  for (const name of CONTROLS) element(`list-${name}`).value = query[name];
}

function change(next, remember) {
  query = { ...query, ...next };
  const address = `${location.pathname}${writeQuery(query)}${location.hash}`;
  if (remember) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  refresh();
}

function start() {
  element("list-form").addEventListener("submit", (event) => event.preventDefault());
  let waiting;
  for (const name of CONTROLS) {
    const control = element(`list-${name}`);
    if (control.tagName === "SELECT") {
      control.addEventListener("change", () => change({ [name]: control.value }, true));
      continue;
    }
    control.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change({ [name]: control.value }, false), SEARCH_DELAY_MS);
    });
    control.addEventListener("focus", () => {
      if (bytes <= UNASKED_BYTES_MAX) load().catch(() => (loading = undefined));
    });
  }
  for (const name of SORTS) {
    const button = element(`list-by-${name}`).querySelector("button");
    button.disabled = false;
    button.addEventListener("click", () => {
      change({ sort: query.sort === name ? `-${name}` : name }, true);
      fill();
    });
  }
  element("list-load")?.addEventListener("click", refresh);
  view.addEventListener(
    "scroll",
    () => {
      const isAtEnd = view.scrollTop + 2 * view.clientHeight > view.scrollHeight;
      if (table !== undefined) requestAnimationFrame(draw);
      else if (isAtEnd && loading === undefined && bytes <= UNASKED_BYTES_MAX) more();
    },
    { passive: true },
  );
  addEventListener("resize", () => requestAnimationFrame(redraw));
  addEventListener("popstate", () => {
    query = readQuery(location.search);
    fill();
    refresh();
  });
  fill();
  if (narrows(query) || query.sort !== DEFAULT_SORT) refresh();
}

// The page's rows are the first rows of the whole list, so the reader's position stays.
async function more() {
  const top = view.scrollTop;
  await refresh();
  view.scrollTop = top;
}

start();
