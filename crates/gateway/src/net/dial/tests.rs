use std::net::{IpAddr, Ipv4Addr, TcpListener};

use super::*;
use crate::net::family::SystemRoutes;
use crate::net::pace::Charged;
use crate::settings::Paces;
use crate::wire::control::Deferral;

#[derive(Debug)]
struct NoRoutes;

impl Routes for NoRoutes {
    fn reaches(&self, _address: IpAddr) -> bool {
        false
    }
}

struct Machine {
    paces: PaceLedger,
    settings: Settings,
    dials_total: AtomicU64,
}

impl Machine {
    fn new(paces: Paces) -> Self {
        let settings = Settings {
            paces,
            ..Settings::default()
        };
        Self {
            paces: PaceLedger::new(&settings),
            settings,
            dials_total: AtomicU64::new(0),
        }
    }

    async fn dial(&self, routes: &dyn Routes, targets: &[SocketAddr]) -> Dialled {
        self.dial_first(None, routes, targets).await
    }

    async fn dial_first(
        &self,
        wished: Option<Family>,
        routes: &dyn Routes,
        targets: &[SocketAddr],
    ) -> Dialled {
        let dialler = Dialler {
            paces: &self.paces,
            routes,
            settings: &self.settings,
            dials_total: &self.dials_total,
        };
        dialler.dial_first(wished, targets).await
    }
}

fn unpaced() -> Machine {
    Machine::new(Paces::default().divided(u32::MAX))
}

fn listening(address: [u8; 4]) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::from(address), 0)).unwrap();
    let target = listener.local_addr().unwrap();
    (listener, target)
}

/// A port without a listener.
fn refusing(address: [u8; 4]) -> SocketAddr {
    listening(address).1
}

/// A listener whose queue is full: the next SYN is dropped.
fn silent() -> (rustix::fd::OwnedFd, Vec<std::net::TcpStream>, SocketAddr) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&socket, 0).unwrap();
    let target = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    let queued = vec![std::net::TcpStream::connect(target).unwrap()];
    (socket, queued, target)
}

#[tokio::test]
async fn both_sides_send_segments_that_pass_the_narrowest_path() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(address).unwrap();
        let target = listener.local_addr().unwrap();
        let Dialled::Up(dialled, _) = unpaced().dial(&SystemRoutes, &[target]).await else {
            panic!("{target}");
        };
        for socket in [
            SockRef::from(&dialled),
            SockRef::from(&listener.accept().unwrap().0),
        ] {
            assert!(socket.tcp_mss().unwrap() <= SEGMENT_BYTES_MAX, "{target}");
        }
    }
}

