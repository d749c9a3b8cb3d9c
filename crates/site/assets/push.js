// The button that turns notifications on and off. notify.js, the service worker, does what it asks
// for; the browser asks for permission when the button is pressed, and not before.

// The worker asks the census, and the browser its push service.
const TIMEOUT_MS = 90000;

/** Why this page can turn no notifications on, in words; nothing if it can. */
export function obstacle({ isSecureContext, navigator, PushManager, Notification }) {
  if (isSecureContext !== true) return "Browsers offer notifications over HTTPS only.";
  if (navigator.serviceWorker === undefined || PushManager === undefined || Notification === undefined) {
    return "This browser offers no push notifications here. Private windows have none.";
  }
  return undefined;
}

/** Why a browser that was asked for permission will not notify, in words; nothing if it will. */
export function refusal(permission) {
  if (permission === "granted") return undefined;
  if (permission === "denied") return "your browser blocks notifications of this site. Allow them in its settings for this site; private windows have none";
  return "your browser asks for your permission first. Press again and allow it";
}

/** Whether what this page offers is on, and the words for it. */
export function state(filters, filter, trouble) {
  const isOn = filters.some((other) => JSON.stringify(other) === JSON.stringify(filter));
  const words = isOn ? ["Notifications are on. Press again to stop."] : [];
  if (trouble !== undefined) words.unshift(`${trouble.replace(/\.$/, "")}.`);
  return { isOn, text: words.join(" ") };
}

/** The filters that are on after the worker did this. */
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
    // First, while the browser still takes it for the reader's doing.
    const refused = isWanted ? refusal(await Notification.requestPermission()) : undefined;
    if (refused !== undefined) return refused;
    status.textContent = isWanted ? "Turning notifications on …" : "Turning notifications off …";
    await workers.register("/notify.js");
    const answer = await ask((await workers.ready).active, { filter, isWanted });
    filters = answer.filters;
    return answer.problem;
  }

  // The button is not disabled meanwhile, or the keyboard's focus would be lost.
  button.addEventListener("click", async () => {
    const isWanted = button.getAttribute("aria-pressed") !== "true";
    const problem = await turn(isWanted, filter).catch((error) => error.message);
    show(problem === undefined ? undefined : `Not done: ${problem}`);
  });

  /** What is on, of readers who have pressed such a button before. */
  async function look() {
    const registration = await workers.getRegistration();
    if (!registration?.active) return undefined;
    const answer = await ask(registration.active, {});
    filters = answer.filters;
    return answer.problem;
  }

  const looked = look().catch((error) => error.message);
  looked.then((problem) => show(problem === undefined ? undefined : `Notifications may not arrive: ${problem}`));
  // A page that answers about one host.
  addEventListener("answered", ({ detail: host }) => {
    filter = { host };
    show();
  });
  button.disabled = false;
}

// Tests read this file where there is no page.
if (typeof document !== "undefined") start();
