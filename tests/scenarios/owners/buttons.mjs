// Presses the owner's buttons with Chromium, and prints what the page answered, as JSON.
//
// node buttons.mjs CHROMIUM ADDRESS PROFILE PICTURES AXE NAMES ACTION:HOST...
//
// AXE is the file of axe-core, or nothing. ACTION is `submit`, `opt-out` or `prove`, which publishes the record in the lab's file NAMES.
import { appendFileSync } from "node:fs";
import { open } from "../published/site/chromium.mjs";

const [chromium, address, profile, pictures, axe, names, ...wishes] = process.argv.slice(2);
const page = await open(chromium, profile, address);
const { look, until, go, screen } = page;

const press = (id) => look(`document.getElementById("owner-${id}").click()`);
const text = (id) => look(`document.getElementById("owner-${id}").textContent`);
const done = () => until(`!/^(Asking|$)/.test(document.getElementById("owner-status").textContent)`);

const examine = (name) => page.examine(`owners-${name}`, pictures, axe);

/** The owner's whole way: the record, the answer, leave and come back. */
async function prove(host) {
  await examine("start");
  await look(`document.querySelector("#owner button").click()`);
  appendFileSync(names, `${await text("name")} txt ${await text("value")}\n`);
  await examine("record");
  const found = {};
  for (const step of ["check", "leave", "join"]) {
    await press(step);
    if (step === "leave") {
      await examine("question");
      await press("yes");
    }
    await done();
    await examine(step);
    found[step === "check" ? "look" : step] = await text("status");
  }
  return found;
}

try {
  await screen(1280, 900);
  const found = {};
  for (const wish of wishes) {
    const [action, host] = wish.split(":");
    await go("/owners.html");
    await look(`{ const host = document.getElementById("owner-host"); host.value = "https://${host}/"; }`);
    if (action === "prove") {
      found[wish] = await prove(host);
      continue;
    }
    await press(action);
    if (action === "opt-out") await press("yes");
    await done();
    found[wish] = { status: await text("status") };
    await page.picture(`${pictures}/owners-${action}-${host}.png`);
  }
  const commands = await look(`document.querySelector("#by-command + pre").textContent`);
  // A refused proof is an answer 403, which the browser notes.
  const troubles = page.troubles.filter((trouble) => !/status of 403/.test(trouble));
  process.stdout.write(`${JSON.stringify({ found, commands, examined: page.examined, troubles })}\n`);
} finally {
  await page.close();
}
