// The list on the start page: loaded when somebody asks for it, searched and sorted here, and only what is in sight is in the page.

import { COLUMNS, inSight, parse, search, sorted } from "./rows.js";

const SEARCH_DELAY_MS = 120;

// So few rows are drawn at once, in a view no taller than they are.
const ROWS_FEW = 10;

const element = (id) => document.getElementById(id);
const grouped = (number) => number.toLocaleString("en").replaceAll(",", "\u00a0");

let lines = [];
let numbers = [];
let column = 0;
let descending = false;
let rowHeight = 36;
let drawn = { first: -1, end: -1 };

async function load() {
  const button = element("list-load");
  const status = element("list-status");
  button.disabled = true;
  status.textContent = "Loading the list …";
  try {
    const response = await fetch("/list.txt", { credentials: "omit" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    lines = parse(await response.text());
  } catch (error) {
    status.textContent = `The list could not be loaded (${error.message}). Try again in a while.`;
    button.disabled = false;
    return;
  }
  element("list-begin").hidden = true;
  element("list").hidden = false;
  refresh();
  element("list-search").focus();
}

function refresh() {
  numbers = sorted(lines, search(lines, element("list-search").value), column, descending);
  const shown = numbers.length === lines.length ? "" : `${grouped(numbers.length)} of `;
  element("list-status").textContent = `${shown}${grouped(lines.length)} instances`;
  element("list-table").setAttribute("aria-rowcount", String(numbers.length + 1));
  const view = element("list-view");
  view.classList.toggle("short", numbers.length <= ROWS_FEW);
  view.scrollTop = 0;
  drawn = { first: -1, end: -1 };
  draw();
}

function draw() {
  const view = element("list-view");
  const height = Math.max(view.clientHeight, ROWS_FEW * rowHeight);
  const sight = inSight(view.scrollTop, height, rowHeight, numbers.length);
  if (sight.first === drawn.first && sight.end === drawn.end) return;
  drawn = sight;
  const rows = numbers.slice(sight.first, sight.end).map((number, at) => row(lines[number], sight.first + at + 2));
  element("list-rows").replaceChildren(...rows);
  gap("list-before", sight.first);
  gap("list-after", numbers.length - sight.end);
  const first = rows[0];
  // What a row takes is known once one is drawn: it depends on the reader's font.
  if (first !== undefined) {
    const height = first.getBoundingClientRect().height;
    if (height > 0 && Math.abs(height - rowHeight) > 0.5) {
      rowHeight = height;
      drawn = { first: -1, end: -1 };
      requestAnimationFrame(draw);
    }
  }
}

// The rows that are not drawn, as a body of their height.
function gap(id, rows) {
  const body = element(id);
  body.hidden = rows === 0;
  body.firstElementChild.style.height = `${rows * rowHeight}px`;
}

function row(line, index) {
  const made = document.createElement("tr");
  made.setAttribute("aria-rowindex", String(index));
  line.split("\t").forEach((field, at) => {
    const cell = document.createElement(at === 0 ? "th" : "td");
    if (at === 0) {
      cell.scope = "row";
      const link = document.createElement("a");
      link.href = `https://${field}/`;
      link.rel = "nofollow noopener noreferrer";
      link.textContent = field;
      cell.append(link);
    } else {
      const text = document.createElement("bdi");
      text.textContent = field;
      cell.append(text);
    }
    made.append(cell);
  });
  return made;
}

function start() {
  element("list-begin").hidden = false;
  element("list-load").addEventListener("click", load);
  let waiting;
  element("list-search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(refresh, SEARCH_DELAY_MS);
  });
  element("list-view").addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  addEventListener("resize", () => requestAnimationFrame(draw));
  COLUMNS.forEach((name, at) => {
    const head = element(`list-by-${name}`);
    head.querySelector("button").addEventListener("click", () => {
      descending = column === at && !descending;
      column = at;
      for (const other of COLUMNS) element(`list-by-${other}`).setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      refresh();
    });
  });
}

start();
