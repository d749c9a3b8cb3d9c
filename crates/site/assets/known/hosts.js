// "My hosts": a list of names that only this browser keeps, and what the census knows about them.

import { GROUPS, announce, element, groupOf, lookUp, run, sentence } from "./known.js";
import { canonical } from "./name.js";
import { words } from "./why.js";

const KEY = "fedicensus-hosts";
const HOSTS_MAX = 500;
const PROBLEMS_MAX = 5;

/** A kept list: hosts with their groups at the last check, or "". What is invalid is left out. */
export function read(text) {
  let pairs;
  try {
    pairs = JSON.parse(text);
  } catch {
    return new Map();
  }
  const isPair = (pair) => Array.isArray(pair) && typeof pair[0] === "string" && canonical(pair[0]).host === pair[0] && (pair[1] === "" || GROUPS.has(pair[1]));
  return new Map(Array.isArray(pairs) ? pairs.slice(0, HOSTS_MAX).filter(isPair) : []);
}

/** The list with the names that were typed, and what is wrong with others of them. */
export function add(list, typed) {
  const longer = new Map(list);
  const problems = [];
  for (const text of typed.trim().split(/[\s,;]+/)) {
    if (problems.length === PROBLEMS_MAX) break;
    const { host, problem } = canonical(text);
    if (problem !== undefined) problems.push(text === "" ? problem : `“${text.slice(0, 80)}”: ${problem}`);
    else if (longer.size < HOSTS_MAX) longer.set(host, longer.get(host) ?? "");
    else if (!longer.has(host)) return { list: longer, problems: [...problems, `The list is full: it has ${HOSTS_MAX} names.`] };
  }
  return { list: longer, problems };
}

/** The answers with `was`: a host's group at the last check if it was another one, else "". */
export function changes(list, answers) {
  return answers.map((answer) => {
    const before = list.get(answer.host) ?? "";
    return { ...answer, was: before === groupOf(answer.word) ? "" : before };
  });
}

function kept() {
  try {
    return { list: read(localStorage.getItem(KEY)), isKept: true };
  } catch {
    return { list: new Map(), isKept: false };
  }
}

/** Whether the browser keeps the list. */
function keep(list) {
  try {
    if (list.size === 0) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, JSON.stringify([...list]));
    return true;
  } catch {
    return false;
  }
}

/** A host's state as text, and what it was before if that differs. */
function state(group, answer, made) {
  if (answer === undefined) return [group === "" ? "not looked up yet" : `${GROUPS.get(group).toLowerCase()} at the last check`];
  const was = answer.was === "" ? "" : `Before: ${GROUPS.get(answer.was).toLowerCase()}.`;
  return [`${sentence(answer, made)}. ${words(`found-${answer.found}`)} `, element("strong", { textContent: was })];
}

function row(host, says, remove) {
  const link = element("a", { href: `/why.html#${host}`, textContent: host });
  const button = element("button", { type: "button", textContent: "Remove" });
  button.setAttribute("aria-label", `Remove ${host}`);
  button.addEventListener("click", remove);
  return element("tr", {}, element("th", { scope: "row", className: "host" }, link), element("td", {}, ...says), element("td", {}, button));
}

function start() {
  const form = document.getElementById("hosts-add");
  if (form === null) return;
  const part = (name) => document.getElementById(`hosts-${name}`);
  const [typed, button, status] = ["typed", "check", "status"].map(part);
  let { list, isKept } = kept();
  let known;
  let answers = new Map();
  const show = () => {
    part("lost").hidden = isKept;
    part("list").hidden = list.size === 0;
    const remove = (host) => () => {
      list.delete(host);
      change();
      status.textContent = `${host} is removed.`;
      typed.focus();
    };
    part("rows").replaceChildren(...[...list].map(([host, group]) => row(host, state(group, answers.get(host), known?.made), remove(host))));
  };
  const change = () => {
    isKept = keep(list) && isKept;
    show();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const added = add(list, typed.value);
    list = added.list;
    part("problem").textContent = added.problems.join(" ");
    if (added.problems.length === 0) typed.value = "";
    change();
  });
  button.addEventListener("click", () =>
    run(button, part("progress"), status, async (progress) => {
      const found = await lookUp([...list.keys()], known, progress);
      known = found.known;
      const changed = changes(list, found.answers);
      answers = new Map(changed.map((answer) => [answer.host, answer]));
      // A name may have been added or removed during the check.
      for (const { host, word } of changed) if (list.has(host)) list.set(host, groupOf(word));
      change();
      const count = changed.filter(({ was }) => was !== "").length;
      status.textContent = count === 0 ? "Done: nothing changed since the last check." : `Done: ${count} changed since the last check.`;
    }),
  );
  part("forget").addEventListener("click", () => {
    list = new Map();
    answers = new Map();
    change();
    status.textContent = "The list is forgotten.";
  });
  show();
  announce(button);
}

// Tests import this file without a page.
if (typeof document !== "undefined") start();
