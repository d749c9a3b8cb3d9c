// Shows a plot's values under the pointer or by arrow keys. Without scripts the plots stay static,
// and the tables below them have the numbers.

const DAY_MS = 86400000;

/** The index of the day nearest to a position across the plot, 0 to 1. */
export function nearest(days, across) {
  const last = days[days.length - 1];
  if (last === 0) return 0;
  const wanted = across * last;
  let best = 0;
  for (let at = 1; at < days.length; at += 1) {
    if (Math.abs(days[at] - wanted) < Math.abs(days[best] - wanted)) best = at;
  }
  return best;
}

/** A day and the values of all lines on it, as text. */
export function reading(first, day, lines) {
  const date = new Date(Date.parse(`${first}T00:00:00Z`) + day * DAY_MS);
  const when = date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  const said = lines.map(({ name, value }) => (value === undefined ? "" : `${value.toLocaleString("en").replaceAll(",", "\u00a0")} ${name}`));
  return `${when}: ${said.filter((text) => text !== "").join(", ")}`;
}

const numbers = (text) => (text === "" ? [] : text.split(" ").map(Number));

function follow(plot) {
  const days = numbers(plot.dataset.days);
  const readout = plot.parentElement.querySelector(".readout");
  if (days.length === 0 || readout === null) return;
  const lines = [...plot.querySelectorAll("[data-values]")].map((path) => ({ name: path.dataset.name, values: numbers(path.dataset.values) }));
  const cursor = document.createElementNS(plot.namespaceURI, "line");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y1", "0");
  cursor.setAttribute("y2", "100%");
  cursor.setAttribute("visibility", "hidden");
  plot.append(cursor);
  let at = days.length - 1;
  const show = (next) => {
    at = Math.max(0, Math.min(days.length - 1, next));
    const last = days[days.length - 1];
    const x = `${last === 0 ? 50 : (100 * days[at]) / last}%`;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.setAttribute("visibility", "visible");
    // A line that is unknown on the first days has its values at the end.
    const values = lines.map(({ name, values }) => ({ name, value: values[values.length - days.length + at] }));
    readout.textContent = reading(plot.dataset.first, days[at], values);
  };
  const hide = () => {
    cursor.setAttribute("visibility", "hidden");
    readout.textContent = "";
  };
  plot.addEventListener("pointermove", (event) => {
    const { left, width } = plot.getBoundingClientRect();
    show(nearest(days, (event.clientX - left) / width));
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("focus", () => show(at));
  plot.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: days.length - 1 };
    if (!Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    show(steps[event.key]);
  });
  plot.setAttribute("tabindex", "0");
}

// Tests import this file without a page.
if (typeof document !== "undefined") for (const plot of document.querySelectorAll("svg.plot")) follow(plot);
