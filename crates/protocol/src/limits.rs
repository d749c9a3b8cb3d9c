//! The bounds of the wire and of a check, each with its reason (invariant I9).

/// Version of the wire that `hello` announces. A checker with another version is a mistake of our
/// deployment, hence a fault. The version rises with every field, even an optional one: unknown
/// fields end a check, and after `hello` that counts against the host.
pub const PROTOCOL_VERSION: u32 = 4;

/// Longest line without its newline. A full `peers` line has 60 KiB, which leaves 4 KiB for its
/// frame.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// All of a check's stdout: 250 000 names of 60 bytes. Real lists have 18 bytes a name.
pub const STDOUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// All of a check's stderr. A sound checker prints nothing there, and an engine buffers unread
/// output.
pub const STDERR_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of stderr that are kept, escaped, to explain a crash.
pub const STDERR_BYTES_KEPT: usize = 1024;

/// Names in all `peers` lines of a check. The longest list seen in practice had 70 000.
pub const PEERS_MAX: u64 = 250_000;

pub const PEERS_PER_LINE_MAX: usize = 500;

/// Bytes of one `peers` line: less than [`LINE_BYTES_MAX`], so that a full line is never a breach.
pub const PEERS_LINE_BYTES_MAX: usize = 60 * 1024;

/// Bytes of a software name or version. The longest in use are below 60.
pub const SOFTWARE_BYTES_MAX: usize = 128;

/// Bytes of any other text in an event: a redirect's target that is no valid name.
pub const TEXT_BYTES_MAX: usize = 200;

/// The whole check, from the container's start (invariant I4).
pub const CHECK_SECONDS_MAX: u64 = 60;

/// The checker ends this many seconds after its start, so that a slow host shows in its report and
/// not as a kill.
pub const CHECKER_SECONDS_MAX: u64 = 55;

/// From a request's last byte to the answer's first.
pub const FIRST_BYTE_SECONDS_MAX: u64 = 10;

/// Time in which each [`BODY_BYTES_PER_WINDOW_MIN`] of a body has to arrive: as long as for the
/// first byte. A host that drips a body would otherwise hold a container slot until the check ends.
pub const BODY_WINDOW_SECONDS: u64 = 10;

/// Bytes of a body, as they come over the wire, in [`BODY_WINDOW_SECONDS`]: 1 KiB a second. The
/// slowest lines in use carry 5 to 20 kB a second, and even a shared one carries more than this. A
/// host that drips sends a few bytes.
pub const BODY_BYTES_PER_WINDOW_MIN: u64 = 10 * 1024;

/// Requests in one check, redirects and pages included.
pub const REQUESTS_MAX: u32 = 40;

/// Requests in one second.
pub const REQUESTS_PER_SECOND: u32 = 4;

/// Redirects followed from one request, all within the origin.
pub const REDIRECTS_MAX: u32 = 5;

/// Decoded bytes of robots.txt that are parsed (RFC 9309 §2.5).
pub const ROBOTS_BYTES_MAX: u64 = 500 * 1024;

/// Decoded bytes of a NodeInfo document. Some contain a whole block list.
pub const NODEINFO_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Decoded bytes of all peers answers of a check.
pub const PEERS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Decoded bytes of one answer in a walk. Forty posts take some 400 KiB, and a long thread twice
/// that. Longer answers are skipped.
pub const WALK_ANSWER_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Names that a walk may report: its 40 requests bring at most some hundred posts each, with two
/// hosts per post.
pub const WALK_HOSTS_MAX: u64 = 10_000;

/// Messages in one delivery. At the request rate they take 25 s, half of a container's time.
pub const MESSAGES_MAX: usize = 100;

/// Bytes of a message's encrypted body: the size that every push service has to accept (RFC 8030
/// §7.2).
pub const MESSAGE_BODY_BYTES_MAX: usize = 4096;

/// Bytes of a message's `Authorization`: a signed token and a key take some 400.
pub const MESSAGE_HEADER_BYTES_MAX: usize = 1024;

/// Bytes of all messages of a delivery as JSON. A hundred of ours take some 200 KiB. Once posted,
/// they and their heads stay well below [`EGRESS_BYTES_UP_MAX`].
pub const MESSAGES_BYTES_MAX: usize = 240 * 1024;

/// Bytes of an order: all messages, a contact, a path and a few short fields.
pub const ORDER_BYTES_MAX: usize = MESSAGES_BYTES_MAX + 4 * 1024;

/// Failed connections after which a delivery posts nothing more. A single failure may be chance.
pub const DELIVERY_FAILURES_MAX: u32 = 3;

/// Bytes of a push service's answer that are read, so that the connection can be kept. Errors have
/// some hundred bytes.
pub const DELIVERY_ANSWER_BYTES_MAX: u64 = 4 * 1024;

/// Longest `Retry-After` that a delivery reports, in seconds: a message is worthless after a day.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 86_400;

/// Decoded bytes of a public list. The largest ones hold whole records of 30 000 servers, some 20
/// MiB. [`EGRESS_BYTES_DOWN_MAX`] bounds the bytes on the wire, so the largest lists have to be
/// compressed.
pub const LIST_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Bytes of a list's path with its query. `GraphQL` queries take some hundred.
pub const LIST_PATH_BYTES_MAX: usize = 1024;

/// Bytes of one line of the public suffix list, whose longest comment has some 250, or of a host's
/// proof.
pub const SUFFIX_LINE_BYTES_MAX: usize = 1024;

/// Bytes of all lines of the public suffix list, ends included. The list of 2026 has 0.33 MiB.
pub const SUFFIX_TEXT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes of all lines of a host's proof, ends included. Ten lines are examined, each a word or a
/// key of less than a hundred bytes.
pub const PROOF_TEXT_BYTES_MAX: usize = 4 * 1024;

/// Lines of either text in one line of the wire. [`PEERS_LINE_BYTES_MAX`] bounds their bytes.
pub const SUFFIX_LINES_PER_LINE_MAX: usize = 1000;

/// Depth of arrays and objects in any JSON that a host sends.
pub const JSON_DEPTH_MAX: usize = 64;

/// Bytes from the host that the gateway forwards in one check: robots.txt, NodeInfo and peers, with
/// room for TLS, headers and incompressible encodings.
pub const EGRESS_BYTES_DOWN_MAX: u64 = 24 * 1024 * 1024;

/// Bytes to the host that the gateway forwards in one check: forty requests of 4 KiB or a delivery,
/// and the handshakes.
pub const EGRESS_BYTES_UP_MAX: u64 = 512 * 1024;

/// Connections through one egress socket. A checker keeps one alive and reconnects if the host
/// closes it after each answer.
pub const EGRESS_CONNECTIONS_MAX: u32 = REQUESTS_MAX;

/// Mount path of all egress directories in a check's container. A check's own directory is the one
/// below it with the check's id.
pub const EGRESS_MOUNT: &str = "/egress";

/// Name of the egress socket in the egress directory.
pub const EGRESS_SOCKET: &str = "https.sock";

/// Name of the file next to the socket that holds the [`crate::CheckOrder`].
pub const ORDER_FILE: &str = "order.json";

/// Name of the file next to the socket with further trust roots, in the lab only. The checker
/// trusts them if the launcher passes `--extra-roots`, and otherwise ends with a fault.
pub const EXTRA_CA_FILE: &str = "ca.pem";
