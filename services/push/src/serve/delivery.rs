//! Delivers an application's message to the client, or stores it.

use crate::endpoint::Refusal;
use crate::ids::Uaid;
use crate::notification::Notification;
use crate::storage::sqlite::Sqlite;
use crate::storage::{Room, Saved, StorageError, User};

use super::nodes::{self, Reached};
use super::service::Service;

impl Service {
    /// Delivers a message for a user, or stores it until the user connects. One with a TTL
    /// of 0 is only sent directly.
    pub(super) async fn deliver(
        &self,
        user: User,
        message: Notification,
        may_be_direct: bool,
        room: Room,
    ) -> Result<(), Refusal> {
        let uaid = user.uaid;
        let is_direct = may_be_direct || message.ttl_s == 0;
        if let Some(node) = user.node.clone().filter(|_| is_direct) {
            match self.push(&node, uaid, &message).await {
                Reached::Told => {
                    self.meters.direct.inc();
                    return Ok(());
                }
                Reached::NotTold => {}
                Reached::Unreachable => self.forget_node(user).await,
            }
        }
        if message.ttl_s == 0 {
            self.meters.dropped.inc();
            return Ok(());
        }
        let save = move |s: &Sqlite| s.save(uaid, &[message], room);
        match self.stored(save).await? {
            Saved::Stored => self.meters.stored.inc(),
            Saved::NoUser => return Err(Refusal::UserGone),
            Saved::Full => return Err(Refusal::Full),
        }
        // The user may have connected and read the storage before the message was stored.
        match self.storage.call(move |s| s.get_user(uaid)).await {
            Ok(Some(user)) => {
                if let Some(node) = user.node.clone()
                    && self.notify(&node, uaid).await == Reached::Unreachable
                {
                    self.forget_node(user).await;
                }
                Ok(())
            }
            Ok(None) => Err(Refusal::UserGone),
            // It is stored, and is delivered at the next connection at the latest.
            Err(_) => Ok(()),
        }
    }

    async fn push(&self, node: &str, uaid: Uaid, message: &Notification) -> Reached {
        if node != self.settings.node {
            let socket = self.settings.node_socket(node);
            return nodes::push(&socket, uaid, message.clone(), self.now_ms()).await;
        }
        match self.clients.push(uaid, message.clone()) {
            true => Reached::Told,
            false => Reached::NotTold,
        }
    }

    /// Makes a client's connection read the storage, at any node.
    pub(super) async fn notify(&self, node: &str, uaid: Uaid) -> Reached {
        if node != self.settings.node {
            return nodes::notify(&self.settings.node_socket(node), uaid).await;
        }
        match self.clients.notify(uaid) {
            true => Reached::Told,
            false => Reached::NotTold,
        }
    }

    /// Forgets an unreachable node of this user, unless the user has connected since.
    pub(super) async fn forget_node(&self, user: User) {
        let now_ms = self.now_ms();
        let forget = move |s: &Sqlite| s.remove_node(&user, now_ms);
        // A node that stays in the record costs the next message a moment.
        let _failed = self.storage.call(forget).await;
    }

    /// A call of the storage for a request, which is refused if the storage fails.
    pub(super) async fn stored<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Sqlite) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, Refusal> {
        // The storage's thread has counted and logged it.
        self.storage.call(call).await.or(Err(Refusal::Storage))
    }
}
