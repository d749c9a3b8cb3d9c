//! The attacker misuses its stdout in a delivery of push messages (invariant I3): all of it counts
//! as failed, so that no subscription ends, and nobody becomes a row or a name.

use std::collections::BTreeSet;

use anyhow::ensure;
use protocol::{Host, MessageOutcome};
use push::remote::wire::{Answer, Daemon, Request};
use serde_json::json;
use tests::{Role, unhurried};

use super::standin::{Image, Program};
use super::wire::{Attacker, SOON, crowd, host, peace};
use crate::confinement::containers::engine;

/// The one that does as it should.
const HONEST: &str = "delivery-is-honest";

/// First labels of the attackers' hosts, by which they know what to do.
const DELIVERIES: [&str; 11] = [
    "delivery-finds-itself-gone",
    "delivery-names-hosts",
    "delivery-answers-twice",
    "delivery-answers-backwards",
    "delivery-answers-more",
    "delivery-answers-less",
    "delivery-posts-after-its-end",
    "delivery-pauses-too-long",
    "delivery-tells-a-text",
    "delivery-is-a-walk",
    "delivery-breaks-off",
];

#[tokio::test(flavor = "multi_thread")] // S38 I3
async fn hostile_delivery_ends_no_subscription_and_judges_no_host() -> anyhow::Result<()> {
    let attacker = match engine()? {
        Some(engine) => Attacker::Image(Image::build(&engine, "deliveries")?),
        None => {
            let program = Program::build()?;
            Attacker::Program(program.beside_the_checker()?, program)
        }
    };
    let mut world = peace(attacker.checker(), unhurried(50)).await?;
    world.stop(Role::Run).await?;
    world.set("push_socket", "true");
    world.set("push_services", "standin.test");
    world.begin(Role::Run).await?;
    let socket = world.path("run/push/push.sock");
    world
        .until("the daemon serves", SOON, |_| Ok(socket.exists()))
        .await?;
    let daemon = Daemon::new(socket);
    let message = json!({
        "path": "/p", "ttl_s": 60, "topic": "t", "authorization": "vapid t=a,k=b", "body": "aGk=",
    });
    for label in [HONEST].into_iter().chain(DELIVERIES) {
        let request = Request::Deliver {
            host: Host::parse(&host(label))?,
            messages: serde_json::from_value(json!([message, message]))?,
        };
        let answer = tokio::time::timeout(SOON, judged(&daemon, &request)).await??;
        let is_failed = matches!(answer, Answer::Unreachable { .. });
        ensure!(is_failed != (label == HONEST), "{label}: {answer:?}");
        if label == HONEST {
            let outcomes = [201, 410].map(|status| MessageOutcome::Answered {
                status,
                retry_after_s: None,
            });
            assert_eq!(
                answer,
                Answer::Delivered {
                    outcomes: outcomes.into()
                }
            );
        }
    }
    let mut names = BTreeSet::new();
    world.reader()?.each(|record, _| {
        names.insert(record.host.to_string());
    })?;
    assert_eq!(names, crowd().into_iter().collect());
    Ok(())
}

/// The first answer that judges the delivery: the daemon, which spaces deliveries itself, may put
/// one off because all places are taken.
async fn judged(daemon: &Daemon, request: &Request) -> anyhow::Result<Answer> {
    loop {
        let answer = daemon.ask(request).await?;
        if !matches!(answer, Answer::NotNow { .. }) {
            return Ok(answer);
        }
        eprintln!("asked again: {answer:?}");
    }
}
