// Runs the examples' scripts, which are next to this file, on the published files.
//
// node consumers.mjs ADDRESS PREFIX SOFTWARE
import { completions, load, names } from "./autocomplete.js";
import { choose } from "./chooser.js";

const [address, prefix, software] = process.argv.slice(2);
const MOST = 1000;

const request = globalThis.fetch;
globalThis.fetch = (name) => request(`${address}/data/${name}`);
const bySoftware = await load();
const lines = (await (await fetch("instances.ndjson")).text()).trimEnd().split("\n");
const chosen = choose(lines.map((line) => JSON.parse(line)), { signup: "yes" });
const found = {
  completions: completions(names(bySoftware), prefix, MOST),
  share: names(bySoftware, [software]),
  chooser: chosen.map(({ host }) => host),
};
process.stdout.write(JSON.stringify(found));
