//! Carries out calls of a session.

use crate::ids::{ChannelId, Uaid};
use crate::storage::StorageError;
use crate::storage::sqlite::Sqlite;

use super::{Answer, Call};

impl Call {
    /// Carries out the call. It waits for the storage, so it must run on a separate thread.
    pub fn run(
        self,
        storage: &Sqlite,
        now_ms: i64,
        endpoint: impl FnOnce(Uaid, ChannelId, Option<&str>) -> Option<String>,
    ) -> Result<Answer, StorageError> {
        let now_s = now_ms.div_euclid(1000);
        Ok(match self {
            Self::MakeEndpoint { uaid, channel, key } => {
                Answer::Endpoint(endpoint(uaid, channel, key.as_deref()))
            }
            Self::GetUser(uaid) => Answer::User(storage.get_user(uaid)?),
            Self::AddUser(user) => Answer::Done(storage.add_user(&user)?),
            Self::UpdateUser(user) => Answer::Done(storage.update_user(&user)?),
            Self::ConfirmNode(uaid, node, connected_ms) => {
                Answer::Presence(storage.confirm_node(uaid, &node, connected_ms)?)
            }
            Self::RemoveUser(uaid) => Answer::Done(storage.remove_user(uaid)?),
            Self::AddChannel(uaid, channel) => Answer::Done(storage.add_channel(uaid, channel)?),
            Self::RemoveChannel(uaid, channel) => {
                Answer::Done(storage.remove_channel(uaid, channel)?)
            }
            Self::FetchTopics(uaid) => Answer::Messages(storage.fetch_topics(uaid, now_s)?),
            Self::FetchAfter(uaid, after_ms) => {
                Answer::Messages(storage.fetch_after(uaid, after_ms, now_s)?)
            }
            Self::Remove(uaid, messages) => {
                storage.remove(uaid, &messages)?;
                Answer::Done(true)
            }
            Self::Advance(uaid, to_ms) => {
                storage.advance(uaid, to_ms)?;
                Answer::Done(true)
            }
        })
    }
}
