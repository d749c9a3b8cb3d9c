// Sends an empty message to an endpoint, signed by the census (RFC 8292), and prints the status of
// the answer.
//
// node endpoint.mjs ENDPOINT KEY
//
// KEY is the census's key, PKCS #8 in hexadecimal digits.
import { createPrivateKey, createPublicKey, sign } from "node:crypto";

const [endpoint, pkcs8] = process.argv.slice(2);
const key = createPrivateKey({ key: Buffer.from(pkcs8, "hex"), format: "der", type: "pkcs8" });
const { x, y } = createPublicKey(key).export({ format: "jwk" });
const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claims = { aud: new URL(endpoint).origin, exp: Math.floor(Date.now() / 1000) + 3600 };
const signed = `${part({ typ: "JWT", alg: "ES256" })}.${part(claims)}`;
const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" }).toString("base64url");
const Authorization = `vapid t=${signed}.${signature},k=${point.toString("base64url")}`;
const { status } = await fetch(endpoint, { method: "POST", headers: { TTL: "60", Authorization } });
process.stdout.write(`${status}\n`);
