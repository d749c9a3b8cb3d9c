// A server before the site whose pages come piece by piece, as over a slow line. Only then does the
// browser draw a page before all of it has come, which is when things move.
import { createServer, request } from "node:http";

// Most pages of a small census come in some ten pieces.
const PIECE_BYTES = 600;
// Chromium draws nothing of a page of the same site in its first half second: by then half has come.
const PAUSE_MS = 120;

async function* pieces(answer, isPage) {
  for await (const chunk of answer) {
    const size = isPage ? PIECE_BYTES : chunk.length;
    for (let start = 0; start < chunk.length; start += size) {
      yield chunk.subarray(start, start + size);
      if (isPage) await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  }
}

/** Its address, how to make it slow or fast (as it is at first), and how to close it. */
export async function drip(site) {
  let isSlow = false;
  const server = createServer((asked, told) => {
    const { method, headers } = asked;
    const passed = request(`${site}${asked.url}`, { method, headers }, async (answer) => {
      told.writeHead(answer.statusCode, answer.headers);
      const isPage = isSlow && (answer.headers["content-type"] ?? "").startsWith("text/html");
      try {
        for await (const piece of pieces(answer, isPage)) told.write(piece);
        told.end();
      } catch {
        told.destroy();
      }
    });
    passed.on("error", () => told.destroy());
    asked.pipe(passed);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    slow: (value) => {
      isSlow = value;
    },
    close: () => server.close(),
  };
}
