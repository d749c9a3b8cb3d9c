// The list without a page: parses the file into columns, reads and writes the query in an address,
// filters, sorts, and decides which rows are drawn.

import { canonical } from "./name.js";

/** The columns, in the file's order. */
export const COLUMNS = ["host", "software", "version", "state", "open_registrations", "first_seen", "last_alive", "unicode"];

/** Columns that rows can be sorted by; a leading `-` means descending. */
export const SORTS = COLUMNS.slice(0, -1);

/** The order of the rows in the page itself. */
export const DEFAULT_SORT = "-first_seen";

const NOTHING = { q: "", software: "", version: "", state: "", signup: "", since: "", sort: DEFAULT_SORT };
/** The parts of a query that exclude rows, besides the typed text. */
export const FILTERS = ["software", "version", "state", "signup", "since"];

const CHOICES = { state: ["alive", "dying", "moving"], signup: ["yes", "no", "unknown"], since: ["1", "7", "30", "365"] };
const TYPED_MAX = 300;

// Equal texts get one number, in order of their first appearance.
function dictionary() {
  const texts = [];
  const numbers = new Map();
  const of = (text) => {
    let number = numbers.get(text);
    if (number === undefined) {
      number = texts.length;
      numbers.set(text, number);
      texts.push(text);
    }
    return number;
  };
  return { texts, numbers, of };
}

/**
 * The file as columns: `hosts` as texts, each other column as numbers into its dictionary of texts.
 * A million rows take some 150 MB, and a search reads each text only once.
 */
export function parse(text) {
  const header = `${COLUMNS.join("\t")}\n`;
  if (!text.startsWith(header)) throw new Error("it is of another version; load this page again");
  let count = 0;
  for (let at = text.indexOf("\n", header.length); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  const hosts = new Array(count);
  const unicode = new Map();
  const columns = {};
  for (const name of SORTS.slice(1)) columns[name] = { ...dictionary(), rows: new Uint32Array(count) };
  let at = header.length;
  for (let row = 0; row < count; row += 1) {
    let end = text.indexOf("\t", at);
    hosts[row] = text.slice(at, end);
    for (const name of SORTS.slice(1)) {
      at = end + 1;
      end = text.indexOf("\t", at);
      columns[name].rows[row] = columns[name].of(text.slice(at, end));
    }
    at = end + 1;
    end = text.indexOf("\n", at);
    if (end > at) unicode.set(row, text.slice(at, end));
    at = end + 1;
  }
  return { count, hosts, unicode, columns };
}

/** One row as texts, by column. */
export function fields(table, row) {
  const found = { host: table.hosts[row], unicode: table.unicode.get(row) ?? "" };
  for (const name of SORTS.slice(1)) found[name] = table.columns[name].texts[table.columns[name].rows[row]];
  return found;
}

/** The query in an address; invalid parts are left out. */
export function readQuery(search) {
  const query = { ...NOTHING };
  const given = new URLSearchParams(search);
  for (const name of ["q", "software", "version"]) query[name] = (given.get(name) ?? "").slice(0, TYPED_MAX);
  for (const [name, choices] of Object.entries(CHOICES)) {
    if (choices.includes(given.get(name))) query[name] = given.get(name);
  }
  const sort = given.get("sort");
  if (sort !== null && SORTS.includes(sort.replace(/^-/, ""))) query.sort = sort;
  return query;
}

/** The address's part for a query, without default values: `?q=…`, or an empty text. */
export function writeQuery(query) {
  const given = new URLSearchParams();
  for (const [name, usual] of Object.entries(NOTHING)) {
    if (query[name] !== usual) given.set(name, query[name]);
  }
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
}

/** The query without its filters. */
export function cleared(query) {
  return { ...NOTHING, q: query.q, sort: query.sort };
}

/** Whether a query excludes rows. */
export function narrows(query) {
  return Object.keys(NOTHING).some((name) => name !== "sort" && query[name].trim() !== "");
}

// How well a host matches a word: 0 means equal, 3 means no match.
function fit(host, word) {
  if (host === word) return 0;
  const at = host.indexOf(word);
  if (at === -1) return 3;
  return at === 0 || host.includes(`.${word}`) ? 1 : 2;
}

// Typed text as words. A name, page or account becomes its host; other text stays unchanged.
function wordsOf(typed) {
  const { host } = canonical(typed);
  if (host !== undefined) return [{ ascii: host, typed: typed.trim().toLowerCase() }];
  return typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => ({ ascii: word, typed: word }));
}

