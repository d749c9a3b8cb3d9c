//! What the answer of a push service means for a message (RFC 8030 §5, §7.3).

use protocol::MessageOutcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// The push service has accepted it.
    Taken,
    Ended,
    /// The push service will never accept it.
    Dropped,
    Later,
}

impl AttemptResult {
    pub fn of(outcome: &MessageOutcome) -> Self {
        match outcome {
            MessageOutcome::Answered { status, .. } => match status {
                200..=299 => Self::Taken,
                404 | 410 => Self::Ended,
                408 | 429 | 500..=599 => Self::Later,
                _ => Self::Dropped,
            },
            MessageOutcome::Unposted { .. } => Self::Later,
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::UnpostedReason;

    use super::*;

    #[test]
    fn only_what_may_pass_is_posted_again_and_only_404_and_410_end_a_subscription() {
        for (statuses, expect) in [
            (&[200, 201, 202][..], AttemptResult::Taken),
            (&[301, 400, 403, 413, 600], AttemptResult::Dropped),
            (&[404, 410], AttemptResult::Ended),
            (&[429, 500, 503], AttemptResult::Later),
        ] {
            for &status in statuses {
                let outcome = MessageOutcome::Answered {
                    status,
                    retry_after_s: None,
                };
                assert_eq!(AttemptResult::of(&outcome), expect, "{status}");
            }
        }
        for reason in [
            UnpostedReason::Tls,
            UnpostedReason::Http,
            UnpostedReason::Timeout,
            UnpostedReason::NotSent,
        ] {
            assert_eq!(
                AttemptResult::of(&MessageOutcome::Unposted { reason }),
                AttemptResult::Later
            );
        }
    }
}
