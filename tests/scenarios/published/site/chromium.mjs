// Chromium, driven over two pipes, so that no port is opened and no library is needed.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

// Of one wait. A slow machine takes seconds to start the browser.
const PATIENCE_MS = 60000;

function timely(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Starts the browser with a folder of its own. */
function start(program, profile) {
  const child = spawn(
    program,
    [
      "--headless=new",
      // Chromium's own sandbox takes rights that a container may not give. It sees our own pages alone.
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--remote-debugging-pipe",
      `--user-data-dir=${profile}`,
      "about:blank",
    ],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
  );
  const [, , , commands, events] = child.stdio;
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const answers = new Map();
  const listeners = [];
  let last = 0;
  let rest = "";
  events.setEncoding("utf8");
  events.on("data", (piece) => {
    const messages = (rest + piece).split("\0");
    rest = messages.pop();
    for (const text of messages) {
      const message = JSON.parse(text);
      if (message.id === undefined) {
        for (const listener of listeners) listener(message);
        continue;
      }
      const { resolve, reject } = answers.get(message.id);
      answers.delete(message.id);
      if (message.error === undefined) resolve(message.result);
      else reject(new Error(message.error.message));
    }
  });
  const send = (method, params = {}, sessionId = undefined) => {
    last += 1;
    const id = last;
    const answer = new Promise((resolve, reject) => answers.set(id, { resolve, reject }));
    commands.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return timely(answer, `answer to ${method}`);
  };
  const close = async () => {
    await send("Browser.close").catch(() => child.kill("SIGKILL"));
    await ended;
  };
  return { send, listeners, close };
}

/**
 * Opens one page over the site at `address`.
 *
 * `troubles` is what went wrong on any page: messages on the console, exceptions, requests that left the address. `requests` are all that were made, and
 * `wire.bytes` what came for them, headers included. `examined` is what `axe` and `examine` found, by the name of the look.
 */
export async function open(program, profile, address) {
  const { send, listeners, close } = start(program, profile);
  const troubles = [];
  const requests = [];
  const examined = {};
  const wire = { bytes: 0 };
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const tell = (method, params) => send(method, params, sessionId);
  listeners.push((message) => {
    if (message.sessionId !== sessionId) return;
    const { method, params } = message;
    if (method === "Runtime.exceptionThrown") troubles.push(`exception: ${JSON.stringify(params.exceptionDetails)}`);
    if (method === "Runtime.consoleAPICalled") troubles.push(`console: ${JSON.stringify(params.args)}`);
    // Breaches of the content security policy come here too. That a page is missing or a login
    // refused is expected where it happens.
    if (method === "Log.entryAdded" && !/\/(no-such-page|login)$/.test(params.entry.url ?? "")) troubles.push(`log: ${params.entry.text} ${params.entry.url ?? ""}`);
    if (method === "Network.loadingFinished") wire.bytes += params.encodedDataLength;
    if (method === "Network.requestWillBeSent") {
      requests.push(params.request.url);
      if (!params.request.url.startsWith(`${address}/`)) troubles.push(`request: ${params.request.url}`);
    }
  });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await tell(`${domain}.enable`);

  /** The value of an expression on the page. */
  async function look(expression) {
    const { result, exceptionDetails } = await tell("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails !== undefined) throw new Error(`${expression.slice(0, 1000)}: ${JSON.stringify(exceptionDetails)}`);
    return result.value;
  }

  /** Waits until an expression on the page is true. */
  function until(expression) {
    return look(`new Promise((done) => { const look = () => { if (${expression}) done(true); else requestAnimationFrame(look); }; look(); })`);
  }

  /** Does something that leads to another page, and waits until that is there. */
  async function navigate(act, what) {
    const loaded = new Promise((resolve) => {
      listeners.push((message) => {
        if (message.method === "Page.loadEventFired") resolve();
      });
    });
    await act();
    await timely(loaded, `load of ${what}`);
  }

  function go(path) {
    return navigate(() => tell("Page.navigate", { url: `${address}${path}` }), path);
  }

  /** All cookies of the address, those that no script may read among them, as a header has them. */
  async function cookies() {
    const { cookies } = await tell("Network.getCookies", { urls: [address] });
    return cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  }

  function screen(width, height) {
    return tell("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
  }

  function scheme(value) {
    return tell("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
  }

  function forceColours(value) {
    return tell("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value }] });
  }

  /** Scripts of pages that are opened from now on. What `look` evaluates runs all the same. */
  function runScripts(value) {
    return tell("Emulation.setScriptExecutionDisabled", { value: !value });
  }

  /** Whether pages that are opened from now on may come from the browser's cache, as they do at first. */
  function cached(value) {
    return tell("Network.setCacheDisabled", { cacheDisabled: !value });
  }

  /** Goes back in the history, within one page: such a step loads nothing. */
  function back() {
    return look("new Promise((done) => { addEventListener('popstate', () => done(true), { once: true }); history.back(); })");
  }

  /** A picture of the screen, or of the whole page. */
  async function picture(path, isWhole = false) {
    const whole = async () => ({ captureBeyondViewport: true, clip: { ...(await tell("Page.getLayoutMetrics")).cssContentSize, scale: 1 } });
    const { data } = await tell("Page.captureScreenshot", { format: "png", ...(isWhole ? await whole() : {}) });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  /** Examines the page, with all that opens on it open, by axe-core in `file`. Without the file it does nothing. */
  async function axe(name, file) {
    if (file === "") return;
    await look(readFileSync(file, "utf8"));
    await look(`for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true`);
    // Best practices are rules of axe's own beside those of WCAG.
    examined[name] = await look(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations, passes }) => ({
      violations: violations.map(({ id, help, nodes }) => ({ id, help, at: nodes.map(({ html, failureSummary }) => [html, failureSummary]) })),
      rulesPassed: passes.length,
    }))`);
  }

  /** Examines and pictures the page as it is, at the widths of desks and phones, in light and in dark. It is in light on a desk afterwards. */
  async function examine(name, pictures, file) {
    for (const width of [360, 1280]) {
      for (const colours of ["dark", "light"]) {
        await screen(width, 800);
        await scheme(colours);
        const at = `${name}-${width}-${colours}`;
        await axe(at, file);
        await picture(`${pictures}/${at}.png`, true);
        // A scrollbar takes a part of a desk's screen.
        examined[at] = { ...examined[at], overflow: await look(`document.documentElement.scrollWidth - Math.min(${width}, document.documentElement.clientWidth)`) };
      }
    }
  }

  return { troubles, requests, examined, wire, look, until, navigate, go, back, cookies, screen, scheme, forceColours, runScripts, cached, picture, axe, examine, close };
}
