//! The first list of a census.

use super::*;

fn publishes(commands: &[Command]) -> bool {
    let mut commands = commands.iter();
    commands.any(|command| matches!(command, Command::Publish { .. }))
}

#[test]
fn stored_response_brings_the_first_list_once() {
    let mut rig = Rig::new();
    let settings = Settings {
        published: None,
        ..settings(Vec::new())
    };
    rig.scheduler = Scheduler::new(settings, START);
    let published = |has_names| Event::Published {
        again: PublishAgain::Nothing,
        has_pages: true,
        has_names,
        interval: SECOND * 6 * 3600,
    };
    assert!(publishes(&rig.on(Event::Tick)), "pages without a list");
    rig.on(published(false));
    for (number, outcome, expect) in [
        (1, WriteOutcome::Released, false),
        (2, WriteOutcome::Verdict, true),
        (3, WriteOutcome::Verdict, false),
    ] {
        rig.check(number, alive);
        assert!(!publishes(&rig.tick()), "not stored yet");
        let host = host(number);
        rig.on(Event::Written { host, outcome });
        let begins = publishes(&rig.on(Event::Tick));
        assert_eq!(begins, expect, "{number}");
        if begins {
            rig.on(published(true));
        }
    }
}
