//! Posts ready-made push messages (RFC 8030). robots.txt does not apply: the push service gave out
//! the endpoint for exactly this use.

use protocol::Message;
use protocol::limits::DELIVERY_ANSWER_BYTES_MAX;
use reqwest::Response;

use super::failure::Failure;
use super::{Fetcher, KeptAlive};

/// What a push service answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// The HTTP status. Redirects are not followed.
    pub status: u16,
    /// `Retry-After` in seconds from now.
    pub retry_after_s: Option<u64>,
}

impl Fetcher {
    /// Posts a message, and posts it again if the kept-alive connection turned out to be closed. A
    /// message that arrives twice replaces itself by its topic.
    pub async fn post(&mut self, message: &Message) -> Result<Posted, Failure> {
        let reused = std::mem::replace(&mut self.kept_alive, KeptAlive::No);
        let response = match self.post_once(message).await {
            Err(Failure::Http) if reused == KeptAlive::Perhaps => self.post_once(message).await,
            outcome => outcome,
        }?;
        self.kept_alive = KeptAlive::after(&response);
        let answer = self.answer(self.origin.clone(), response);
        let posted = Posted {
            status: answer.status,
            retry_after_s: answer.retry_after_s,
        };
        // The body is ignored, but a connection is reused only if its body was read to the end.
        if let Ok(mut body) = answer.body(DELIVERY_ANSWER_BYTES_MAX) {
            while let Ok(Some(_piece)) = body.next().await {}
        }
        // Lets the connection's task return the connection to the pool.
        tokio::task::yield_now().await;
        Ok(posted)
    }

    async fn post_once(&mut self, message: &Message) -> Result<Response, Failure> {
        // A path of an order always makes an address.
        let url = self.origin.join(message.path.as_str());
        let url = url.map_err(|_no_url| Failure::Http)?;
        self.wait_for_turn().await?;
        let request = self
            .client
            .post(url)
            .header("ttl", message.ttl_s)
            .header("topic", message.topic.as_str())
            .header("urgency", "normal")
            .header("authorization", message.authorization.as_str())
            .header("content-encoding", "aes128gcm")
            .header("content-type", "application/octet-stream")
            .body(message.body.as_bytes().to_vec());
        self.exchange(request).await
    }
}
