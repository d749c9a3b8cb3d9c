//! The table `host_decisions`: moderators' decisions about single hosts. A decision is never
//! changed; another decision undoes it.

use census::state::OptedOutBy;
use census::time::Timestamp;
use protocol::Host;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::queue::handle::Writer;
use crate::tables::hosts::opt_out::{self, OptIn, OptOut};

pub(crate) const RECORD: &str =
    "INSERT INTO host_decisions (at, host, decision, reason, who) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(crate) const BY_ID: &str = "SELECT host, decision, NOT EXISTS (SELECT 1 FROM host_decisions AS newer \
     WHERE newer.host = host_decisions.host AND newer.id > ?1) FROM host_decisions WHERE id = ?1";

pub(crate) const REASON_BEFORE: &str = "SELECT reason FROM host_decisions \
     WHERE host = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1";

/// A moderator's decision about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostDecision {
    /// The host is no longer checked or listed.
    TakeOut,
    /// Ends [`HostDecision::TakeOut`].
    PutBack,
}

impl HostDecision {
    /// Value of the column `decision`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TakeOut => "take_out",
            Self::PutBack => "put_back",
        }
    }

    /// Parses the column `decision`. The schema allows no other values.
    pub(crate) fn parse(word: &str) -> Self {
        match word {
            "put_back" => Self::PutBack,
            _ => Self::TakeOut,
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::TakeOut => Self::PutBack,
            Self::PutBack => Self::TakeOut,
        }
    }
}

/// Who decides, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub at: Timestamp,
    /// Who decides, and how: `moderator ada`, `operator, by command`.
    pub who: String,
    pub reason: String,
}

/// The effect of a moderator's decision about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostDecided {
    /// The effect of [`HostDecision::TakeOut`].
    Out(OptOut),
    /// The effect of [`HostDecision::PutBack`].
    Back(OptIn),
}

impl HostDecided {
    fn has_effect(self) -> bool {
        match self {
            Self::Out(OptOut::Done | OptOut::DoneListed | OptOut::Joins { .. })
            | Self::Back(OptIn::Done | OptIn::StillOut { .. }) => true,
            Self::Out(OptOut::Stands { .. })
            | Self::Back(OptIn::NotTheirs { .. } | OptIn::NotOptedOut | OptIn::Unknown) => false,
        }
    }
}

/// The effect of undoing a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone<T> {
    /// The decision before it is in force again.
    Done(T),
    /// There is a later decision about the same host or group.
    Superseded,
    Unknown,
}

impl Writer {
    /// Takes a host out, or puts it back, for a moderator. The decision is recorded if it has an
    /// effect.
    pub async fn decide_host(
        &self,
        host: &Host,
        decision: HostDecision,
        ruling: Ruling,
    ) -> Result<HostDecided, StoreError> {
        let named = host.clone();
        let done = self
            .call(move |c| decide(c, &named, decision, &ruling))
            .await?;
        self.known.learn(host);
        Ok(done)
    }

    /// Undoes the newest decision about a host, by its id. If that takes the host out again, the
    /// reason is the original one; otherwise it is `ruling`'s.
    pub async fn undo_host_decision(
        &self,
        id: i64,
        ruling: Ruling,
    ) -> Result<Undone<(Host, HostDecided)>, StoreError> {
        self.call(move |c| {
            let found: Option<(String, String, bool)> = c
                .prepare_cached(BY_ID)?
                .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((name, word, is_newest)) = found else {
                return Ok(Undone::Unknown);
            };
            // A name that is not valid in this version is parked, and can't be decided about.
            let Some(host) = Host::parse(&name).ok().filter(|_| is_newest) else {
                return Ok(Undone::Superseded);
            };
            let decision = HostDecision::parse(&word).opposite();
            let mut ruling = ruling.clone();
            if decision == HostDecision::TakeOut {
                // The host is taken out again for the original reason.
                let mut before = c.prepare_cached(REASON_BEFORE)?;
                let before = before.query_row(params![name, id], |row| row.get(0));
                ruling.reason = before.optional()?.unwrap_or(ruling.reason);
            }
            let decided = decide(c, &host, decision, &ruling)?;
            Ok(Undone::Done((host, decided)))
        })
        .await
    }
}

