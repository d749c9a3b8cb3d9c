// Takes the README's pictures of a site in a folder.
//
// node pictures.mjs CHROMIUM FOLDER PROFILE PICTURES
//
// docs/pictures shows an invented census:
//
//     mkdir -p target/invented-site
//     cargo run --locked --package site --example made_up -- target/invented-site 30000 1096
//     node tests/scenarios/published/site/pictures.mjs chromium target/invented-site/current target/browser docs/pictures
import { createServer } from "node:http";
import { readFileSync, rmSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { open } from "./chromium.mjs";

const [chromium, folder, profile, pictures] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json" };

const server = createServer((request, response) => {
  // An invented list has no age.
  if (request.url === "/stale.js") return void response.writeHead(404).end();
  const path = normalize(new URL(request.url, "http://localhost").pathname);
  const file = path === "/" ? "/index.html" : path;
  try {
    const bytes = readFileSync(join(folder, file));
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "text/plain" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${server.address().port}`;
const page = await open(chromium, profile, address);
const { look, until, go, screen, scheme } = page;
const picture = (name) => page.picture(`${pictures}/${name}.png`);

try {
  await scheme("light");
  await screen(1120, 1000);
  await go("/");
  await picture("list");
  const host = await look(`document.querySelector("#list-rows a").textContent`);
  await screen(1120, 620);
  await go(`/why.html#${host}`);
  await until(`!document.getElementById("answer").hidden`);
  await picture("answer");
  await screen(1120, 480);
  await go("/");
  await look(`document.getElementById("new-and-gone").scrollIntoView({ block: "start" })`);
  await picture("plot");
} finally {
  await page.close();
  rmSync(profile, { recursive: true, force: true });
  server.close();
}
