// The answer to "is my instance listed?". The name stays in the browser: it requests only the file
// that holds the answer among many others.

import { canonical } from "./name.js";
import { sha256 } from "./sha256.js";

const SHARD_DIGITS_MAX = 3;
const ENTRY_DIGITS = 16;
const TIMEOUT_MS = 20000;
const TRIES = 2;

/** The path of the file that holds a host's answer, and the key within it. */
export function place(host, { salt, digits }) {
  const hash = sha256(`${salt}${host}`);
  return {
    path: `/why/${salt}/${hash.slice(0, digits)}.json`,
    key: hash.slice(SHARD_DIGITS_MAX, SHARD_DIGITS_MAX + ENTRY_DIGITS),
  };
}

/**
 * The salt and the number of digits that name a file, from `/why/index.json`; `undefined` if the
 * file is invalid.
 */
export function indexOf(index) {
  if (index === null || typeof index !== "object") return undefined;
  const { salt, digits } = index;
  if (typeof salt !== "string" || !/^[0-9a-f]{32}$/.test(salt)) return undefined;
  if (!Number.isInteger(digits) || digits < 1 || digits > SHARD_DIGITS_MAX) return undefined;
  return { salt, digits };
}

/** An entry of such a file, with named fields; `undefined` if it is missing or invalid. */
export function read(shard, key) {
  const hosts = shard !== null && typeof shard === "object" ? shard.hosts : undefined;
  if (hosts === null || typeof hosts !== "object" || !Object.hasOwn(hosts, key)) return undefined;
  const entry = hosts[key];
  if (!Array.isArray(entry) || entry.length < 6) return undefined;
  const [state, why, found, listed, asked, next, leaves = null, since = "", software = "", version = ""] = entry;
  return { state, why, found, listed: listed === true, asked, next, leaves, since, software, version };
}

/** The start page's list of all instances with this software, or a version that begins like this. */
export function alike(software, version) {
  const wanted = version === "" ? { software } : { software, version };
  return `/?${new URLSearchParams(wanted)}`;
}

/** What an owner writes next to the saved picture: a link to the host's answer. */
export function badge(host, since, address) {
  return `<a href="${address}/why.html#${host}"><img src="known-since-${since}.svg" alt="Known since ${since}" width="168" height="28"></a>`;
}

/** A moment as text: in UTC, and how long ago or ahead it is. */
export function moment(seconds, nowSeconds) {
  const at = new Date(seconds * 1000).toISOString();
  const minutes = Math.round((seconds - nowSeconds) / 60);
  const size = Math.abs(minutes);
  let span;
  if (size < 1) return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC (now)`;
  if (size < 120) span = size === 1 ? "1 minute" : `${size} minutes`;
  else if (size < 48 * 60) span = `${Math.round(size / 60)} hours`;
  else span = `${Math.round(size / 1440)} days`;
  return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC (${minutes < 0 ? `${span} ago` : `in ${span}`})`;
}

/**
 * The next check as text. An answer stays until the next publication and misses later changes. A
 * waiting name has no time yet, and a withheld answer has none.
 */
export function next(state, seconds, nowSeconds) {
  if (seconds === null) return state === "waiting" || state === "withheld" ? "" : "Not as long as this persists.";
  const at = `${moment(seconds, nowSeconds)}.`;
  return seconds <= nowSeconds ? `Due ${at} The next publication has its result.` : at;
}

/** One advice: that of the last check's result if it is more specific, otherwise the reason's. */
export function advice({ reason, found, foundTellsMore }) {
  return foundTellsMore && found !== "" ? found : reason;
}

// The texts are in the page, one element each: readers without scripts see them too.
export function words(id) {
  const element = document.getElementById(id);
  return element === null ? "" : element.textContent.trim();
}

