// Turns typed or pasted text into the host's canonical name, as the census writes it, or reports
// what is wrong with it.

const NAME_BYTES_MAX = 253;
const LABEL_BYTES_MAX = 63;
const TYPED_MAX = 4096;

/**
 * `{ host }`, or `{ problem }` as text. Accepts names, addresses of pages and addresses of
 * accounts, in any case, with or without umlauts.
 */
export function canonical(typed) {
  const text = typed.trim();
  if (text === "") return { problem: "Type a domain, such as mastodon.social." };
  if (text.length > TYPED_MAX) return { problem: "That is too long for a domain." };
  let host;
  try {
    // An account's host is behind its last @; a page's scheme does not matter.
    const rest = text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, "").replace(/^@/, "");
    host = new URL(`https://${rest}`).hostname.replace(/\.$/, "");
  } catch {
    return { problem: "That is not a domain. Type one such as mastodon.social." };
  }
  if (host.startsWith("[") || /^[0-9.]+$/.test(host)) {
    return { problem: "That is an IP address; the census knows hosts by their domains." };
  }
  const labels = host.split(".");
  if (labels.length < 2) return { problem: "A domain has at least one dot, such as mastodon.social." };
  const odd = [...host].find((letter) => !/[a-z0-9.-]/.test(letter));
  if (odd !== undefined) return { problem: `A domain can't contain “${odd}”.` };
  if (host.length > NAME_BYTES_MAX || !labels.every(isLabel)) return { problem: "That is not a valid domain: a part of it is empty, too long, or begins or ends with a hyphen." };
  return { host };
}

// Letters, digits and inner hyphens. Only internationalised names have hyphens as both their third
// and fourth characters.
function isLabel(label) {
  return (
    label.length <= LABEL_BYTES_MAX &&
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label) &&
    (label.slice(2, 4) !== "--" || label.startsWith("xn--"))
  );
}
