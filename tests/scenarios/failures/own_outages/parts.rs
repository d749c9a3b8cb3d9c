//! Gateway and launcher are killed, or run without answering; the daemon's control socket is
//! removed.

use super::*;
use tests::world::{GATEWAY_SOCKET, LAUNCHER_SOCKET};

async fn dies_and_comes_back(role: Role, socket: &str, says: &str) -> anyhow::Result<()> {
    let mut world = living(options()).await?;
    let fault = Fault::begin(&world, &format!("{} killed", name(role)))?;
    world.kill(role)?;
    std::fs::remove_file(world.path(socket))?;
    let what_to_do = "start it; its log says why it ended";
    fault.is_said(&world, &["OUTAGE", says, what_to_do]).await?;
    fault.lasts(&world).await?;
    world.begin(role).await?;
    fault.ends_well(&world).await?;

    let fault = Fault::begin(&world, &format!("{} hangs", name(role)))?;
    world.freeze(role)?;
    fault
        .is_said(&world, &["OUTAGE", "if it hangs, restart it"])
        .await?;
    fault.lasts(&world).await?;
    world.thaw(role)?;
    fault.ends_well(&world).await
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Gateway => "gateway",
        Role::SecondGateway => "second gateway",
        Role::Launcher => "launcher",
        Role::Run => "orchestrator",
        Role::Intake => "intake",
        Role::Console => "console",
        Role::Push | Role::PushConnect | Role::PushEndpoint => "push service",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_dies_or_hangs_wrongs_nobody() -> anyhow::Result<()> {
    let says = "gateway: the gateway can't be reached";
    dies_and_comes_back(Role::Gateway, GATEWAY_SOCKET, says).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_that_dies_or_hangs_wrongs_nobody() -> anyhow::Result<()> {
    let says = "launcher: the launcher can't be reached";
    dies_and_comes_back(Role::Launcher, LAUNCHER_SOCKET, says).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_socket_that_is_taken_away_is_made_anew() -> anyhow::Result<()> {
    let world = living(options()).await?;
    let fault = Fault::begin(&world, "control socket taken away")?;
    std::fs::remove_file(world.path("data/control.sock"))?;
    world
        .until("the daemon answers again", SOON, |world| {
            Ok(world.command(&["health"])?.status.success())
        })
        .await?;
    let said = complaints(&world, Role::Run);
    assert!(
        said.iter().any(|line| {
            line.contains("the socket was removed") && line.contains("control.sock")
        }),
        "{said:?}"
    );
    fault.is_borne(&world)?;
    fault.ends_well(&world).await
}
