// Presses the owner's buttons with Chromium, and prints what the page answered, as JSON.
//
// node buttons.mjs CHROMIUM ADDRESS PROFILE PICTURES ACTION:HOST...
import { open } from "../published/site/chromium.mjs";

const [chromium, address, profile, pictures, ...wishes] = process.argv.slice(2);
const page = await open(chromium, profile, address);
const { look, until, go, screen } = page;

try {
  await screen(1280, 900);
  const found = {};
  for (const wish of wishes) {
    const [action, host] = wish.split(":");
    await go("/owners.html");
    await look(`{ const host = document.getElementById("owner-host"); host.value = "https://${host}/"; }`);
    await look(`document.querySelector('#owner button[value="${action}"]').click()`);
    await until(`/^(Done|Not done)/.test(document.getElementById("owner-status").textContent)`);
    found[wish] = {
      status: await look(`document.getElementById("owner-status").textContent`),
      record: await look(`document.getElementById("owner-proof").hidden ? null : document.querySelector("#owner-proof code").textContent`),
    };
    await page.picture(`${pictures}/owners-${action}-${host}.png`);
  }
  const commands = await look(`document.querySelector("#by-command + pre").textContent`);
  // A refused proof is an answer 403, which the browser notes.
  const troubles = page.troubles.filter((trouble) => !/status of 403/.test(trouble));
  process.stdout.write(`${JSON.stringify({ found, commands, troubles })}\n`);
} finally {
  await page.close();
}
