// The service worker: shows the census's messages and keeps this browser's subscription. A browser
// has one subscription, with a filter for each button that is on. Pages request changes by message.

// A push service accepts less.
const MESSAGE_CHARS_MAX = 4096;
const TITLE_CHARS_MAX = 200;
const BODY_CHARS_MAX = 1000;
const TIMEOUT_MS = 20000;

// The endpoint that the census knows, and the filters, so that they survive a restart of the
// browser.
const STORE = "notifications";
const KEPT = "/notifications";

/** The checked content of a message. An unreadable one is shown too: browsers require it. */
function notification(text) {
  let message;
  try {
    message = text.length <= MESSAGE_CHARS_MAX ? JSON.parse(text) : null;
  } catch {
    message = null;
  }
  const { title, body, page } = message !== null && typeof message === "object" ? message : {};
  const isText = (value, charsMax) => typeof value === "string" && value !== "" && value.length <= charsMax;
  if (!isText(title, TITLE_CHARS_MAX) || !isText(body, BODY_CHARS_MAX)) return { title: "This census has news", body: "", url: pageUrl("") };
  return { title, body, url: pageUrl(page) };
}

/** A page below the site's root; the start page if the address is elsewhere. */
function pageUrl(page) {
  const root = self.registration.scope;
  try {
    const { href } = new URL(String(page ?? ""), root);
    return href.startsWith(root) ? href : root;
  } catch {
    return root;
  }
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

async function kept() {
  const found = await (await caches.open(STORE)).match(KEPT);
  return found === undefined ? { endpoint: null, filters: [] } : found.json();
}

async function keep(endpoint, filters) {
  const store = await caches.open(STORE);
  await (filters.length === 0 ? store.delete(KEPT) : store.put(KEPT, new Response(JSON.stringify({ endpoint, filters }))));
}

/** Sends a request to the census; throws an error with a text for the reader. */
async function call(method, asked) {
  const options = { method, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(TIMEOUT_MS) };
  if (asked !== undefined) Object.assign(options, { headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked) });
  const response = await fetch("/subscribe", options).catch((error) => {
    throw new Error(`this census could not be reached (${error.message}). Try again in a minute`);
  });
  // An answer that is not JSON comes from the web server in front.
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (response.ok) return answer;
  if (response.status === 429) throw new Error("there were too many requests. Try again in a minute");
  throw new Error(typeof answer?.error === "string" ? answer.error : `the server answered with status ${response.status}`);
}

const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** This browser's subscription for the census's key: the existing one, or a new one. */
async function subscription() {
  const { key } = (await call("GET")) ?? {};
  if (typeof key !== "string") throw new Error("the census gave no key");
  const { pushManager } = self.registration;
  const old = await pushManager.getSubscription();
  if (old !== null) {
    if (base64url(old.options.applicationServerKey) === key) return old;
    await old.unsubscribe();
  }
  try {
    return await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch (error) {
    if (error.name === "NotAllowedError") throw new Error("your browser does not allow notifications of this site");
    throw new Error(`your browser's push service could not be reached (${error.message}). Try again later`);
  }
}

/** Sends the census all of this browser's filters, or only the added ones if it knows the rest. */
async function ask(filters, added) {
  const { endpoint } = await kept();
  const made = await subscription();
  const { keys } = made.toJSON();
  try {
    // The former endpoint answers 410, so the census drops its subscription.
    for (const filter of made.endpoint === endpoint ? added : filters) await call("POST", { endpoint: made.endpoint, keys, filter });
  } catch (error) {
    if ((await kept()).filters.length === 0) await made.unsubscribe();
    throw error;
  }
  await keep(made.endpoint, filters);
}

async function add(filter) {
  const others = (await kept()).filters.filter((other) => !same(other, filter));
  await ask([...others, filter], [filter]);
}

async function remove(filter) {
  const { endpoint, filters } = await kept();
  const others = filters.filter((other) => !same(other, filter));
  if (others.length > 0) {
    await call("DELETE", { endpoint, filter });
    await keep(endpoint, others);
    return;
  }
  const subscribed = await self.registration.pushManager.getSubscription();
  // The endpoint answers 410 from then on, so a census that is unreachable now notices later.
  if (endpoint !== null) await call("DELETE", { endpoint }).catch(() => {});
  await subscribed?.unsubscribe();
  await keep(null, []);
}

/** Renews the filters if the browser has lost its subscription or the census its key. */
async function renew() {
  const { filters } = await kept();
  if (filters.length === 0) return;
  if (Notification.permission === "granted") await ask(filters, []);
  // The browser ended the subscription when the permission was withdrawn.
  else await keep(null, []);
}

// One change at a time: each reads the result of the one before it.
let last = Promise.resolve();
function inTurn(change) {
  const done = last.then(change);
  last = done.catch(() => {});
  return done;
}

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("push", (event) => {
  const { title, body, url } = notification(event.data?.text() ?? "");
  // A newer message about the same subject replaces an unread one.
  event.waitUntil(self.registration.showNotification(title, { body, tag: title, renotify: true, data: url }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow(event.notification.data));
});

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(inTurn(renew)));

self.addEventListener("message", (event) => {
  const { filter, isWanted } = event.data;
  const change = isWanted === true ? add : isWanted === false ? remove : renew;
  const answer = async () => {
    const problem = await inTurn(() => change(filter)).then(
      () => undefined,
      (error) => error.message,
    );
    event.ports[0].postMessage({ filters: (await kept()).filters, problem });
  };
  event.waitUntil(answer());
});
