// The owner's screen: a record that proves the host, and what the secret of that record allows. The
// census gets the secret, and nobody else does.

import { canonical } from "./name.js";
import { sha256 } from "./sha256.js";

const TIMEOUT_MS = 90000;
const SECRET_BYTES = 32;

/** The TXT record that proves a host to the census. */
export function record(host, secret) {
  return { name: `_fedicensus.${host}`, value: `fedicensus-proof=${sha256(`fedicensus/v1/proof ${host} ${secret}`)}` };
}

/** Random bytes as a secret. */
export function secretOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The census's answer as text, and the host's state if the census did what was asked. */
export function outcome(status, answer, act) {
  const { words, state, detail } = answer !== null && typeof answer === "object" ? answer : {};
  if (status >= 200 && status < 300) {
    if (typeof words !== "string") return { state, text: "Done." };
    return { state, text: act === "look" ? words.replace(/(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ/g, "$1 $2 UTC") : `Done: ${words}.` };
  }
  const why = typeof detail === "string" ? detail.replace(/\.$/, "") : `the server answered with status ${status}`;
  return { text: `Not done: ${why}.` };
}

/** Whether the owner of a host in this state can leave, and the text of the button to join. */
export function choices(state) {
  if (state === "opted_out") return { leave: false, join: "Come back" };
  if (state === "unknown" || state === "forgotten") return { leave: false, join: "Submit" };
  return { leave: true, join: "" };
}

/** Sends a request; without a secret, a plain record or file has the wish. */
async function send(host, act, secret) {
  const [path, body] = secret === undefined ? [act === "leave" ? "/opt-out" : "/submit", { host }] : ["/proof", { host, secret, act }];
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    credentials: "omit",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  // An answer that is not JSON comes from the web server in front.
  return outcome(response.status, await response.json().catch(() => null), act);
}

/** A host's secret in this tab, so that a reload does not change the record; a new one if wanted. */
function secretFor(host, isNew) {
  const key = `owner ${host}`;
  const made = secretOf(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
  try {
    if (isNew || sessionStorage.getItem(key) === null) sessionStorage.setItem(key, made);
    return sessionStorage.getItem(key);
  } catch {
    // Storage may be forbidden.
    return made;
  }
}

function start() {
  const by = (id) => document.getElementById(`owner-${id}`);
  if (by("host") === null) return;
  const hide = (...ids) => ids.forEach((id) => (by(id).hidden = true));
  const say = (text) => (by("status").textContent = text);
  const buttons = ["check", "leave", "join", "yes", "submit", "opt-out"].map(by);
  let [host, secret] = [undefined, undefined];

  /** Takes the typed host, without a secret. Whether it is one. */
  function take() {
    hide("record", "acts", "sure");
    const name = canonical(by("host").value);
    say(name.problem ?? "");
    [host, secret] = [name.host, undefined];
    return host !== undefined;
  }
  function show(isNew) {
    if (!take()) return;
    secret = secretFor(host, isNew);
    const { name, value } = record(host, secret);
    by("name").textContent = name;
    by("value").textContent = value;
    by("answer").href = `/why.html#${host}`;
    by("record").hidden = false;
    history.replaceState(null, "", `#${host}`);
  }
  async function act(what) {
    hide("sure");
    for (const button of buttons) button.disabled = true;
    say(`Asking for ${host}. This can take half a minute …`);
    try {
      const { state, text } = await send(host, what, secret);
      say(text);
      if (state !== undefined && secret !== undefined) {
        const { leave, join } = choices(state);
        by("acts").hidden = false;
        by("leave").hidden = !leave;
        by("join").hidden = join === "";
        by("join").textContent = join;
      }
    } catch (error) {
      say(`Not done: the census could not be reached (${error.message}). Try again in a minute.`);
    }
    for (const button of buttons) button.disabled = false;
  }
  function ask() {
    by("sure").hidden = false;
    by("no").focus();
  }
  const on = (id, then) => by(id).addEventListener("click", then);
  document.getElementById("owner").addEventListener("submit", (event) => {
    event.preventDefault();
    show(false);
  });
  on("new", () => show(true));
  on("check", () => act("look"));
  on("join", () => act("join"));
  on("leave", ask);
  on("yes", () => act("leave"));
  on("no", () => hide("sure"));
  on("submit", () => take() && act("join"));
  on("opt-out", () => take() && ask());
  // From an answer of why.html: the part behind the # stays in the browser.
  const linked = canonical(location.hash.slice(1));
  if (linked.host !== undefined) {
    by("host").value = linked.host;
    show(false);
  }
}

// Tests import this file without a page.
if (typeof document !== "undefined") start();
