// Looks up many names in the file of all answers, whose format docs/site.md describes. The browser
// loads the whole file, so no name leaves it.

import { sha256Words } from "./sha256.js";
import { get, indexOf, request } from "./why.js";

const ALL_BYTES_MAX = 64 * 1024 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;
const ENTRY_BYTES = 10;
const CLASSES_MAX = 256;
const TIMEOUT_MS = 300000;
const TRIES = 2;
// Names between two pauses, in which the page reacts: some 20 ms.
const PORTION = 2000;
// The largest age: so many months or weeks, or more. The age in months can also be unknown.
const AGE_MAX = 255;

/** The groups of answers, and what pages call them. */
export const GROUPS = new Map([
  ["up", "Up"],
  ["failing", "Failing"],
  ["gone", "Gone"],
  ["never", "Never answered"],
  ["moved", "Moved"],
  ["withheld", "Withheld"],
  ["unchecked", "Not checked yet, or refuses checks"],
  ["unknown", "Not known, or forgotten"],
]);

const OTHER_GROUPS = new Map([
  ["moved_to_listed", "moved"],
  ["waiting", "unchecked"],
  ["refuses", "unchecked"],
]);

/** The group of a class's word; `undefined` if there is no such word. */
export function groupOf(word) {
  return OTHER_GROUPS.get(word) ?? (GROUPS.has(word) && word !== "unchecked" ? word : undefined);
}

/** The month that many months before a time in seconds, such as `2026-12`. */
export function month(made, months) {
  const at = new Date(made * 1000);
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - months)).toISOString().slice(0, 7);
}

/** An answer as text, without the finding. */
export function sentence({ word, age }, made) {
  const since = age === AGE_MAX ? "since an unknown month" : `since ${month(made, age)}`;
  const weeks = age === 0 ? "less than a week" : age === 1 ? "1 week" : `${age} weeks${age === AGE_MAX ? " or more" : ""}`;
  const texts = {
    gone: `gone ${since}`,
    moved: `moved ${since}`,
    moved_to_listed: `moved ${since}, to a host that is up`,
    never: `never answered, known for ${weeks}`,
    refuses: `refuses checks, known for ${weeks}`,
    waiting: "waiting for its first check",
  };
  return texts[word] ?? GROUPS.get(word).toLowerCase();
}

/** The salt of the newest answers, and the size of their file in bytes. */
export async function newest() {
  const content = await get("/why/index.json", "no-cache");
  const index = indexOf(content ?? null);
  const bytes = content?.all_bytes;
  if (index === undefined || !Number.isInteger(bytes) || bytes < 1) throw new Error("their index is missing or of another version");
  if (bytes > ALL_BYTES_MAX) throw new Error("their file is larger than 64 MB");
  return { salt: index.salt, bytes };
}

async function receive(response, bytes, progress) {
  const received = new Uint8Array(bytes);
  const reader = response.body.getReader();
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (length + value.length > bytes) {
      await reader.cancel();
      throw new Error("their file is longer than the index says");
    }
    received.set(value, length);
    length += value.length;
    progress(length / bytes);
  }
  if (length !== bytes) throw new Error("their file is shorter than the index says");
  return received;
}

function headerOf(line) {
  const damaged = new Error("the first line of their file is damaged or of another version");
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(line));
  } catch {
    throw damaged;
  }
  const { made, entry_bytes: entryBytes, classes } = header ?? {};
  if (entryBytes !== ENTRY_BYTES || !Number.isInteger(made) || Math.abs(made) > 1e11) throw damaged;
  if (!Array.isArray(classes) || classes.length > CLASSES_MAX) throw damaged;
  const read = classes.map((text) => {
    const [word, found = ""] = String(text).split(" ");
    if (groupOf(word) === undefined) throw damaged;
    return { word, found };
  });
  return { made, classes: read };
}

/** All answers of a file with this salt. */
export function parse(bytes, salt) {
  const end = bytes.subarray(0, HEADER_BYTES_MAX).indexOf(10);
  if (end === -1) throw new Error("the first line of their file is longer than 64 kB");
  const { made, classes } = headerOf(bytes.subarray(0, end));
  const length = bytes.length - end - 1;
  if (length % ENTRY_BYTES !== 0) throw new Error("the last entry of their file is cut");
  const entries = new DataView(bytes.buffer, bytes.byteOffset + end + 1, length);
  let [lastHigh, lastLow] = [0, 0];
  for (let at = 0; at < length; at += ENTRY_BYTES) {
    const high = entries.getUint32(at);
    const low = entries.getUint32(at + 4);
    if (high < lastHigh || (high === lastHigh && low < lastLow)) throw new Error("the entries of their file are not in order");
    if (entries.getUint8(at + 8) >= classes.length) throw new Error("an entry of their file has no class");
    [lastHigh, lastLow] = [high, low];
  }
  return { salt, made, classes, entries };
}

/** The newest answers: `former` if they still are. `progress` gets the loaded part, 0 to 1. */
export async function load(former, progress = () => {}) {
  // As for one answer: a missing file was replaced after its index was read.
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { salt, bytes } = await newest();
    if (former?.salt === salt) return former;
    const response = await request(`/why/${salt}/all.bin`, "default", TIMEOUT_MS);
    if (response !== undefined) return parse(await receive(response, bytes, progress), salt);
  }
  throw new Error("they are being published again");
}

/** The answer about a canonical name. */
export function find({ salt, classes, entries }, host) {
  const [high, low] = sha256Words(salt + host);
  let [from, to] = [0, entries.byteLength / ENTRY_BYTES];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const [entryHigh, entryLow] = [entries.getUint32(middle * ENTRY_BYTES), entries.getUint32(middle * ENTRY_BYTES + 4)];
    if (entryHigh === high && entryLow === low) {
      const entry = middle * ENTRY_BYTES + 8;
      return { host, ...classes[entries.getUint8(entry)], age: entries.getUint8(entry + 1) };
    }
    if (entryHigh < high || (entryHigh === high && entryLow < low)) from = middle + 1;
    else to = middle;
  }
  return { host, word: "unknown", found: "", age: 0 };
}

/** Handles all items in portions, so that the page reacts in between. */
export async function inPortions(items, handle, progress = () => {}) {
  for (let at = 0; at < items.length; at += PORTION) {
    for (const item of items.slice(at, at + PORTION)) handle(item);
    progress(Math.min(1, (at + PORTION) / items.length));
    await new Promise((resume) => setTimeout(resume));
  }
}

/** The newest answers, and those about these names in their order. */
export async function lookUp(hosts, former, progress = () => {}) {
  const known = await load(former, (part) => progress(part / 2));
  const answers = [];
  await inPortions(hosts, (host) => answers.push(find(known, host)), (part) => progress(0.5 + part / 2));
  return { known, answers };
}

/** An element with properties and children. */
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Puts into a button's text what it loads. */
export async function announce(button) {
  try {
    const { bytes } = await newest();
    button.textContent = `Check (loads ${(Math.ceil(bytes / 1e5) / 10).toFixed(1)} MB)`;
  } catch {
    // The button reports it when it is pressed.
  }
}

/** Runs a check that a button starts: shows the progress, and in `status` why it failed. */
export async function run(button, bar, status, check) {
  button.disabled = true;
  bar.hidden = false;
  bar.value = 0;
  status.textContent = "Checking …";
  try {
    await check((part) => {
      bar.value = part;
    });
  } catch (error) {
    status.textContent = `Not done: ${error.message}.`;
  }
  bar.hidden = true;
  button.disabled = false;
}
