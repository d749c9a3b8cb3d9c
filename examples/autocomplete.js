// Completes names of instances from a copy of by-software.json next to the page.

export async function load() {
  const response = await fetch("by-software.json");
  if (!response.ok) throw new Error(`by-software.json: status ${response.status}`);
  return response.json();
}

/** The names of all instances, or of those with one of these kinds of software, sorted. */
export function names(bySoftware, kinds) {
  const wanted = bySoftware.filter(({ software }) => kinds === undefined || kinds.includes(software));
  return wanted.flatMap(({ hosts }) => hosts).sort();
}

/** The first names that begin like this. */
export function completions(sorted, typed, most = 20) {
  const start = typed.trim().toLowerCase();
  let [low, high] = [0, start === "" ? 0 : sorted.length];
  const end = high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < start) low = middle + 1;
    else high = middle;
  }
  return sorted.slice(low, Math.min(end, low + most)).filter((name) => name.startsWith(start));
}

/** Offers completions of what is typed into `input`, in its datalist. */
export function complete(input, sorted) {
  input.addEventListener("input", () => {
    const options = completions(sorted, input.value).map((name) => Object.assign(document.createElement("option"), { value: name }));
    input.list.replaceChildren(...options);
  });
}
