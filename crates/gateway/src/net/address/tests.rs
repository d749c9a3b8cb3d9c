use proptest::prelude::*;

use super::*;

fn passes(address: &str) -> bool {
    admit(address.parse().unwrap(), PrivateAddresses::Refuse, &[]).is_ok()
}

/// Checks addresses that are separated by spaces.
fn check(addresses: &str, expect: bool) {
    for address in addresses.split(' ') {
        assert_eq!(passes(address), expect, "{address}");
    }
}

#[test] // S2
fn what_nobody_can_reach_is_refused_up_to_its_borders() {
    check(
        "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 \
         127.255.255.255 169.254.0.0 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0 \
         192.0.0.8 192.0.0.11 192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 \
         198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.255 224.0.0.1 239.255.255.255 240.0.0.1 \
         255.255.255.254 255.255.255.255",
        false,
    );
    check(
        ":: ::1 ::2 ::7f00:1 64:ff9b:1::1 64:ff9b:1:ffff::808:808 100::1 100:0:0:1::1 200::1 \
         2001::1 2001:0:ffff::1 2001:1::4 2001:2::1 2001:10::1 2001:1ff:ffff::1 2001:db8::1 \
         2002:808:808::1 3fff::1 3fff:fff:ffff::1 4000::1 5f00::1 fc00::1 fdff:ffff::1 fe80::1 \
         febf::1 fec0::1 ff02::1 ffff::1",
        false,
    );
}

#[test]
fn neighbours_of_the_refused_pass() {
    check(
        "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
         169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.0.9 192.0.0.10 192.0.1.0 \
         192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 \
         198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 8.8.8.8",
        true,
    );
    check(
        "2000::1 2001:1::1 2001:3::1 2001:20::1 2001:200::1 2001:db7:ffff::1 2001:db9::1 2003::1 \
         2606:4700::1111 3ffe::1 3fff:1000::1",
        true,
    );
}

#[test] // S2
fn translated_and_mapped_forms_are_judged_by_what_they_embed() {
    check("64:ff9b::8.8.8.8 ::ffff:8.8.8.8", true);
    check(
        "64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b::224.0.0.1 \
         ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0",
        false,
    );
    let mapped = "::ffff:8.8.8.8".parse().unwrap();
    let admitted = admit(mapped, PrivateAddresses::Refuse, &[]);
    assert_eq!(admitted, Ok("8.8.8.8".parse().unwrap()));
}

#[test]
fn the_lab_reaches_private_addresses_and_nothing_else_more() {
    let lab = |text: &str| admit(text.parse().unwrap(), PrivateAddresses::Allow, &[]).is_ok();
    for address in "127.0.0.1 10.1.2.3 172.17.0.2 192.168.1.1 ::1 fd00::2 8.8.8.8".split(' ') {
        assert!(lab(address), "{address}");
    }
    let refused = "169.254.169.254 0.0.0.0 224.0.0.1 255.255.255.255 192.0.2.1 fe80::1 :: 2002::1";
    for address in refused.split(' ') {
        assert!(!lab(address), "{address}");
    }
}

#[test]
fn the_operators_networks_are_refused_in_every_form() {
    let deny = ["8.8.8.0/24", "2606:4700::/32", "127.9.0.0/16"]
        .map(|network| network.parse::<IpNet>().unwrap());
    for address in "8.8.8.8 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2606:4700::1 127.9.0.1".split(' ') {
        let admitted = admit(address.parse().unwrap(), PrivateAddresses::Allow, &deny);
        assert_eq!(admitted, Err(AddressRefusal::Denied), "{address}");
    }
    assert!(admit("8.8.4.4".parse().unwrap(), PrivateAddresses::Refuse, &deny).is_ok());
}

proptest! {
    /// I2: no form of a private IPv4 address is ever dialled.
    #[test]
    fn embedding_never_launders_an_address(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from(bits);
        let direct = admit(v4.into(), PrivateAddresses::Refuse, &[]).is_ok();
        let mapped = admit(v4.to_ipv6_mapped().into(), PrivateAddresses::Refuse, &[]).is_ok();
        let [a, b, c, d] = v4.octets();
        let word = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, word(a, b), word(c, d));
        prop_assert_eq!(direct, mapped);
        prop_assert_eq!(direct, admit(nat64.into(), PrivateAddresses::Refuse, &[]).is_ok());
        let six_to_four = Ipv6Addr::new(0x2002, word(a, b), word(c, d), 0, 0, 0, 0, 1);
        prop_assert!(admit(six_to_four.into(), PrivateAddresses::Refuse, &[]).is_err());
        prop_assert_eq!(direct, !(v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_documentation()
            || v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0 || v4.octets()[0] >= 240
            || (v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1]))
            || (v4.octets()[..3] == [192, 0, 0] && ![9, 10].contains(&v4.octets()[3]))
            || v4.octets()[..3] == [192, 88, 99]
            || (v4.octets()[0] == 198 && (18..20).contains(&v4.octets()[1]))));
    }

    #[test]
    fn nothing_outside_global_unicast_passes(bits in any::<u128>()) {
        let v6 = Ipv6Addr::from(bits);
        if v6.to_ipv4_mapped().is_none() && translated(v6).is_none() && v6.segments()[0] >> 13 != 1 {
            prop_assert!(admit(v6.into(), PrivateAddresses::Refuse, &[]).is_err());
        }
    }
}
