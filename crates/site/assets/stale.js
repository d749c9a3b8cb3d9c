// Says that the list is old, by the reader's clock: a census that has stopped can't say so.

const DAY_MS = 86_400_000;

/** The notice for a list of this moment, or nothing while it is fresh. */
export function notice(read, nowMs) {
  const days = Math.floor((nowMs - Date.parse(read)) / DAY_MS);
  if (!(days >= 1)) return "";
  return `This census has published no new list for ${days === 1 ? "a day" : `${days} days`}. Something is wrong with it, and what you see is as old.`;
}

if (globalThis.document) {
  const place = document.getElementById("stale");
  place.textContent = notice(place.dataset.read, Date.now());
  place.hidden = place.textContent === "";
}
