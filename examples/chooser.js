// A chooser of instances from a copy of instances.ndjson next to the page.

const minor = (version) => /^v?(\d+)\.(\d+)/.exec(version ?? "")?.slice(1, 3).map(Number);

/** By software the newest minor version that one in a hundred of its instances runs at least. */
export function newest(rows) {
  const counts = new Map();
  for (const { software, version } of rows) {
    const kind = counts.get(software) ?? { all: 0, minors: new Map() };
    const text = minor(version)?.join(".");
    counts.set(software, { all: kind.all + 1, minors: kind.minors.set(text, (kind.minors.get(text) ?? 0) + 1) });
  }
  const newer = (a, b) => minor(b)[0] - minor(a)[0] || minor(b)[1] - minor(a)[1];
  const common = ({ all, minors }) => [...minors.keys()].filter((text) => text !== undefined && minors.get(text) * 100 >= all);
  return new Map([...counts].map(([software, kind]) => [software, common(kind).sort(newer)[0]]));
}

/** Rows that are up and meet all wishes that are not empty. */
export function choose(rows, { software = "", signup = "", variant = "", isCurrent = false }) {
  const versions = newest(rows);
  const said = (open) => (open === null ? "unknown" : open ? "yes" : "no");
  return rows.filter((row) => {
    const is = (wish, value) => wish === "" || wish === value;
    const text = minor(row.version)?.join(".");
    const isNewest = text !== undefined && text === versions.get(row.software);
    const fits = is(software, row.software) && is(variant, row.variant) && is(signup, said(row.open_registrations));
    return row.state === "alive" && fits && (isNewest || !isCurrent);
  });
}

export async function start(form, list) {
  const text = await (await fetch("instances.ndjson")).text();
  const rows = text.trim().split("\n").map((line) => JSON.parse(line));
  const { software, signup, variant, current } = form.elements;
  const show = () => {
    const found = choose(rows, { software: software.value.trim(), signup: signup.value, variant: variant.value.trim(), isCurrent: current.checked });
    const text = (row) => `${row.host}: ${row.software ?? "unknown"} ${row.version ?? ""}`;
    list.replaceChildren(...found.slice(0, 100).map((row) => Object.assign(document.createElement("li"), { textContent: text(row) })));
  };
  form.addEventListener("input", show);
  show();
}
