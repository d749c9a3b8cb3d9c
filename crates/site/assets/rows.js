// The list: its file → rows, what is searched for, in which order, and which of them are in sight.

/** The columns, in the file's order. */
export const COLUMNS = ["host", "software", "version", "state", "first_seen", "last_alive"];

/** The file's lines, without the first one, which names the columns. */
export function parse(text) {
  const lines = text.split("\n");
  if (lines[0] !== COLUMNS.join("\t")) throw new Error("it is of another version; load this page again");
  lines.pop();
  lines.shift();
  return lines;
}

/** The numbers of the lines that hold every word of what is searched for, in any case. */
export function search(lines, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const found = [];
  for (let number = 0; number < lines.length; number += 1) {
    const line = lines[number];
    if (words.length === 0 || matches(line, words)) found.push(number);
  }
  return found;
}

function matches(line, words) {
  const lower = line.toLowerCase();
  return words.every((word) => lower.includes(word));
}

/** The same numbers by a column; what is equal stays in the file's order. Numbers within texts count as numbers, so that 4.10 comes after 4.9. */
export function sorted(lines, numbers, column, descending) {
  if (column === 0) {
    const order = numbers.slice().sort((a, b) => a - b);
    return descending ? order.reverse() : order;
  }
  const fields = new Map(numbers.map((number) => [number, lines[number].split("\t", column + 1)[column]]));
  const ranks = new Map([...new Set(fields.values())].sort(compared).map((field, rank) => [field, rank]));
  const sign = descending ? -1 : 1;
  return numbers
    .map((number) => ({ number, rank: ranks.get(fields.get(number)) }))
    .sort((a, b) => sign * (a.rank - b.rank) || a.number - b.number)
    .map(({ number }) => number);
}

const collator = new Intl.Collator("en", { numeric: true });

// What is not known comes last.
function compared(a, b) {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
  return collator.compare(a, b);
}

/** Which of `count` rows are drawn: those in sight and as many before and after, so that scrolling does not show gaps. */
export function inSight(top, height, rowHeight, count) {
  const visible = Math.ceil(height / rowHeight);
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - visible, count));
  const end = Math.min(count, first + 3 * visible);
  return { first, end };
}
