// Looks at the pages of a census with Chromium, and says on stdout what it found, as JSON.
//
// node browser.mjs CHROMIUM ADDRESS PROFILE PICTURES AXE WHAT ASKED...
//
// PROFILE is a folder of the browser's own; screenshots go to PICTURES. AXE is the file of axe-core, or nothing. WHAT is `pages`, or `answers` for those
// alone. ASKED are host names to ask the page "is my instance listed?" for.
import { readFileSync } from "node:fs";
import { open } from "./chromium.mjs";

const [chromium, address, profile, pictures, axe, what, ...asked] = process.argv.slice(2);
const PAGES = ["/", "/why.html", "/owners.html", "/data.html", "/software.html", "/software/mastodon.html", "/no-such-page"];

const page = await open(chromium, profile, address);
const { requests, look, until, go, screen, scheme } = page;
const picture = (name) => page.picture(`${pictures}/${name}.png`);

/** What axe has to say against the page as it is, by page. */
const accessibility = {};

async function examine(name) {
  if (axe === "") return;
  await look(readFileSync(axe, "utf8"));
  // The page is looked at with whatever is open on it; best practices are rules of axe's own beside those of WCAG.
  const found = await look(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations, passes }) => ({
    violations: violations.map(({ id, help, nodes }) => ({ id, help, at: nodes.map(({ html, failureSummary }) => [html, failureSummary]) })),
    rulesPassed: passes.length,
  }))`);
  accessibility[name] = found;
}

const rows = `[...document.querySelectorAll("#list-rows tr")].map((row) => [...row.cells].map((cell) => cell.textContent))`;

async function list() {
  await go("/");
  await picture("start");
  const isLoadedUnasked = requests.some((url) => url.endsWith("/list.txt"));
  await look(`document.getElementById("list-load").click()`);
  await until(`document.querySelectorAll("#list-rows tr").length > 0`);
  const first = await look(rows);
  await look(`document.querySelector("#list-by-host button").click()`);
  await until(`document.getElementById("list-by-host").getAttribute("aria-sort") === "descending"`);
  const sorted = await look(rows);
  await look(`{ const search = document.getElementById("list-search"); search.value = ${JSON.stringify(first[0][0])}; search.dispatchEvent(new Event("input", { bubbles: true })); }`);
  await until(`document.querySelectorAll("#list-rows tr").length === 1`);
  const found = await look(rows);
  await picture("list");
  await examine("the list");
  return { isLoadedUnasked, first: first[0], count: await look(`document.getElementById("list-status").textContent`), sorted: sorted[0], found };
}

async function why() {
  const told = {};
  for (const host of asked) {
    await go("/why.html");
    const before = requests.length;
    await look(`document.getElementById("host").value = ${JSON.stringify(` HTTPS://${host.toUpperCase()}./about `)}`);
    await look(`document.querySelector("#ask button").click()`);
    await until(`!document.getElementById("answer").hidden || document.getElementById("problem").textContent !== ""`);
    told[host] = await look(
      `Object.fromEntries([...document.querySelectorAll("#answer [id], #problem")].filter((part) => part.checkVisibility()).map((part) => [part.id, part.textContent]))`,
    );
    told[host].requests = requests.slice(before).map((url) => new URL(url).pathname);
    await picture(`why-${host}`);
  }
  await examine("an answer");
  return told;
}

async function narrow() {
  const sizes = {};
  for (const path of PAGES) {
    const name = path.replaceAll(/[^a-z]/g, "") || "index";
    await screen(320, 640);
    for (const colours of ["light", "dark"]) {
      await scheme(colours);
      await go(path);
      await picture(`phone-${colours}-${name}`);
      await examine(`${path} in ${colours}`);
    }
    sizes[path] = await look(`document.documentElement.scrollWidth`);
    await screen(1280, 900);
    await picture(`desk-dark-${name}`);
    await scheme("light");
  }
  return sizes;
}

try {
  await screen(1280, 900);
  const result = { why: await why(), troubles: page.troubles, accessibility };
  if (what === "pages") Object.assign(result, { list: await list(), narrow: await narrow() });
  process.stdout.write(`${JSON.stringify(result, null, 1)}\n`);
} finally {
  await page.close();
}
