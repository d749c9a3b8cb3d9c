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

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_too_slowly_is_given_up_on() {
    let started = tokio::time::Instant::now();
    let never = Body::new(NeverEnds);
    let problem = read_body::<Submission>(never).await.unwrap_err();
    assert_eq!(
        (problem.status.as_u16(), problem.code),
        (408, "body_too_slow")
    );
    assert_eq!(started.elapsed(), BODY_TIME_MAX);
}

/// A body that never ends and sends nothing.
struct NeverEnds;

impl hyper::body::Body for NeverEnds {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }
}
