use super::*;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .fold(
            HeaderMap::new(),
            |mut headers, (name, value): (axum::http::HeaderName, _)| {
                headers.append(name, value);
                headers
            },
        )
}

#[test]
fn one_address_in_the_web_servers_header_is_the_client() {
    let one = headers(&[("x-real-ip", "198.51.100.1")]);
    let address = "198.51.100.1".parse().unwrap();
    assert_eq!(client_of(&one), Client::at(address));
    for unclear in [
        headers(&[]),
        headers(&[("x-real-ip", "unix:")]),
        headers(&[("x-real-ip", "198.51.100.1, 192.0.2.7")]),
        headers(&[("x-real-ip", "198.51.100.1"), ("x-real-ip", "198.51.100.2")]),
    ] {
        assert_eq!(client_of(&unclear), Client::Unknown, "{unclear:?}");
    }
}
