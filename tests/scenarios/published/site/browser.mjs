// Looks at the pages of a census with Chromium, and prints what it found as JSON.
//
// node browser.mjs CHROMIUM ADDRESS PROFILE PICTURES AXE WHAT ASKED...
//
// PROFILE is an empty folder; screenshots go to PICTURES. AXE is the file of axe-core, or nothing.
// WHAT is `pages`, or `answers` for those alone. ASKED are host names to look up.
import { open } from "./chromium.mjs";
import { drip } from "./drip.mjs";

const [chromium, address, profile, pictures, axe, what, ...asked] = process.argv.slice(2);
const PAGES = ["/", "/why.html", "/my-hosts.html", "/my-peers.html", "/owners.html", "/data.html", "/software.html", "/software/mastodon.html", "/no-such-page"];

const site = await drip(address);
const page = await open(chromium, profile, site.address);
const { requests, look, until, go, back, screen, scheme, forceColours, runScripts, cached } = page;
const picture = (name) => page.picture(`${pictures}/${name}.png`);

const examine = (name) => page.axe(name, axe);

const rows = `[...document.querySelectorAll("#list-rows tr")].map((row) => [...row.cells].map((cell) => cell.textContent))`;

/** Types into, or chooses from, a part of the list's form. */
function put(id, value, event) {
  return look(`{ const control = document.getElementById(${JSON.stringify(id)}); control.value = ${JSON.stringify(value)}; control.dispatchEvent(new Event("${event}", { bubbles: true })); }`);
}

async function list() {
  await go("/");
  await picture("start");
  const isLoadedUnasked = requests.some((url) => url.endsWith("/list.txt"));
  const first = await look(rows);
  await look(`document.querySelector("#list-by-host button").click()`);
  await until(`document.getElementById("list-by-host").getAttribute("aria-sort") === "ascending"`);
  const sorted = await look(rows);
  const sortedAddress = await look("location.search");
  await put("list-q", first[0][0], "input");
  await until(`document.querySelectorAll("#list-rows tr").length === 1`);
  const found = await look(rows);
  const foundAddress = await look("location.search");
  await picture("list");
  await examine("the list");
  await put("list-q", "no such host", "input");
  await until(`!document.getElementById("list-none").hidden`);
  const none = await look(`document.getElementById("list-ask").getAttribute("href")`);
  await examine("an empty list");
  await put("list-q", "", "input");
  await until(`document.getElementById("list-none").hidden`);
  await put("list-software", "mastodon", "change");
  await until(`location.search.includes("software=mastodon")`);
  const filtered = await look(rows);
  await back();
  await until(`document.getElementById("list-software").value === ""`);
  await go("/?software=mastodon&sort=-host");
  await until(`document.getElementById("list-software").value === "mastodon" && document.getElementById("list-by-host").getAttribute("aria-sort") === "descending"`);
  const linked = await look(rows);
  return { isLoadedUnasked, first, count: await look(`document.getElementById("list-status").textContent`), sorted, sortedAddress, found, foundAddress, none, filtered, linked };
}

/**
 * Words of tables that are cut in two elsewhere than at a hyphen or slash. Cells of hosts may:
 * strangers chose their names.
 */
const brokenWords = `[...document.querySelectorAll("td, th")]
  .filter((cell) => cell.closest(".host") === null && cell.checkVisibility())
  .flatMap((cell) => {
    const broken = [];
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
      for (const { 0: word, index } of text.data.matchAll(/[^\\s\\/-]+/g)) {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
      }
    }
    return broken;
  })`;

/** How much of the page moved without the reader's doing, and what that was. */
const shift = `new Promise((done) => {
  let sum = 0;
  const what = [];
  new PerformanceObserver((moved) => {
    for (const { value, hadRecentInput, sources } of moved.getEntries()) {
      if (hadRecentInput) continue;
      sum += value;
      what.push(...sources.map(({ node }) => (node?.outerHTML ?? node?.textContent ?? "").slice(0, 100)));
    }
  }).observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done({ sum, what }), 0)));
})`;

/** Names of hosts that are cut, by their boxes. */
const cutNames = `[...document.querySelectorAll(".list .host")].filter((cell) => cell.checkVisibility()).filter((cell) => {
  const name = document.createRange();
  name.selectNodeContents(cell);
  const [box, within] = [name.getBoundingClientRect(), cell.getBoundingClientRect()];
  return box.right > within.right + 1 || box.bottom > within.bottom + 1;
}).map((cell) => cell.textContent)`;

/** Texts of plots that lie on a line or dot of theirs. */
const coveredLines = `[...document.querySelectorAll("figure > svg")].flatMap((plot) => {
  const points = [...plot.querySelectorAll("path.line")].flatMap((line) => {
    const [places, toScreen] = [line.getTotalLength(), line.getScreenCTM()];
    return Array.from({ length: 501 }, (_, at) => line.getPointAtLength((places * at) / 500).matrixTransform(toScreen));
  });
  const dots = [...plot.querySelectorAll("circle")].map((dot) => dot.getBoundingClientRect()).map(({ x, y, width }) => ({ x: x + width / 2, y: y + width / 2 }));
  return [...plot.querySelectorAll("text")].filter((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    return [...points, ...dots].some(({ x, y }) => x > left && x < right && y > top && y < bottom);
  }).map((text) => text.textContent);
})`;

/** Each page at the widths of desks, tablets and phones. */
async function widths() {
  const found = {};
  await cached(false);
  for (const path of PAGES) {
    const name = nameOf(path);
    for (const [width, height] of [[1280, 900], [768, 1024], [390, 844], [360, 740]]) {
      await screen(width, height);
      site.slow(true);
      await go(path);
      site.slow(false);
      await picture(`${width}-${name}`);
      found[`${path} at ${width}`] = { broken: await look(brokenWords), shift: await look(shift), overflow: (await look("document.documentElement.scrollWidth")) - width, cut: await look(cutNames), covered: await look(coveredLines) };
      if (width === 1280 || width === 390) await examine(`${path} at ${width}`);
    }
    await forceColours("active");
    await go(path);
    await picture(`forced-${name}`);
    await scheme("light");
    await runScripts(false);
    await go(path);
    await picture(`noscript-${name}`);
    await runScripts(true);
  }
  await cached(true);
  return found;
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

/** What the button for notifications says after it was pressed; null where there is none. */
async function notify() {
  await go("/");
  if (await look(`document.getElementById("notify") === null`)) return null;
  await until(`!document.getElementById("notify").disabled`);
  await look(`document.getElementById("notify").click()`);
  await until(`document.getElementById("notify-status").textContent !== ""`);
  await examine("a button that was pressed");
  return look(`document.getElementById("notify-status").textContent`);
}

const nameOf = (path) => path.replaceAll(/[^a-z]/g, "") || "index";

async function narrow() {
  const sizes = {};
  for (const path of PAGES) {
    const name = nameOf(path);
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
  const result = { why: await why(), troubles: page.troubles, examined: page.examined };
  if (what === "pages") Object.assign(result, { list: await list(), notify: await notify(), narrow: await narrow(), widths: await widths() });
  process.stdout.write(`${JSON.stringify(result, null, 1)}\n`);
} finally {
  await page.close();
  site.close();
}
