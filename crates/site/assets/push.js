// The button that turns notifications on and off. The service worker, notify.js, carries out its
// requests. The browser asks for permission only when the reader presses the button.

// The worker waits for the census, and the browser for its push service.
const TIMEOUT_MS = 90000;

/** Why this page can't turn notifications on, as text; `undefined` if it can. */
export function obstacle({ isSecureContext, navigator, PushManager, Notification }) {
  if (isSecureContext !== true) return "Browsers offer notifications over HTTPS only.";
  if (navigator.serviceWorker === undefined || PushManager === undefined || Notification === undefined) {
    return "This browser offers no push notifications here. Private windows have none.";
  }
  return undefined;
}

/** Why a browser that was asked for permission will not notify; `undefined` if it will. */
export function refusal(permission) {
  if (permission === "granted") return undefined;
  if (permission === "denied") return "your browser blocks notifications of this site. Allow them in its settings for this site; private windows have none";
  return "your browser asks for your permission first. Press again and allow it";
}

/** Whether this page's notification is on, and the text for the reader. */
export function state(filters, filter, trouble) {
  const isOn = filters.some((other) => JSON.stringify(other) === JSON.stringify(filter));
  const words = isOn ? ["Notifications are on. Press again to stop."] : [];
  if (trouble !== undefined) words.unshift(`${trouble.replace(/\.$/, "")}.`);
  return { isOn, text: words.join(" ") };
}

/** Sends the worker a request; returns the filters that are on afterwards. */
function ask(worker, request) {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    const late = setTimeout(() => reject(new Error("your browser took too long. Load this page again")), TIMEOUT_MS);
    port1.onmessage = ({ data }) => {
      clearTimeout(late);
      resolve(data);
    };
    worker.postMessage(request, [port2]);
  });
}

function start() {
  const button = document.getElementById("notify");
  const status = document.getElementById("notify-status");
  const why = obstacle(window);
  if (why !== undefined) {
    button.hidden = true;
    document.getElementById("notify-kept").hidden = true;
    status.textContent = why;
    return;
  }
  const workers = navigator.serviceWorker;
  const { software } = button.dataset;
  let filter = software === undefined ? "all" : { software };
  let filters = [];

  function show(trouble) {
    const { isOn, text } = state(filters, filter, trouble);
    button.setAttribute("aria-pressed", String(isOn));
    button.classList.toggle("primary", isOn);
    status.textContent = text;
  }

  async function turn(isWanted, filter) {
    // First, while the browser still counts it as the reader's action.
    const refused = isWanted ? refusal(await Notification.requestPermission()) : undefined;
    if (refused !== undefined) return refused;
    status.textContent = isWanted ? "Turning notifications on …" : "Turning notifications off …";
    await workers.register("/notify.js");
    const answer = await ask((await workers.ready).active, { filter, isWanted });
    filters = answer.filters;
    return answer.problem;
  }

  // The button stays enabled during the request: otherwise the keyboard focus would be lost.
  button.addEventListener("click", async () => {
    const isWanted = button.getAttribute("aria-pressed") !== "true";
    const problem = await turn(isWanted, filter).catch((error) => error.message);
    show(problem === undefined ? undefined : `Not done: ${problem}`);
  });

/** Reads which filters are on, for readers who have pressed such a button before. */
  async function look() {
    const registration = await workers.getRegistration();
    if (!registration?.active) return undefined;
    const answer = await ask(registration.active, {});
    filters = answer.filters;
    return answer.problem;
  }

  const looked = look().catch((error) => error.message);
  looked.then((problem) => show(problem === undefined ? undefined : `Notifications may not arrive: ${problem}`));
  // For a page with the answer about one host.
  addEventListener("answered", ({ detail: host }) => {
    filter = { host };
    show();
  });
  button.disabled = false;
}

// Tests import this file without a page.
if (typeof document !== "undefined") start();
