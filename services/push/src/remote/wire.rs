//! The protocol between the push process and the daemon: one request per connection, a line of
//! JSON, and one line back.
//!
//! A compromised push process can post messages to the services that the daemon's own settings
//! name, within the bounds of their types and at the daemon's and the gateway's paces. It can
//! request nothing more.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use local_socket::{Ask, Client, WireError};
use protocol::{DeliveryOrder, Host, MessageOutcome, limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Deliver { host: Host, messages: DeliveryOrder },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    Delivered {
        /// An outcome for each message, in their order.
        outcomes: Vec<MessageOutcome>,
    },
    /// The host could not be reached, or the container failed. Any message may have arrived.
    Unreachable { why: String },
    /// The daemon's settings do not name this host, or it must not be contacted.
    NotAPushService {},
    /// There was no slot or no network, or the census's side failed.
    NotNow { why: String, retry_after_s: u64 },
}

impl Ask for Request {
    type Answer = Answer;

    /// The messages of an order, and a host.
    const BYTES_MAX: usize = limits::MESSAGES_BYTES_MAX + 4 * 1024;

    const ANSWER_BYTES_MAX: usize = Self::BYTES_MAX;

    /// The gateway's connection, a container's slot and the container take some six minutes at
    /// most.
    fn answer_time_max(&self) -> Duration {
        Duration::from_mins(10)
    }

    fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
        protocol::parse_line(line)
    }

    /// To be tried again after a minute, as after other failures of the daemon.
    fn failed(why: String) -> Answer {
        Answer::NotNow {
            why,
            retry_after_s: 60,
        }
    }
}

/// The daemon's socket for the push process.
#[derive(Debug, Clone)]
pub struct Daemon {
    client: Client<Request>,
    /// The daemon serves one request at a time, and defers another one for a minute.
    turn: Arc<Mutex<()>>,
}

impl Daemon {
    /// The daemon at this socket; nothing is connected yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            client: Client::new(path),
            turn: Arc::default(),
        }
    }

    /// Sends a request once earlier ones are answered.
    pub async fn ask(&self, request: &Request) -> Result<Answer, WireError> {
        let _turn = self.turn.lock().await;
        self.client.ask(request).await
    }
}

#[cfg(test)]
mod tests {
    use protocol::ListPath;
    use protocol::order::delivery::{Message, MessageBody};

    use super::*;

    const MESSAGE: &str =
        r#"{"path":"/p","ttl_s":1,"topic":"t","authorization":"a","body":"aGk="}"#;

    fn deliver(host: &str, messages: &str) -> String {
        format!(r#"{{"deliver":{{"host":"{host}","messages":[{messages}]}}}}"#)
    }

    #[test]
    fn nothing_but_messages_to_a_host_can_be_said() {
        let good = deliver("push.example", MESSAGE);
        assert!(protocol::parse_line::<Request>(good.as_bytes()).is_ok());
        let many = vec![MESSAGE; limits::MESSAGES_MAX + 1].join(",");
        for line in [
            deliver("push.example", ""),
            deliver("push.example", &many),
            deliver("push.example:8443", MESSAGE),
            deliver("push.example/x", MESSAGE),
            deliver("127.0.0.1", MESSAGE),
            deliver("push.example", &MESSAGE.replace("/p", "//evil.example/")),
            deliver("push.example", &MESSAGE.replace("\"a\"", "\"a\\r\\nx: y\"")),
            deliver("push.example", &MESSAGE.replace("ttl_s", "method")),
            r#"{"deliver":["push.example",[]]}"#.to_owned(),
            r#"{"dump":{"force":true}}"#.to_owned(),
            r#"{"check":{"host":"push.example"}}"#.to_owned(),
        ] {
            let read = protocol::parse_line::<Request>(line.as_bytes());
            assert!(read.is_err(), "{line}");
        }
    }

    /// Otherwise the daemon would never accept a batch that the push process may make.
    #[test]
    fn the_largest_request_and_its_answer_fit_their_lines() {
        let message = |body| Message {
            path: ListPath::parse(&format!("/{}", "x".repeat(1000))).unwrap(),
            ttl_s: u32::MAX,
            topic: "t".repeat(32).try_into().unwrap(),
            authorization: "a".repeat(1024).try_into().unwrap(),
            body: MessageBody::new(vec![0; body]).unwrap(),
        };
        let mut messages = Vec::new();
        for body in [4096, 0] {
            while DeliveryOrder::new([&messages[..], &[message(body)]].concat()).is_ok() {
                messages.push(message(body));
            }
        }
        let bytes: usize = messages.iter().map(Message::bytes).sum();
        assert!(limits::MESSAGES_BYTES_MAX - bytes < 3000, "{bytes}");
        let request = Request::Deliver {
            host: Host::parse(&format!("{}.example", "x".repeat(60))).unwrap(),
            messages: DeliveryOrder::new(messages).unwrap(),
        };
        let line = serde_json::to_vec(&request).unwrap();
        assert!(line.len() <= Request::BYTES_MAX, "{}", line.len());
        assert_eq!(Request::parse::<Request>(&line).unwrap(), request);
        let answer = Answer::Delivered {
            outcomes: vec![
                MessageOutcome::Answered {
                    status: 999,
                    retry_after_s: Some(86_400),
                };
                limits::MESSAGES_MAX
            ],
        };
        let line = serde_json::to_vec(&answer).unwrap();
        assert!(line.len() <= Request::ANSWER_BYTES_MAX, "{}", line.len());
        assert_eq!(Request::parse::<Answer>(&line).unwrap(), answer);
    }
}
