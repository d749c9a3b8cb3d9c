use std::collections::HashMap;
use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;

const WINDOW: Duration = Duration::from_secs(3600);

fn client(text: &str) -> Client {
    Client::at(text.parse().unwrap())
}

#[test]
fn an_address_is_a_client_and_so_is_a_64_of_ipv6() {
    assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
    assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:0:0:1"));
    assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
}

#[test]
fn the_request_over_the_limit_is_told_when_to_come_again_and_is_let_through_then() {
    let mut clients = Clients::new(2, WINDOW);
    let start = Instant::now();
    let one = client("192.0.2.1");
    let later = start + Duration::from_secs(60);
    assert_eq!(clients.admit(one, start), Ok(()));
    assert_eq!(clients.admit(one, later), Ok(()));
    let wait = clients.admit(one, later).unwrap_err();
    assert_eq!(wait, WINDOW - Duration::from_secs(60));
    assert!(
        clients
            .admit(one, later + wait - Duration::from_millis(1))
            .is_err()
    );
    assert_eq!(clients.admit(one, later + wait), Ok(()));
}

#[test]
fn a_48_full_of_64s_gets_no_further_than_its_factor() {
    let mut clients = Clients::new(3, WINDOW);
    let now = Instant::now();
    let through = (0..=u16::MAX)
        .filter(|&subnet| {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 7, subnet, 0, 0, 0, 1);
            clients.admit(Client::at(address.into()), now).is_ok()
        })
        .count();
    assert_eq!(through, 3 * WIDE_FACTOR);
}

#[test]
fn a_million_clients_take_no_more_memory_than_their_places() {
    let mut clients = Clients::new(2, WINDOW);
    let now = Instant::now();
    for number in 0..1_000_000_u32 {
        clients.admit(Client::V4(number.to_be_bytes()), now).ok();
    }
    let held: usize = clients.narrow.iter().map(VecDeque::len).sum();
    assert!(held <= 2 * WINDOWS, "{held}");
    assert!(clients.narrow.iter().all(|place| place.capacity() <= 4));
    assert_eq!(clients.narrow.len(), WINDOWS);
}

proptest! {
    /// For any clients and times, no window of any client holds more than the limit.
    #[test] // S58
    fn never_more_than_the_limit_in_any_window(
        limit in 1_usize..5,
        requests in proptest::collection::vec((0_u8..4, 0_u64..2000), 1..200),
    ) {
        let mut clients = Clients::new(limit, WINDOW);
        let mut now = Instant::now();
        let mut through: HashMap<u8, Vec<Instant>> = HashMap::new();
        for (who, pause) in requests {
            now += Duration::from_secs(pause);
            if clients.admit(Client::V4([192, 0, 2, who]), now).is_ok() {
                through.entry(who).or_default().push(now);
            }
        }
        for times in through.values() {
            for (index, first) in times.iter().enumerate() {
                let within = times[index..].iter().filter(|time| **time - *first < WINDOW).count();
                prop_assert!(within <= limit, "{within} of {limit}");
            }
        }
    }
}
