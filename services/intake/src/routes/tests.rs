use super::*;

fn headers(addresses: &[&'static str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for address in addresses {
        headers.append(ADDRESS_HEADER, address.parse().unwrap());
    }
    headers
}

#[test]
fn one_address_in_the_web_servers_header_is_the_client() {
    let one = headers(&["198.51.100.1"]);
    let address = "198.51.100.1".parse().unwrap();
    assert_eq!(client_of(&one), Client::at(address));
    for unclear in [
        headers(&[]),
        headers(&["unix:"]),
        headers(&["198.51.100.1, 192.0.2.7"]),
        headers(&["198.51.100.1", "198.51.100.2"]),
    ] {
        assert_eq!(client_of(&unclear), Client::Unknown, "{unclear:?}");
    }
}
