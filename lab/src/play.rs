//! A persona's behaviour: from DNS over the TLS handshake to the last byte of each answer.
//!
//! Well-formed answers are [`Reply`]. Everything that a sound HTTP library would not send is a
//! script of [`Act`]s, byte for byte.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// The whole behaviour of a persona.
#[derive(Debug, Clone, Default)]
pub struct Play {
    /// Its entry in the gateway's names file.
    pub dns: Dns,
    pub handshake: Handshake,
    /// Answers by path, without the query. The last one for a path applies.
    pub routes: Vec<(String, Answer)>,
    /// The answer for any other path. `None` for 404.
    pub otherwise: Option<Answer>,
    /// How it changes from check to check.
    pub story: Story,
}

/// A persona's entry in the names file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dns {
    #[default]
    Served,
    /// The lab's own address and a port without a listener.
    ClosedPort,
    Nxdomain,
    Servfail,
    Nodata,
    Timeout,
    /// The name is not in the file.
    Absent,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Handshake {
    /// A certificate for the name from the lab's CA.
    #[default]
    Sound,
    Expired,
    /// A certificate that becomes valid in the far future.
    NotYetValid,
    SelfSigned,
    /// A certificate from an intermediate CA whose certificate is not sent.
    IncompleteChain,
    /// A certificate from a CA that nobody trusts, as of a proxy that intercepts TLS.
    Intercepted,
    WrongName,
    PlainHttp,
    Silent,
    /// One byte of the handshake per this interval.
    Slow(Duration),
    Reset,
}

/// How a persona changes from check to check. Its robots.txt counts the checks, because each check
/// requests it once.
#[derive(Debug, Clone, Default)]
pub enum Story {
    #[default]
    Same,
    /// After this number of checks it behaves differently.
    After(u64, Box<Play>),
    Cycle {
        own: u64,
        other: u64,
        play: Box<Play>,
    },
}

/// The parts of a request that personas use.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub host: String,
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The part after the question mark.
    pub query: String,
    pub accept: String,
    pub agent: String,
    /// The body, whose length the reader limits.
    pub body: Bytes,
    /// Whether the client wants the connection to close afterwards.
    pub close: bool,
}

impl Request {
    /// The value of a query parameter, not decoded.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    pub fn number(&self, name: &str, otherwise: usize) -> usize {
        self.parameter(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(otherwise)
    }
}

pub type Maker = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// Creates the n-th piece of a body. `None` at the end.
pub type Pieces = Arc<dyn Fn(u64) -> Option<Bytes> + Send + Sync>;

#[derive(Clone)]
pub enum Answer {
    /// A well-formed answer with its length. The connection stays open.
    Reply(Reply),
    /// A well-formed answer in chunks that are created while sending.
    Chunked(Reply, Pieces),
    /// Exactly these bytes; then the connection closes.
    Script(Vec<Act>),
    Make(Maker),
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// Headers, except `Content-Length` and `Connection`.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

#[derive(Debug, Clone)]
pub enum Act {
    /// Sends these bytes.
    Send(Bytes),
    Pause(Duration),
    /// Sends these bytes repeatedly, with a pause after each, until the connection's own limits end
    /// it.
    Repeat(Bytes, Duration),
    Reset,
    /// Waits until the connection's own limit ends it.
    Hold,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => f.debug_tuple("Reply").field(&reply.status).finish(),
            Self::Chunked(reply, _) => f.debug_tuple("Chunked").field(&reply.status).finish(),
            Self::Script(acts) => f.debug_tuple("Script").field(&acts.len()).finish(),
            Self::Make(_) => f.write_str("Make"),
        }
    }
}

impl Answer {
    pub fn typed(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::Reply(Reply {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
        })
    }

    /// JSON with status 200.
    pub fn json(value: &Value) -> Self {
        Self::typed(200, "application/json; charset=utf-8", value.to_string())
    }

    /// Bytes that claim to be JSON.
    pub fn json_bytes(body: impl Into<Bytes>) -> Self {
        Self::typed(200, "application/json", body)
    }

