// A share button: the reader's own instance opens with a text to post.

import { complete, load, names } from "./autocomplete.js";

// Software with a page /share that takes a text.
export const SHARES = ["mastodon", "hometown"];
const KEY = "share-instance";

/** The page that posts a text; `undefined` if no such instance is in the list. */
export function target(sorted, typed, text) {
  const host = typed.trim().toLowerCase();
  return sorted.includes(host) ? `https://${host}/share?${new URLSearchParams({ text })}` : undefined;
}

// Some browsers forbid it.
function storage() {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

export async function start(form, text) {
  const { instance, remember, problem } = form.elements;
  const sorted = names(await load(), SHARES);
  instance.value = storage()?.getItem(KEY) ?? "";
  complete(instance, sorted);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const page = target(sorted, instance.value, text);
    problem.value = page === undefined ? "No such instance is in the list, or it has no share page." : "";
    if (page === undefined) return;
    // Nothing is remembered unless the reader asks for it.
    if (remember.checked) storage()?.setItem(KEY, instance.value);
    else storage()?.removeItem(KEY);
    location.assign(page);
  });
}
