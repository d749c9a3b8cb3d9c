//! No message is lost or duplicated, for any order of sends, acknowledgements, connections,
//! restarts and passing time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::course::{Service, message};
use super::{Acks, Direct, Rules};

#[derive(Debug, Clone)]
enum Step {
    /// A message with this topic, if any, and this time to live.
    Send(Option<u8>, u32),
    /// The client acknowledges its messages at these positions.
    Acknowledge(Vec<usize>),
    Connect,
    Disconnect,
    Restart,
    /// This many seconds pass.
    Pass(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let topic = prop_oneof![3 => Just(None), 1 => (0_u8..14).prop_map(Some)];
    let ttl_s = prop_oneof![1 => Just(0_u32), 3 => 1_u32..20, 6 => Just(100_000)];
    let step = prop_oneof![
        8 => (topic, ttl_s).prop_map(|(topic, ttl_s)| Step::Send(topic, ttl_s)),
        4 => vec(0_usize..12, 1..12).prop_map(Step::Acknowledge),
        2 => Just(Step::Connect),
        2 => Just(Step::Disconnect),
        1 => Just(Step::Restart),
        1 => (1_u32..30).prop_map(Step::Pass),
    ];
    vec(step, 1..80)
}

#[derive(Debug, Default)]
struct Model {
    /// Expiry of each unacknowledged message, in seconds since the start.
    due: BTreeMap<String, u32>,
    topics: BTreeMap<u8, String>,
    acknowledged: BTreeSet<String>,
    now_s: u32,
}

impl Model {
    fn sent(&mut self, version: &str, topic: Option<u8>, ttl_s: u32) {
        if ttl_s > 0 {
            self.due
                .insert(version.to_owned(), self.now_s.saturating_add(ttl_s));
        }
        // A former message is replaced if it is still stored. If the client has it, it may or may
        // not come again.
        if let Some(topic) = topic
            && let Some(former) = self.topics.insert(topic, version.to_owned())
        {
            self.due.remove(&former);
        }
    }
}

proptest! {
    #[test]
    fn whatever_was_sent_comes_until_it_is_acknowledged_or_expires(
        steps in steps(),
        each in any::<bool>(),
        drained in any::<bool>(),
    ) {
        let rules = Rules {
            acks: if each { Acks::Each } else { Acks::Batch },
            direct: if drained { Direct::WhenDrained } else { Direct::Always },
            stored_messages_max: 1000,
            ..Rules::AUTOPUSH
        };
        let mut service = Service::new(rules);
        let mut model = Model::default();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send(topic, ttl_s) => {
                    let version = number.to_string();
                    let name = topic.map(|topic| topic.to_string());
                    service.send(message(&version, name.as_deref(), ttl_s));
                    model.sent(&version, topic, ttl_s);
                }
                Step::Acknowledge(places) => {
                    for version in service.acknowledge(&places) {
                        model.due.remove(&version);
                        model.acknowledged.insert(version);
                    }
                }
                Step::Connect => service.connect(),
                Step::Disconnect => service.disconnect(),
                Step::Restart => service.restart(),
                Step::Pass(seconds) => {
                    service.now_ms += i64::from(seconds) * 1000;
                    model.now_s += seconds;
                }
            }
            let held = service.held();
            let different: BTreeSet<_> = held.iter().collect();
            prop_assert_eq!(held.len(), different.len(), "doubled: {:?}", held);
            if each {
                let again = held.iter().find(|version| model.acknowledged.contains(*version));
                prop_assert!(again.is_none(), "{:?} was acknowledged", again);
            }
        }
        service.connect();
        let mut came = BTreeSet::new();
        while !service.held().is_empty() {
            came.extend(service.acknowledge_all());
        }
        prop_assert_eq!(service.close(), None);
        let now_s = model.now_s;
        let due = model.due.into_iter().filter(|(_, expires_s)| *expires_s > now_s);
        let lost: Vec<_> = due.map(|(version, _)| version).filter(|version| !came.contains(version)).collect();
        prop_assert!(lost.is_empty(), "lost: {:?}", lost);
        service.connect();
        prop_assert!(service.held().is_empty(), "again: {:?}", service.held());
    }
}