    /// Plain text with status 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::typed(200, "text/plain; charset=utf-8", body)
    }

    pub fn html(status: u16, body: impl Into<Bytes>) -> Self {
        Self::typed(status, "text/html; charset=utf-8", body)
    }

    /// A status with a JSON error, as servers send for a missing resource.
    pub fn status(status: u16) -> Self {
        Self::typed(status, "application/json", r#"{"error":"no"}"#)
    }

    pub fn redirect(status: u16, location: &str) -> Self {
        Self::html(status, "<html></html>").with("Location", location)
    }

    pub fn make(maker: impl Fn(&Request) -> Self + Send + Sync + 'static) -> Self {
        Self::Make(Arc::new(maker))
    }

    /// Exactly these bytes.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::Script(vec![Act::Send(bytes.into())])
    }

    /// The head, and then the piece again and again with this pause, without end.
    pub fn repeating(head: impl Into<Bytes>, piece: impl Into<Bytes>, pause: Duration) -> Self {
        Self::Script(vec![
            Act::Send(head.into()),
            Act::Repeat(piece.into(), pause),
        ])
    }

    /// Adds a header. Scripts contain their own headers and stay unchanged.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Reply(reply) | Self::Chunked(reply, _) = &mut self {
            reply.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

impl Play {
    /// The answer for a path: the last one added for it.
    pub fn answer(&self, request: &Request) -> Answer {
        let answer = self
            .routes
            .iter()
            .rev()
            .find_map(|(path, answer)| (*path == request.path).then_some(answer))
            .or(self.otherwise.as_ref());
        match answer {
            Some(Answer::Make(maker)) => maker(request),
            Some(answer) => answer.clone(),
            None => Answer::status(404),
        }
    }

    /// The behaviour during the n-th check, counted from one.
    pub fn during(&self, check: u64) -> &Self {
        match &self.story {
            Story::Same => self,
            Story::After(checks, play) => {
                if check > *checks {
                    play.during(check)
                } else {
                    self
                }
            }
            Story::Cycle { own, other, play } => {
                let round = (own + other).max(1);
                if check.saturating_sub(1) % round < *own {
                    self
                } else {
                    play
                }
            }
        }
    }

    #[must_use]
    pub fn route(mut self, path: &str, answer: Answer) -> Self {
        self.routes.push((path.to_owned(), answer));
        self
    }

    #[must_use]
    pub fn robots(self, text: &str) -> Self {
        self.route("/robots.txt", Answer::text(text.to_owned()))
    }

    /// Sets the answer for all other paths.
    #[must_use]
    pub fn otherwise(mut self, answer: Answer) -> Self {
        self.otherwise = Some(answer);
        self
    }

    #[must_use]
    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.handshake = handshake;
        self
    }

    #[must_use]
    pub fn story(mut self, story: Story) -> Self {
        self.story = story;
        self
    }

    /// A persona that exists only in DNS.
    pub fn dns_only(dns: Dns) -> Self {
        Self {
            dns,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(story: Story, checks: u64, expect: bool) {
        let play = Play::default().robots("x").story(story);
        assert_eq!(
            !play.during(checks).routes.is_empty(),
            expect,
            "check {checks}"
        );
    }

    #[test]
    fn a_story_is_told_by_the_number_of_checks() {
        let other = || Box::new(Play::default());
        check(Story::Same, 9, true);
        check(Story::After(2, other()), 2, true);
        check(Story::After(2, other()), 3, false);
        let cycle = || Story::Cycle {
            own: 2,
            other: 1,
            play: other(),
        };
        check(cycle(), 0, true);
        check(cycle(), 2, true);
        check(cycle(), 3, false);
        check(cycle(), 4, true);
    }

    #[test]
    fn the_last_answer_for_a_path_counts() {
        let play = Play::default().robots("first").robots("second");
        let request = Request {
            path: "/robots.txt".to_owned(),
            ..Request::default()
        };
        let Answer::Reply(reply) = play.answer(&request) else {
            panic!("a reply");
        };
        assert_eq!(reply.body, "second");
    }
}
