// The owner's buttons: submit a host, or opt it out. The proof is in the host's DNS or in a file on
// the host; the form sends only the name.

import { canonical } from "./name.js";

const TIMEOUT_MS = 90000;
const PATHS = { submit: "/submit", "opt-out": "/opt-out" };

/** The census's answer as text, and whether the proof is missing. */
export function outcome(status, answer) {
  const { words, detail, code } = answer !== null && typeof answer === "object" ? answer : {};
  if (status >= 200 && status < 300) return { done: true, text: typeof words === "string" ? `Done: ${words}.` : "Done." };
  const why = typeof detail === "string" ? detail.replace(/\.$/, "") : `the server answered with status ${status}`;
  return { done: false, text: `Not done: ${why}.`, needsProof: code === "no_proof" };
}

/** The TXT record that states what the host's owner wants, in zone file format. */
export function record(host, action) {
  return `_fedicensus.${host}. IN TXT "fedicensus-proof=${action}"`;
}

async function send(host, action) {
  const response = await fetch(PATHS[action], {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ host }),
    credentials: "omit",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  // An answer that is not JSON comes from the web server in front.
  return outcome(response.status, await response.json().catch(() => null));
}

function start() {
  const form = document.getElementById("owner");
  if (form === null) return;
  const host = document.getElementById("owner-host");
  const status = document.getElementById("owner-status");
  const proof = document.getElementById("owner-proof");
  const buttons = [...form.querySelectorAll("button")];
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const action = event.submitter?.value === "opt-out" ? "opt-out" : "submit";
    const name = canonical(host.value);
    proof.hidden = true;
    if (name.problem !== undefined) {
      status.textContent = name.problem;
      return;
    }
    for (const button of buttons) button.disabled = true;
    status.textContent = `Asking for ${name.host} …`;
    try {
      const { text, needsProof } = await send(name.host, action);
      status.textContent = text;
      proof.hidden = needsProof !== true;
      proof.querySelector("code").textContent = record(name.host, action);
    } catch (error) {
      status.textContent = `Not done: the census could not be reached (${error.message}). Try again in a minute.`;
    }
    for (const button of buttons) button.disabled = false;
  });
}

// Tests import this file without a page.
if (typeof document !== "undefined") start();
