// A moderator's day in Chromium, and what is refused. Says on stdout what it found, as JSON in one
// line. Between its steps it asks for something by a line `order WHAT`, and waits for an answer.
//
// node console.mjs CHROMIUM ADDRESS PROFILE PICTURES AXE PASSWORD KEY HOSTS...
//
// KEY is the second factor's, in base32. AXE is the file of axe-core, or nothing.
import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";
import { open } from "../published/site/chromium.mjs";

const [chromium, address, profile, pictures, axe, password, key, ...hosts] = process.argv.slice(2);
const page = await open(chromium, profile, address);
const { look, go, screen } = page;
const refused = {};

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function order(what) {
  process.stdout.write(`order ${what}\n`);
  await answers.next();
}

function base32(text) {
  const bits = [...text].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
}

/** RFC 6238: six digits, 30 seconds. */
function code(steps = 0) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30000) + steps));
  const hash = createHmac("sha1", base32(key)).update(counter).digest();
  const number = hash.readUInt32BE(hash[19] & 15) & 0x7fffffff;
  return String(number % 1000000).padStart(6, "0");
}

/** Sends the form that a button belongs to, and waits for the page that answers. */
async function press(selector) {
  await page.navigate(() => look(`document.querySelector(${JSON.stringify(selector)}).click()`), selector);
}

function fill(values) {
  return look(`for (const [id, value] of Object.entries(${JSON.stringify(values)})) document.getElementById(id).value = value;`);
}

const where = () => look("location.pathname");
const title = () => look(`document.querySelector("h1").textContent`);

async function logIn(typed) {
  await go("/login");
  await fill({ name: "ada", password, code: typed });
  await press("main form button");
}

/** The names of `hosts` that are listed now, as the console answers. */
async function listed() {
  const found = [];
  for (const host of hosts) {
    await go(`/host?host=${host}`);
    const text = await look(`document.querySelector(".verdict").textContent`);
    if (text.startsWith("Listed")) found.push(host);
  }
  return found;
}

const examine = (name) => page.examine(name, pictures, axe);

/** Opens and examines a page. Its closed part may have the terminal's text. */
async function visit(path) {
  await go(path);
  const odd = await look(`[...document.querySelectorAll("main > :not(details)")].map((part) => part.innerText).join(" ").match(/.*(contact below|\\dT\\d\\d:).*/)?.[0]`);
  if (odd !== undefined) throw new Error(`not for moderators: ${odd}`);
  await examine(path.replaceAll(/[^a-z]/g, "") || "overview");
}

async function decide() {
  await go("/groups");
  // The reason is there: the facts.
  await press('form:has(> input[type="hidden"][value="lab.test"]) button[value="deny"]');
  await examine("denied");
  const said = await look(`document.querySelector("main").textContent`);
  if (!said.includes("lab.test: denied")) throw new Error(`not denied: ${said}`);
}

async function undo() {
  await go("/decisions");
  await look(`document.querySelector('input[name="decision"]').click()`);
  await press("main form button");
  await examine("undone");
  const said = await look(`document.querySelector("main").textContent`);
  if (!said.includes("lab.test: undone")) throw new Error(`not undone: ${said}`);
}

/** The status of a form whose token is another one. */
function forged() {
  const body = "form=AAAA&domain=lab.test&verb=deny&reason=forged";
  return fetchStatus("/groups", { method: "POST", body });
}

/** Over the connection of this program and not of the browser, which lets no script run here. */
async function fetchStatus(path, { method = "GET", body = undefined, cookies = undefined, agent = undefined }) {
  const headers = { cookie: cookies ?? (await page.cookies()), "user-agent": agent ?? (await look("navigator.userAgent")) };
  if (body !== undefined) headers["content-type"] = "application/x-www-form-urlencoded";
  const response = await fetch(`${address}${path}`, { method, body, headers, redirect: "manual" });
  return response.status === 303 ? response.headers.get("location") : response.status;
}

try {
  await screen(1280, 900);
  await logIn("000000");
  await examine("login");
  refused.wrongCode = await where();
  await logIn(code());
  if ((await title()) !== "Overview") throw new Error(`not logged in: ${await title()}`);
  for (const path of ["/", "/groups", "/group?domain=lab.test", "/waiting", "/sources", "/list", "/host?host=1", "/host?host=unknown.test", `/host?host=${hosts[0]}`]) await visit(path);

  await decide();
  await order("publish");
  const denied = await listed();
  for (const path of ["/groups?which=decided", "/decisions"]) await visit(path);
  refused.forged = await forged();
  refused.stolen = await fetchStatus("/", { agent: "another browser" });
  await undo();
  await order("publish");
  const undone = await listed();

  await order("kill");
  await go("/");
  const afterKill = await title();
  await visit("/logins");

  const session = await page.cookies();
  await press(".visitor button");
  refused.loggedOut = await fetchStatus("/", { cookies: session });
  // No code is accepted twice.
  await logIn(code(1));
  await order("idle");
  await go("/");
  refused.idle = await where();
  const result = { denied, undone, refused, afterKill, examined: page.examined, troubles: page.troubles };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  await page.close();
}
process.exit(0);
