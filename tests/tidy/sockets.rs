//! Bytes that nobody reads: all connections of a container, with all that their sockets can hold,
//! fit into its memory limit.

use console::CONNECTIONS_MAX as CONSOLE_CONNECTIONS_MAX;
use intake::serve::CONNECTIONS_MAX as INTAKE_CONNECTIONS_MAX;
use local_socket::http::SEND_BUFFER_BYTES;
use push::serve::Bounds;
use tests::memory_limit_kib;

use crate::tree::{files, read};

/// nginx's buffers for a connection, and the kernel's records of it. Measured with unfinished heads
/// in all connections (`heads_in_all_connections_fit_into_the_web_servers_memory`): 19.1 KiB.
const CONNECTION_KIB: u64 = 20;

/// The kernel begins a segment while its send buffer has room, and a segment grows to 64 KiB.
const SEGMENT_KIB: u64 = 64;

/// A web server without connections: processes, counters and the files in /tmp.
const WEB_SERVER_KIB: u64 = 16 * 1024;

/// The part of its memory that a service may lose to unread answers: one third.
const SERVICE_SHARE: u64 = 3;

fn numbers(text: &str, before: &str) -> Vec<u64> {
    let number = |rest: &str| {
        let digits = rest.split(|next: char| !next.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok())
    };
    text.split(before).skip(1).filter_map(number).collect()
}

/// The only number that follows `before`.
fn number(text: &str, before: &str) -> u64 {
    let found = numbers(text, before);
    assert_eq!(found.len(), 1, "`{before}`: {found:?}");
    found[0]
}

fn memory_kib(compose: &str, service: &str) -> u64 {
    let limit = memory_limit_kib(&read(compose), service).expect("a limit");
    let unit = read(&unit_of(service));
    assert_eq!(limit, number(&unit, "--memory=") * 1024, "{service}");
    limit
}

fn unit_of(service: &str) -> String {
    let name = format!("fedicensus-{service}.container");
    files("deploy/quadlet", &name).remove(0)
}

/// What the sockets of one client can hold: the kernel doubles both sizes.
fn client_kib() -> u64 {
    let confs: String = files("deploy/nginx", ".conf")
        .iter()
        .map(|file| read(file))
        .collect();
    let [receive, send] = ["rcvbuf=", "sndbuf="].map(|name| numbers(&confs, name));
    for sizes in [&receive, &send] {
        assert_eq!(sizes.len(), confs.matches("\n    listen ").count());
    }
    let most = |sizes: &[u64]| sizes.iter().max().copied().expect("a server");
    2 * (most(&receive) + most(&send)) + SEGMENT_KIB
}

#[test] // S43
fn site_sockets_fit_into_its_web_servers_memory() {
    let limit = memory_kib("compose.yaml", "web");
    let connections = number(&read("deploy/nginx/start"), "\n    connections=");
    // A request that a part has not read is in two connections, and takes twice its size.
    let bodies = read("deploy/nginx/site.conf") + &read("deploy/nginx/console.conf");
    let body = numbers(&bodies, "client_max_body_size ").into_iter().max();
    assert!(CONNECTION_KIB + body.expect("a limit of bodies") < client_kib());
    let needed = connections * (CONNECTION_KIB + client_kib()) + WEB_SERVER_KIB;
    assert!(needed <= limit, "{needed} of {limit} KiB");
}

/// The push service always reads, so only clients' sockets fill up. A connection has one request:
/// it is a client with a connection to the service, or holds less.
#[test] // S43
fn push_sockets_fit_into_their_web_servers_memory() {
    let compose = "deploy/compose.push.yaml";
    let limit = memory_kib(compose, "push-web");
    let start = read("deploy/nginx/start");
    let clients = number(&start, "_CLIENTS:-");
    assert_eq!(clients, number(&read(compose), "_CLIENTS: \""));
    assert_eq!(clients, number(&read(&unit_of("push-web")), "_CLIENTS="));
    // The service refuses strangers first, and nginx can not tell them from others.
    let service = Bounds::within(memory_kib(compose, "push") * 1024).clients;
    assert!(u64::try_from(service).expect("a number") < clients);
    assert!(read("deploy/nginx/push.conf").contains("\n    keepalive_timeout 0;\n"));
    let requests = number(&start, "connections=$((clients * 2 + ") / 2;
    let needed = (clients + requests) * (2 * CONNECTION_KIB + client_kib()) + WEB_SERVER_KIB;
    assert!(needed <= limit, "{needed} of {limit} KiB");
}

#[test] // S46
fn unread_answers_take_a_third_of_a_services_memory_at_most() {
    for (service, connections) in [
        ("intake", INTAKE_CONNECTIONS_MAX),
        ("console", CONSOLE_CONNECTIONS_MAX),
    ] {
        let compose = format!("deploy/compose.{service}.yaml");
        let limit = memory_kib(&compose, service);
        // The kernel doubles the size, and lets the last write exceed it by half.
        let needed = connections as u64 * 3 * SEND_BUFFER_BYTES as u64 / 1024;
        assert!(needed <= limit / SERVICE_SHARE, "{service}: {needed}");
    }
}