fn decide(
    connection: &Connection,
    host: &Host,
    decision: HostDecision,
    ruling: &Ruling,
) -> Result<HostDecided, StoreError> {
    let by = OptedOutBy::Moderator;
    let decided = match decision {
        HostDecision::TakeOut => {
            HostDecided::Out(opt_out::opt_out(connection, host, by, ruling.at)?)
        }
        HostDecision::PutBack => {
            HostDecided::Back(opt_out::opt_in(connection, host, by, ruling.at)?)
        }
    };
    if decided.has_effect() {
        let word = decision.as_str();
        connection.prepare_cached(RECORD)?.execute(params![
            ruling.at.0,
            host.as_str(),
            word,
            ruling.reason,
            ruling.who
        ])?;
    }
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use census::state::State;
    use kit::{NOW, host};
    use tempfile::TempDir;

    use super::*;
    use crate::Store;

    fn census() -> (Store, TempDir) {
        let folder = TempDir::new().unwrap();
        let store = crate::open(&folder.path().join("census.db")).unwrap();
        (store, folder)
    }

    fn ruling(who: &str) -> Ruling {
        Ruling {
            at: NOW,
            who: who.to_owned(),
            reason: "spam".to_owned(),
        }
    }

    fn state(store: &Store, name: &str) -> Option<State> {
        let found = store.reader().unwrap().record(&host(name)).unwrap();
        found.map(|found| found.record.state)
    }

    #[tokio::test]
    async fn a_host_is_taken_out_and_put_back_and_the_log_says_by_whom() {
        let (store, _folder) = census();
        let (writer, a) = (store.writer(), host("a.example"));
        let out = HostDecision::TakeOut;
        let decided = writer.decide_host(&a, out, ruling("moderator ada")).await;
        assert_eq!(decided.unwrap(), HostDecided::Out(OptOut::Done));
        let by = OptedOutBy::Moderator;
        assert_eq!(state(&store, "a.example"), Some(State::OptedOut { by }));
        let again = writer.decide_host(&a, out, ruling("moderator bob")).await;
        assert_eq!(again.unwrap(), HostDecided::Out(OptOut::Stands { by }));
        let undone = writer.undo_host_decision(1, ruling("moderator bob")).await;
        let expect = Undone::Done((a.clone(), HostDecided::Back(OptIn::Done)));
        assert_eq!(undone.unwrap(), expect);
        assert_eq!(state(&store, "a.example"), Some(State::Discovered));
        for (id, expect) in [(1, Undone::Superseded), (7, Undone::Unknown)] {
            let undone = writer.undo_host_decision(id, ruling("moderator bob")).await;
            assert_eq!(undone.unwrap(), expect, "{id}");
        }
        let log = store.reader().unwrap().decisions(None, 10).unwrap();
        let log: Vec<_> = log.rows.iter().map(|row| row.who.as_str()).collect();
        assert_eq!(
            log,
            ["moderator bob", "moderator ada"],
            "no effect, no line"
        );
    }

    #[tokio::test] // S23
    async fn owner_and_moderator_never_undo_each_others_opt_out() {
        use OptedOutBy::{Moderator, Owner};
        for owner_is_first in [true, false] {
            let (store, _folder) = census();
            let (writer, a) = (store.writer(), host("a.example"));
            let moderate = |decision| writer.decide_host(&a, decision, ruling("moderator ada"));
            let (first, other) = if owner_is_first {
                writer.opt_out(&a, Owner, NOW).await.unwrap();
                let joined = moderate(HostDecision::TakeOut).await.unwrap();
                assert_eq!(joined, HostDecided::Out(OptOut::Joins { by: Owner }));
                (Owner, Moderator)
            } else {
                moderate(HostDecision::TakeOut).await.unwrap();
                let joined = writer.opt_out(&a, Owner, NOW).await.unwrap();
                assert_eq!(joined, OptOut::Joins { by: Moderator });
                let again = writer.opt_out(&a, Owner, NOW).await.unwrap();
                assert_eq!(again, OptOut::Stands { by: Moderator });
                (Moderator, Owner)
            };
            let back = moderate(HostDecision::PutBack).await.unwrap();
            assert_eq!(back, HostDecided::Back(OptIn::StillOut { by: Owner }));
            let by = Owner;
            let expect = Some(State::OptedOut { by });
            assert_eq!(state(&store, "a.example"), expect, "{first:?} {other:?}");
            let again = moderate(HostDecision::PutBack).await.unwrap();
            assert_eq!(again, HostDecided::Back(OptIn::NotTheirs { by }));
            assert_eq!(writer.opt_in(&a, Owner, NOW).await.unwrap(), OptIn::Done);
            assert_eq!(state(&store, "a.example"), Some(State::Discovered));
        }
    }

    #[tokio::test]
    async fn a_host_that_is_taken_out_again_by_undoing_has_the_reason_of_then() {
        let (store, _folder) = census();
        let (writer, a) = (store.writer(), host("a.example"));
        let out = writer.decide_host(&a, HostDecision::TakeOut, ruling("moderator ada"));
        out.await.unwrap();
        let mistake = Ruling {
            reason: "a mistake".to_owned(),
            ..ruling("moderator ada")
        };
        let back = writer.decide_host(&a, HostDecision::PutBack, mistake.clone());
        back.await.unwrap();
        writer.undo_host_decision(2, mistake).await.unwrap();
        let log = store.reader().unwrap().decisions(None, 1).unwrap();
        assert_eq!(log.rows[0].reason, "spam");
    }

    #[tokio::test] // S23
    async fn no_moderator_undoes_an_owners_opt_out() {
        let (store, _folder) = census();
        let (writer, a, by) = (store.writer(), host("a.example"), OptedOutBy::Owner);
        writer.opt_out(&a, by, NOW).await.unwrap();
        let back = HostDecision::PutBack;
        let decided = writer.decide_host(&a, back, ruling("moderator ada")).await;
        assert_eq!(decided.unwrap(), HostDecided::Back(OptIn::NotTheirs { by }));
        assert_eq!(state(&store, "a.example"), Some(State::OptedOut { by }));
        let log = store.reader().unwrap().decisions(None, 10).unwrap();
        assert!(log.rows.is_empty());
    }
}