/**
 * The rows that match, the best matches first, each group in the file's order; and how well each
 * matches. `made` is the list's day, `2026-11-22`.
 */
export function search(table, query, made) {
  const { software, version, state, open_registrations: signup, first_seen: firstSeen } = table.columns;
  const conditions = [];
  const wanted = (column, isWanted) => {
    const holds = column.texts.map(isWanted);
    conditions.push((row) => holds[column.rows[row]]);
  };
  if (query.software !== "") wanted(software, (text) => text === query.software);
  if (query.version.trim() !== "") wanted(version, (text) => text.toLowerCase().startsWith(query.version.trim().toLowerCase()));
  if (query.state !== "") wanted(state, (text) => text === query.state);
  if (query.signup !== "") wanted(signup, (text) => text === (query.signup === "unknown" ? "" : query.signup));
  if (query.since !== "") {
    const since = new Date(Date.parse(`${made}T00:00:00Z`) - Number(query.since) * 86400000).toISOString().slice(0, 10);
    wanted(firstSeen, (day) => day > since);
  }
  const words = wordsOf(query.q).map(({ ascii, typed }) => {
    const has = (text) => text.toLowerCase().includes(typed);
    return { ascii, typed, inSoftware: software.texts.map(has), inVersion: version.texts.map(has) };
  });
  const groups = [[], [], [], []];
  for (let row = 0; row < table.count; row += 1) {
    if (!conditions.every((holds) => holds(row))) continue;
    const group = grade(table, row, words);
    if (group !== undefined) groups[group].push(row);
  }
  return groups;
}

// The worst match of all words counts. A word that only the software or version contains counts as
// worse than any match with a host.
function grade(table, row, words) {
  let worst = 0;
  for (const { ascii, typed, inSoftware, inVersion } of words) {
    let found = fit(table.hosts[row], ascii);
    if (found > 0 && table.unicode.has(row)) found = Math.min(found, fit(table.unicode.get(row), typed));
    const elsewhere = inSoftware[table.columns.software.rows[row]] || inVersion[table.columns.version.rows[row]];
    if (found === 3 && !elsewhere) return undefined;
    worst = Math.max(worst, found);
  }
  return worst;
}

/**
 * The rows in the requested order. Equal rows stay in the file's order. Numbers within texts
 * compare as numbers, so that 4.10 comes after 4.9.
 */
export function sorted(table, rows, sort) {
  const isDown = sort.startsWith("-");
  const name = sort.replace(/^-/, "");
  const inOrder = Uint32Array.from(rows).sort();
  if (name === "host") return isDown ? inOrder.reverse() : inOrder;
  const column = table.columns[name];
  column.ranks ??= ranksOf(column.texts);
  const { ranks, rows: numbers } = column;
  const sign = isDown ? -1 : 1;
  return inOrder.sort((a, b) => sign * (ranks[numbers[a]] - ranks[numbers[b]]) || a - b);
}

const collator = new Intl.Collator("en", { numeric: true });

// Unknown values come last.
function compared(a, b) {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
  return collator.compare(a, b);
}

function ranksOf(texts) {
  const order = [...texts.keys()].sort((a, b) => compared(texts[a], texts[b]));
  const ranks = new Uint32Array(texts.length);
  let rank = 0;
  order.forEach((number, at) => {
    if (at > 0 && compared(texts[order[at - 1]], texts[number]) !== 0) rank += 1;
    ranks[number] = rank;
  });
  return ranks;
}

/** All rows that match a query, in its order; in the default order, host matches come first. */
export function found(table, query, made) {
  const groups = search(table, query, made);
  if (query.sort !== DEFAULT_SORT || query.q.trim() === "") return sorted(table, groups.flat(), query.sort);
  return groups.flatMap((rows) => [...sorted(table, rows, query.sort)]);
}

/**
 * Which of `count` rows are drawn: the visible ones and as many before and after, so that scrolling
 * shows no gaps.
 */
export function inSight(top, height, rowHeight, count) {
  const visible = Math.ceil(height / rowHeight);
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - visible, count));
  const end = Math.min(count, first + 3 * visible);
  return { first, end };
}