function show(host, entry, made) {
  const now = Date.now() / 1000;
  const put = (id, text) => {
    const element = document.getElementById(id);
    element.textContent = text;
    const line = element.closest("[data-line]");
    if (line !== null) line.hidden = text === "";
  };
  const unknown = { state: "withheld", why: "unknown", found: null, listed: false, asked: null, next: null, leaves: null, since: "", software: "", version: "" };
  const { state, why, found, listed, asked, next: due, leaves, since, software, version } = entry ?? unknown;
  const isFailing = listed && leaves !== null;
  document.getElementById("answer").dataset.listed = isFailing ? "failing" : listed ? "yes" : "no";
  // A long name wraps at its dots.
  const labels = host.split(".").flatMap((label, number) => (number === 0 ? [label] : [".", document.createElement("wbr"), label]));
  document.getElementById("answer-host").replaceChildren(...labels);
  put("answer-verdict", isFailing ? `Listed, and ${state === "moving" ? "moving" : "failing"}` : listed ? "Listed" : "Not listed");
  put("answer-why", words(`why-${why}`));
  put("answer-found", found === null ? "" : words(`found-${found}`));
  put(
    "answer-advice",
    advice({
      reason: words(`why-${why}-advice`),
      found: found === null ? "" : words(`found-${found}-advice`),
      foundTellsMore: document.getElementById(`why-${why}`)?.hasAttribute("data-found-tells-more") === true,
    }),
  );
  put("answer-asked", state === "withheld" ? "" : asked === null ? "Not yet, or without a result." : `${moment(asked, now)}.`);
  put("answer-next", next(state, due, now));
  put("answer-leaves", isFailing ? `About ${new Date(leaves * 1000).toISOString().slice(0, 10)}, unless a check succeeds before.` : "");
  put("answer-since", since);
  put("answer-software", `${software} ${version}`.trim());
  document.getElementById("answer-software").href = alike(software, version);
  document.getElementById("answer-owner").href = `/owners.html#${host}`;
  document.getElementById("badge").hidden = since === "";
  if (since !== "") {
    const picture = `/badges/known-since-${since}.svg`;
    document.getElementById("badge-save").href = picture;
    document.getElementById("badge-code").textContent = badge(host, since, location.origin);
  }
  put("answer-made", Number.isFinite(made) ? `${moment(made, now)}.` : "");
  dispatchEvent(new CustomEvent("answered", { detail: host }));
}

/** The answer to a request for a file; `undefined` if there is no such file. */
export async function request(path, cache, timeoutMs = TIMEOUT_MS) {
  const response = await fetch(path, { cache, credentials: "omit", signal: AbortSignal.timeout(timeoutMs) });
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response;
}

/** A file's content; `undefined` if there is no such file. */
export async function get(path, cache) {
  return (await request(path, cache))?.json();
}

/** A host's entry, if it has one, and when that was made. */
export async function find(host) {
  // A publication's files disappear with it. A missing file was replaced after its index was read,
  // so there is a new index.
  for (let tries = 0; tries < TRIES; tries += 1) {
    const index = indexOf(await get("/why/index.json", "no-cache"));
    if (index === undefined) throw new Error("their index is missing or of another version");
    const { path, key } = place(host, index);
    const shard = await get(path, "default");
    if (shard !== undefined) return { entry: read(shard, key), made: shard.made };
  }
  throw new Error("they are being published again");
}

async function ask(typed) {
  const problem = document.getElementById("problem");
  const answer = document.getElementById("answer");
  answer.hidden = true;
  problem.textContent = "";
  const name = canonical(typed);
  if (name.problem !== undefined) {
    problem.textContent = name.problem;
    return;
  }
  // Browsers don't send the part behind the #. The address can be shared, and the server still
  // learns no name.
  if (location.hash !== `#${name.host}`) history.pushState(null, "", `#${name.host}`);
  try {
    const { entry, made } = await find(name.host);
    show(name.host, entry, made);
    answer.hidden = false;
  } catch (error) {
    problem.textContent = `The answers could not be read (${error.message}). Try again in a minute.`;
  }
}

function start() {
  const form = document.getElementById("ask");
  // Other pages use the functions only.
  if (form === null) return;
  const host = document.getElementById("host");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(host.value);
  });
  const linked = () => {
    let typed = "";
    try {
      typed = decodeURIComponent(location.hash.slice(1));
    } catch {
      return;
    }
    if (typed !== "" && document.getElementById(location.hash.slice(1)) === null) {
      host.value = typed;
      ask(typed);
    }
  };
  addEventListener("hashchange", linked);
  linked();
}

// Tests import this file without a page.
if (typeof document !== "undefined") start();
