//! The attacker misuses its stdout in a walk (invariants I3, I10): the walk has no effect, on its
//! host or on any other.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use census::state::State;
use tests::unhurried;

use super::standin::{Image, Program};
use super::wire::{Attacker, SOON, crowd, host, peace};
use crate::confinement::containers::engine;

/// First labels of the attackers' hosts, which name what to do.
const WALKS: [&str; 12] = [
    "walk-finds-itself-gone",
    "walk-finds-itself-alive",
    "walk-ends-a-list",
    "walk-tells-a-handle",
    "walk-tells-a-text",
    "walk-adds-a-field",
    "walk-tells-a-post",
    "walk-ends-twice",
    "walk-names-after-its-end",
    "walk-asks-too-much",
    "walk-breaks-off",
    "walk-names-too-many",
];

#[tokio::test(flavor = "multi_thread")] // I3
async fn hostile_walk_brings_no_name_and_judges_no_host() -> anyhow::Result<()> {
    let attacker = match engine()? {
        Some(engine) => Attacker::Image(Image::build(&engine, "walks")?),
        None => {
            let program = Program::build()?;
            Attacker::Program(program.beside_the_checker()?, program)
        }
    };
    // No host is checked a second time while the others wait for their walk.
    let world = peace(attacker.checker(), unhurried(50)).await?;
    let hosts = WALKS.map(host);
    for host in &hosts {
        let checked = world.command(&["check", host])?;
        ensure!(checked.status.success(), "{host}: {checked:?}");
    }
    world
        .until(
            "each attacker is taken for a responding host",
            SOON,
            |world| {
                for host in &hosts {
                    let stored = world.host(host)?;
                    if stored.is_none_or(|stored| stored.record.state != State::Alive) {
                        return Ok(false);
                    }
                }
                Ok(true)
            },
        )
        .await?;
    for host in &hosts {
        let output = world.command(&["discover", host])?;
        let said = String::from_utf8([output.stdout, output.stderr].concat())?;
        assert!(said.contains("not read to the end: "), "{host}: {said}");
        assert!(!said.contains("new: "), "{host}: {said}");
        let stored = world.host(host)?.context("known")?;
        assert_eq!(stored.record.state, State::Alive, "{host}");
        assert!(
            stored.history.iter().all(|entry| entry.verdict == "alive"),
            "{host}"
        );
    }
    let mut names = BTreeSet::new();
    world.reader()?.each(|record, _| {
        names.insert(record.host.to_string());
    })?;
    let expected: BTreeSet<String> = crowd().into_iter().chain(hosts).collect();
    assert_eq!(names, expected);
    Ok(())
}