#[test]
fn families_are_interleaved_ipv6_first() {
    let targets =
        ["1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1", "[2600::1]:1"].map(|text| text.parse().unwrap());
    let order: Vec<String> = interleaved(&targets)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        order,
        ["[2600::1]:1", "1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1"]
    );
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let machine = unpaced();
    let (_listener, good) = listening([127, 0, 0, 1]);
    let dialled = machine
        .dial(&SystemRoutes, &[refusing([127, 0, 1, 1]), good])
        .await;
    assert!(
        matches!(dialled, Dialled::Up(_, target) if target == good),
        "{dialled:?}"
    );
    assert_eq!(machine.dials_total.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn at_most_four_addresses_are_dialled() {
    let machine = unpaced();
    let targets: Vec<_> = (1..=6).map(|index| refusing([127, 0, index, 1])).collect();
    let dialled = machine.dial(&SystemRoutes, &targets).await;
    let Dialled::Failed { families, detail } = dialled else {
        panic!("{dialled:?}");
    };
    assert_eq!(families, [Family::V4]);
    assert!(detail.contains("127.0.1.1: refused"), "{detail}");
    assert_eq!(machine.dials_total.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_time_out_and_is_the_hosts() {
    let (_socket, _queued, target) = silent();
    let dialled = unpaced().dial(&SystemRoutes, &[target]).await;
    let Dialled::Failed { families, detail } = dialled else {
        panic!("{dialled:?}");
    };
    assert_eq!(
        (families, detail.as_str()),
        (vec![Family::V4], "127.0.0.1: timed out")
    );
}

#[tokio::test]
async fn an_address_out_of_turn_is_not_dialled_and_nobody_is_blamed() {
    let machine = Machine::new(Paces::default());
    let (_listener, good) = listening([127, 0, 0, 1]);
    assert!(matches!(
        machine.dial(&SystemRoutes, &[good]).await,
        Dialled::Up(..)
    ));
    let again = machine.dial(&SystemRoutes, &[good]).await;
    assert!(
        matches!(again, Dialled::Late(late) if late.why == Deferral::AddressPace),
        "{again:?}"
    );
    // One refuses, the other may not be dialled yet, so the host has no verdict.
    let undecided = machine
        .dial(&SystemRoutes, &[refusing([127, 0, 9, 1]), good])
        .await;
    assert!(matches!(undecided, Dialled::Late(_)), "{undecided:?}");
    assert_eq!(machine.dials_total.load(Ordering::Relaxed), 2);
}

fn paced() -> Machine {
    Machine::new(Paces::default())
}

/// A block is paced by checks, not by dials: the second address of a host does not wait for its
/// first.
#[tokio::test]
async fn a_dead_host_with_two_addresses_in_one_block_gets_its_verdict() {
    let machine = paced();
    let targets = [refusing([127, 0, 1, 1]), refusing([127, 0, 1, 2])];
    let dialled = machine.dial(&SystemRoutes, &targets).await;
    let Dialled::Failed { families, detail } = dialled else {
        panic!("{dialled:?}");
    };
    assert_eq!(families, [Family::V4]);
    assert_eq!(detail, "127.0.1.1: refused; 127.0.1.2: refused");
    // The next host in that block has to wait.
    let (_listener, other) = listening([127, 0, 1, 3]);
    let other = machine.dial(&SystemRoutes, &[other]).await;
    assert!(
        matches!(other, Dialled::Late(late) if late.why == Deferral::BlockPace),
        "{other:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_living_host_whose_first_address_refuses_has_its_second_tried_at_once() {
    let (_listener, good) = listening([127, 0, 1, 2]);
    let start = tokio::time::Instant::now();
    let dialled = paced()
        .dial(&SystemRoutes, &[refusing([127, 0, 1, 1]), good])
        .await;
    assert!(
        matches!(dialled, Dialled::Up(_, target) if target == good),
        "{dialled:?}"
    );
    assert!(start.elapsed() < Paces::default().block);
}

#[tokio::test(start_paused = true)]
async fn a_living_host_whose_first_address_is_silent_has_its_second_tried_at_once() {
    let (_socket, _queued, first) = silent();
    let (_listener, good) = listening([127, 0, 0, 2]);
    let start = tokio::time::Instant::now();
    let dialled = paced().dial(&SystemRoutes, &[first, good]).await;
    assert!(
        matches!(dialled, Dialled::Up(_, target) if target == good),
        "{dialled:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// With the time at which only the second address is in turn, the first would then be before its
/// turn, and so on forever.
#[tokio::test(start_paused = true)]
async fn a_dead_host_that_was_tried_in_part_is_told_when_it_can_be_tried_whole() {
    let machine = paced();
    let dead = [refusing([127, 0, 1, 1]), refusing([127, 0, 2, 1])];
    let neighbour = machine.dial(&SystemRoutes, &dead[1..]).await;
    assert!(matches!(neighbour, Dialled::Failed { .. }), "{neighbour:?}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let undecided = machine.dial(&SystemRoutes, &dead).await;
    let Dialled::Late(late) = undecided else {
        panic!("{undecided:?}");
    };
    tokio::time::sleep(late.retry_after).await;
    let decided = machine.dial(&SystemRoutes, &dead).await;
    assert!(matches!(decided, Dialled::Failed { .. }), "{decided:?}");
}

/// All dials together were too many for a moment; the next attempt is made when there is room
/// again.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_had_no_dial_slot_is_made_up_for() {
    let machine = paced();
    let (_socket, _queued, first) = silent();
    let (_listener, good) = listening([127, 0, 9, 2]);
    let crowd = async {
        tokio::time::sleep(STAGGER - Duration::from_millis(1)).await;
        let now = tokio::time::Instant::now().into_std();
        for index in 0..=20 {
            let one = [SocketAddr::from(([127, 1, index, 1], 1))];
            machine
                .paces
                .own()
                .unwrap()
                .charge_dial(&one, &mut Charged::default(), now);
        }
    };
    let targets = [first, good];
    let (dialled, ()) = tokio::join!(machine.dial(&SystemRoutes, &targets), crowd);
    assert!(
        matches!(dialled, Dialled::Up(_, target) if target == good),
        "{dialled:?}"
    );
}

/// A canary is dialled over the family for which the waiting failures lack a witness. That wish
/// must not affect its verdict.
#[tokio::test]
async fn the_wished_family_is_dialled_alone_and_the_other_when_it_has_failed() {
    let (_v4, v4) = listening([127, 0, 0, 1]);
    let listener = TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).unwrap();
    let v6 = listener.local_addr().unwrap();
    let both = [v6, v4];
    for (wished, expect) in [(Family::V4, v4), (Family::V6, v6)] {
        let machine = unpaced();
        let dialled = machine.dial_first(Some(wished), &SystemRoutes, &both).await;
        assert!(
            matches!(dialled, Dialled::Up(_, target) if target == expect),
            "{wished:?}: {dialled:?}"
        );
        assert_eq!(machine.dials_total.load(Ordering::Relaxed), 1);
    }
    let dead = refusing([127, 0, 1, 1]);
    let machine = unpaced();
    let dialled = machine
        .dial_first(Some(Family::V4), &SystemRoutes, &[v6, dead])
        .await;
    assert!(
        matches!(dialled, Dialled::Up(_, target) if target == v6),
        "{dialled:?}"
    );
    drop(listener);
    let dialled = machine
        .dial_first(Some(Family::V4), &SystemRoutes, &[v6, dead])
        .await;
    let Dialled::Failed { families, detail } = dialled else {
        panic!("{dialled:?}");
    };
    assert_eq!(families, [Family::V4, Family::V6]);
    assert_eq!(detail, "127.0.1.1: refused; ::1: refused");
}

/// I5: if the network disappears while dialling, the failure is ours.
#[tokio::test]
async fn a_failure_without_a_route_is_not_the_hosts() {
    let dialled = unpaced().dial(&NoRoutes, &[refusing([127, 0, 0, 1])]).await;
    assert!(matches!(dialled, Dialled::NoRoute), "{dialled:?}");
}

#[test]
fn what_this_machine_lacks_is_ours() {
    for (errno, ours) in [
        (Errno::MFILE, true),
        (Errno::PERM, true),
        (Errno::ADDRNOTAVAIL, true),
        (Errno::ACCESS, false),
        (Errno::HOSTUNREACH, false),
        (Errno::CONNREFUSED, false),
    ] {
        assert_eq!(is_ours(&errno.into()), ours, "{errno}");
    }
    assert!(!is_ours(&io::ErrorKind::TimedOut.into()));
}
