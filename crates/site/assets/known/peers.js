// "Check my peers": sorts the names that a server knows by what the census knows about them.

import { GROUPS, announce, element, groupOf, inPortions, lookUp, run, sentence } from "./known.js";
import { canonical } from "./name.js";
import { words } from "./why.js";

const TEXT_MAX = 16 * 1024 * 1024;
const NAMES_MAX = 250000;
const UNUSABLE_SHOWN = 20;
const SHOWN_MAX = 500;
// 90 days are over for certain.
const GONE_MONTHS = 4;
const NEVER_WEEKS = 13;
const COMMAND_NAMES = 50;

/** The names in an answer of a server's API, or in the first column of lines; not checked yet. */
export function split(text) {
  const tooMany = new Error(`a list may have ${NAMES_MAX} names and 16 MB`);
  if (text.length > TEXT_MAX) throw tooMany;
  const content = text.replace(/^\ufeff/, "").trim();
  let items;
  if (/^[[{]/.test(content)) {
    let value;
    try {
      value = JSON.parse(content);
    } catch {
      throw new Error("the list begins like JSON, and is not valid JSON");
    }
    const list = value.federated_instances?.linked ?? value.instances ?? value;
    if (!Array.isArray(list)) throw new Error("this JSON has no list of peers");
    const nameOf = (item) => (typeof item === "string" ? item : (item?.domain ?? item?.host));
    items = list.map((item) => (typeof nameOf(item) === "string" ? nameOf(item) : "(no name)"));
  } else {
    const lines = content === "" ? [] : content.split("\n", NAMES_MAX + 1);
    items = lines.map((line) => line.split(/[,;\t]/, 1)[0].replaceAll('"', "").trim()).filter((name) => name !== "" && !name.startsWith("#"));
  }
  if (items.length > NAMES_MAX) throw tooMany;
  if (items.length === 0) throw new Error("the list is empty");
  return items;
}

/** Canonical names, each once, and the items that are none: their number and some of them. */
export async function names(items) {
  const hosts = new Set();
  const unusable = { count: 0, some: [] };
  await inPortions(items, (item) => {
    const { host } = canonical(item);
    if (host !== undefined) hosts.add(host);
    else {
      unusable.count += 1;
      if (unusable.count <= UNUSABLE_SHOWN) unusable.some.push(item.slice(0, 80));
    }
  });
  return { hosts: [...hosts], unusable };
}

/** The answers by group, the oldest first. */
export function grouped(answers) {
  const groups = new Map([...GROUPS.keys()].map((group) => [group, []]));
  for (const answer of answers) groups.get(groupOf(answer.word)).push(answer);
  for (const group of groups.values()) group.sort((a, b) => b.age - a.age || (a.host < b.host ? -1 : 1));
  return groups;
}

/** Whether a name has had no DNS and no instance for 90 days at least. */
export function isPurgeable({ word, found, age }) {
  return found === "no_such_name" && ((word === "gone" && age >= GONE_MONTHS) || (word === "never" && age >= NEVER_WEEKS));
}

/** Commands that show what Mastodon would delete. */
export function purgeLines(answers) {
  const hosts = answers.filter(isPurgeable).map(({ host }) => host);
  const lines = [];
  for (let at = 0; at < hosts.length; at += COMMAND_NAMES) lines.push(`bin/tootctl domains purge --dry-run ${hosts.slice(at, at + COMMAND_NAMES).join(" ")}`);
  return lines;
}

function save(group, answers) {
  const href = URL.createObjectURL(new Blob(answers.map(({ host }) => `${host}\n`), { type: "text/plain" }));
  element("a", { href, download: `${group}.txt` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}

function section(group, answers, made) {
  const button = element("button", { type: "button", textContent: `Save all ${answers.length} names` });
  button.addEventListener("click", () => save(group, answers));
  const text = (answer) => `${answer.host}: ${sentence(answer, made)}. ${words(`found-${answer.found}`)}`;
  const rows = answers.slice(0, SHOWN_MAX).map((answer) => element("li", { textContent: text(answer) }));
  const more = answers.length > SHOWN_MAX ? ` The first ${SHOWN_MAX} of them:` : "";
  const summary = element("summary", { textContent: `${GROUPS.get(group)}: ${answers.length}` });
  return element("details", {}, summary, element("p", {}, button, more), element("ul", {}, ...rows));
}

function start() {
  const form = document.getElementById("peers");
  if (form === null) return;
  const part = (name) => document.getElementById(`peers-${name}`);
  const [file, text, button, status] = ["file", "text", "check", "status"].map(part);
  let known;
  // The newer of file and text counts.
  file.addEventListener("change", () => {
    text.value = "";
  });
  text.addEventListener("input", () => {
    file.value = "";
  });
  const dropped = (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    if (event.type !== "drop") return;
    file.files = event.dataTransfer.files;
    text.value = "";
  };
  form.addEventListener("dragover", dropped);
  form.addEventListener("drop", dropped);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(button, part("progress"), status, async (progress) => {
      const [chosen] = file.files;
      if (chosen?.size > TEXT_MAX) throw new Error("the file is larger than 16 MB");
      const { hosts, unusable } = await names(split(chosen === undefined ? text.value : await chosen.text()));
      const found = await lookUp(hosts, known, progress);
      known = found.known;
      const groups = [...grouped(found.answers)].filter(([, answers]) => answers.length > 0);
      part("groups").replaceChildren(...groups.map(([group, answers]) => section(group, answers, known.made)));
      const lines = purgeLines(found.answers);
      part("commands").textContent = lines.join("\n");
      part("purge").hidden = lines.length === 0;
      const some = unusable.count > unusable.some.length ? `${unusable.some.join(", ")}, …` : unusable.some.join(", ");
      part("unusable").textContent = unusable.count === 0 ? "" : `Not valid names: ${unusable.count} (${some}).`;
      const counts = groups.map(([group, answers]) => `${answers.length} ${GROUPS.get(group).toLowerCase()}`);
      status.textContent = `Done: ${hosts.length} names; ${counts.join("; ")}.`;
    });
  });
  announce(button);
}

// Tests import this file without a page.
if (typeof document !== "undefined") start();
