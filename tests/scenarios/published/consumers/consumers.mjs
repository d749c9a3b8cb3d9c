// Three programs that read the published files and nothing else, as their authors would write them.
//
// node consumers.mjs ADDRESS PREFIX SOFTWARE
const [address, prefix, software] = process.argv.slice(2);

async function get(path) {
  const response = await fetch(`${address}${path}`);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

/**
 * A field that completes the name of a server: the names are sorted, so a binary search finds the
 * first.
 */
async function completions() {
  const names = await (await get("/data/nodes.json")).json();
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (names[middle] < prefix) low = middle + 1;
    else high = middle;
  }
  const found = [];
  for (let at = low; at < names.length && names[at].startsWith(prefix); at += 1) found.push(names[at]);
  return found;
}

/** A share button for one software: any server that runs it may be chosen. */
async function share() {
  return (await get(`/software/${software}.json`)).json();
}

/** A chooser for newcomers: servers that are up and let people sign up. */
async function chooser() {
  const lines = (await (await get("/data/instances.ndjson")).text()).trimEnd().split("\n");
  const rows = lines.map((line) => JSON.parse(line));
  return rows.filter(({ state, open_registrations }) => state === "alive" && open_registrations === true).map(({ host }) => host);
}

process.stdout.write(JSON.stringify({ completions: await completions(), share: await share(), chooser: await chooser() }));
