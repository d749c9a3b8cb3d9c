//! Every handshake fails: our clock, our roots, a firewall or a proxy.

use lab::play::Handshake;
use tests::World;

use super::{Trouble, a_living_crowd, replace};

const CLOCK: &str = "Is this machine's clock right?";

async fn while_all_greet(world: &World, how: Handshake, trouble: Trouble) -> anyhow::Result<()> {
    let play = |handshake| {
        world.lab().play_crowd(handshake);
        Ok(())
    };
    trouble
        .strikes(world, || play(how), || play(Handshake::Sound))
        .await
}

/// A checker can't distinguish certificates that have all expired from a clock that is ahead.
#[tokio::test(flavor = "multi_thread")]
async fn clock_far_ahead_wrong_roots_or_a_proxy_change_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    let ahead = Trouble::blackout(
        "every certificate has run out, as to a clock a year ahead",
        &["tls_expired ×", CLOCK],
    );
    while_all_greet(&world, Handshake::Expired, ahead).await?;
    let proxy = Trouble::blackout(
        "a proxy intercepts TLS",
        &["tls_unknown_issuer ×", "Does a proxy intercept TLS?"],
    );
    while_all_greet(&world, Handshake::Intercepted, proxy).await?;
    let roots = world.lab().ca_pem().to_owned();
    let foreign = lab::Lab::start(lab::Settings::default()).await?;
    Trouble::blackout("wrong trust roots", &["tls ×", CLOCK])
        .strikes(
            &world,
            || replace(&world, "lab/ca.pem", foreign.ca_pem()),
            || replace(&world, "lab/ca.pem", &roots),
        )
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_at_every_address_and_resets_change_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    let stranger = Trouble::blackout(
        "DNS leads all names to one address with another certificate",
        &[
            "tls_wrong_name ×",
            "Does its resolver return the right addresses?",
        ],
    );
    while_all_greet(&world, Handshake::WrongName, stranger).await?;
    let resets = Trouble::blackout(
        "a firewall resets every handshake",
        &["NO CHECK SUCCEEDS since"],
    );
    while_all_greet(&world, Handshake::Reset, resets).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_so_slow_that_all_time_out_changes_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    let silent = Trouble::blackout("every handshake times out", &["NO CHECK SUCCEEDS since"]);
    while_all_greet(&world, Handshake::Silent, silent).await
}
