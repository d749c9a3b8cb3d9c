// The parts of a browser that the service worker needs, for tests without one.
import vm from "node:vm";

const source = readFileSync(new URL("./notify.js", import.meta.url), "utf8");

/** A browser with the worker. `answers` has the census's answers by method: status and body. */
export function browser(given = {}) {
  const { permission = "granted", refused, answers = {} } = given;
  const census = { key: "BA-_", GET: [200, undefined], POST: [201, {}], DELETE: [204, null], ...answers };
  const [handlers, shown, opened, done] = [{}, [], [], []];
  const stored = new Map();
  let [subscription, made] = [null, 0];

  function subscribed(applicationServerKey) {
    made += 1;
    const endpoint = `https://push.example/${made}`;
    return {
      endpoint,
      options: { applicationServerKey: Uint8Array.from(Buffer.from(applicationServerKey, "base64url")).buffer },
      toJSON: () => ({ endpoint, expirationTime: null, keys: { p256dh: "P", auth: "A" } }),
      unsubscribe: async () => {
        done.push(`unsubscribe ${endpoint}`);
        subscription = null;
      },
    };
  }
  const context = vm.createContext({
    self: {
      registration: {
        scope: "https://census.example/",
        showNotification: async (title, { body, tag, data }) => shown.push({ title, body, tag, data }),
        pushManager: {
          getSubscription: async () => subscription,
          subscribe: async ({ userVisibleOnly, applicationServerKey }) => {
            if (refused !== undefined) throw Object.assign(new Error("refused"), { name: refused });
            subscription = subscribed(applicationServerKey);
            done.push(`subscribe ${applicationServerKey} ${userVisibleOnly}`);
            return subscription;
          },
        },
      },
      addEventListener: (name, handler) => (handlers[name] = handler),
      clients: { openWindow: async (url) => opened.push(url) },
    },
    caches: {
      open: async () => ({
        match: async (name) => stored.get(name)?.clone(),
        put: async (name, response) => stored.set(name, response),
        delete: async (name) => stored.delete(name),
      }),
    },
    fetch: async (path, { method, body }) => {
      const [status, answer] = census[method];
      done.push([method, path, body, status].filter((part) => part !== undefined).join(" "));
      if (status === 0) throw new Error("no network");
      const text = method === "GET" && answer === undefined ? { key: census.key } : answer;
      return new Response(text === null ? null : JSON.stringify(text), { status });
    },
    Notification: { permission },
    ...{ URL, Response, AbortSignal, btoa },
  });
  vm.runInContext(source, context);

  /** Triggers an event and waits until the worker has handled it. */
  async function happen(name, event = {}) {
    let work;
    handlers[name]({ ...event, waitUntil: (promise) => (work = promise) });
    await work;
  }
  /** The worker's answer to a page. */
  async function ask(data) {
    let answer;
    await happen("message", { data, ports: [{ postMessage: (message) => (answer = message) }] });
    return answer;
  }
  const forget = () => (subscription = null);
  return { census, shown, opened, done, happen, ask, forget, permit: (value) => (context.Notification.permission = value) };
}
