// What somebody typed or pasted → the host's canonical name, as the census writes it; or what is wrong with it.

const NAME_BYTES_MAX = 253;
const LABEL_BYTES_MAX = 63;
const TYPED_MAX = 4096;

/** `{ host }`, or `{ problem }` in words. Takes names, addresses of pages and of accounts, in any case, with umlauts or without. */
export function canonical(typed) {
  const text = typed.trim();
  if (text === "") return { problem: "Type the name of a host, such as mastodon.social." };
  if (text.length > TYPED_MAX) return { problem: "That is too long to be a host's name." };
  let host;
  try {
    // An account's host stands behind its last @; a page's scheme does not matter.
    const rest = text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, "").replace(/^@/, "");
    host = new URL(`https://${rest}`).hostname.replace(/\.$/, "");
  } catch {
    return { problem: "That is no name of a host." };
  }
  if (host.startsWith("[") || /^[0-9.]+$/.test(host)) {
    return { problem: "That is an address; the census knows hosts by their names." };
  }
  const labels = host.split(".");
  if (labels.length < 2) return { problem: "A name has at least one dot, such as mastodon.social." };
  if (host.length > NAME_BYTES_MAX || !labels.every(isLabel)) return { problem: "That is no name of a host." };
  return { host };
}

// Letters, digits, hyphens inside; two hyphens in the third and fourth place are for internationalised names alone.
function isLabel(label) {
  return (
    label.length <= LABEL_BYTES_MAX &&
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label) &&
    (label.slice(2, 4) !== "--" || label.startsWith("xn--"))
  );
}
