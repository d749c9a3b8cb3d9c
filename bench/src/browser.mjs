// How quick the list is in a browser: node browser.mjs CHROMIUM ADDRESS PROFILE. Says bytes and milliseconds on stdout, as JSON.
import { open } from "../../tests/scenarios/site/chromium.mjs";

const [chromium, address, profile] = process.argv.slice(2);
const page = await open(chromium, profile, address);
const { look, until, go, screen, wire } = page;

/** Milliseconds from an act on the page until a condition holds and the browser has drawn it. */
function took(act, holds) {
  return look(`new Promise((done) => {
    const begun = performance.now();
    ${act};
    const look = () => (${holds}) ? requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun))) : setTimeout(look, 1);
    look();
  })`);
}

const rows = `document.querySelectorAll("#list-rows tr")`;
const typed = (text) =>
  `const search = document.getElementById("list-search"); search.value = ${JSON.stringify(text)}; search.dispatchEvent(new Event("input", { bubbles: true }))`;

try {
  await screen(1280, 900);
  await go("/");
  await until(`document.readyState === "complete"`);
  const startBytes = wire.bytes;
  const loadMs = await took(`document.getElementById("list-load").click()`, `${rows}.length > 0`);
  const listBytes = wire.bytes - startBytes;
  const firstRow = `${rows}[0]?.cells[0].textContent`;
  const last = await look(firstRow);
  const sortMs = await took(`document.querySelector("#list-by-host button").click()`, `${firstRow} !== ${JSON.stringify(last)}`);
  const searchMs = await took(typed(last), `${rows}.length === 1`);
  process.stdout.write(`${JSON.stringify({ startBytes, listBytes, loadMs, sortMs, searchMs, troubles: page.troubles })}\n`);
} finally {
  await page.close();
}
