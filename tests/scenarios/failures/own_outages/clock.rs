//! A clock that jumps a year ahead and back, while the daemon runs and while it does not.
//!
//! The jump is real for the daemon: a library of a few lines, loaded before the C library, moves
//! the clock by the number in a file.

use std::path::PathBuf;
use std::process::Command;

use super::*;

const YEAR_S: i64 = 365 * 86_400;

/// A little more than a day of this world.
const A_DAY: Duration = Duration::from_secs(10);

/// Adds the seconds in the file named by `CLOCK_FILE` to the time of day, and leaves monotonic
/// clocks alone.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ts) {
    long answer = syscall(SYS_clock_gettime, id, ts);
    const char *path = getenv("CLOCK_FILE");
    if (answer == 0 && path && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        char text[32];
        ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
        if (file >= 0) close(file);
        if (length > 0) { text[length] = 0; ts->tv_sec += atoll(text); }
    }
    return (int)answer;
}
"#;

struct SetClock {
    file: PathBuf,
}

impl SetClock {
    fn install(world: &mut World) -> anyhow::Result<Self> {
        let (source, library) = (world.path("clock.c"), world.path("clock.so"));
        std::fs::write(&source, SHIM)?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .output()
            .context("a C compiler is missing; Rust needs one as well")?;
        anyhow::ensure!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let clock = Self {
            file: world.path("clock"),
        };
        clock.ahead_by(0)?;
        world.set_variable("LD_PRELOAD", &library.display().to_string());
        world.set_variable("CLOCK_FILE", &clock.file.display().to_string());
        Ok(clock)
    }

    fn ahead_by(&self, seconds: i64) -> anyhow::Result<()> {
        let temporary = self.file.with_extension("new");
        std::fs::write(&temporary, seconds.to_string())?;
        Ok(std::fs::rename(&temporary, &self.file)?)
    }
}

async fn living_by_a_clock() -> anyhow::Result<(World, SetClock)> {
    let mut world = World::prepare(options()).await?;
    let clock = SetClock::install(&mut world)?;
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    all_live(&world).await?;
    Ok((world, clock))
}

/// No time of any host, past or due, is further ahead of the machine's own clock than an interval
/// of this census, and every host was alive recently.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock that never jumped judges"
)]
fn moments_are_sound(world: &World) -> anyhow::Result<()> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let now = i64::try_from(now.as_millis())?;
    let latest = now + 3_600_000;
    for name in crowd() {
        let record = world.host(&name)?.context("known")?.record;
        let moments = [
            Some(record.since),
            Some(record.first_seen),
            record.last_alive,
            record.last_checked,
            record.due,
        ];
        for at in moments.into_iter().flatten() {
            anyhow::ensure!(at.0 < latest, "{name}: {record:?}");
        }
        anyhow::ensure!(
            record.last_alive.is_some_and(|at| at.0 > now - 3_600_000),
            "{name} lived long ago: {record:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_a_year_while_the_census_runs_moves_nothing() -> anyhow::Result<()> {
    let (world, clock) = living_by_a_clock().await?;
    for (name, by) in [("ahead", YEAR_S), ("back", -YEAR_S)] {
        let fault = Fault::begin(
            &world,
            &format!("clock jumps a year {name}, and right again"),
        )?;
        let says = format!("this machine's clock was set {name} by 365 days");
        clock.ahead_by(by)?;
        fault.is_said(&world, &["CLOCK", &says]).await?;
        let since = Instant::now();
        world
            .until("it has lasted", SOON, |_| Ok(since.elapsed() > HOLD))
            .await?;
        fault.is_borne(&world)?;
        assert_eq!(
            world.nodes()?.len(),
            usize::try_from(CROWD)?,
            "somebody is off the list"
        );
        let health = world.command(&["health"])?;
        assert_eq!(health.status.code(), Some(3), "{}", status(&world)?);
        moments_are_sound(&world)?;
        clock.ahead_by(0)?;
        fault.ends_well(&world).await?;
        moments_are_sound(&world)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_a_year_off_over_a_restart_wrongs_nobody() -> anyhow::Result<()> {
    let (mut world, clock) = living_by_a_clock().await?;
    for (name, by, says) in [
        ("ahead", YEAR_S, "the last list is weeks old"),
        ("back", -YEAR_S, "time is in the future"),
    ] {
        let fault = Fault::begin(&world, &format!("clock a year {name} over a restart"))?;
        let before = world.nodes()?;
        world.stop(Role::Run).await?;
        clock.ahead_by(by)?;
        world.begin(Role::Run).await?;
        world
            .until("it is said", SOON, |world| {
                Ok(world.log(Role::Run).contains(says))
            })
            .await?;
        let since = Instant::now();
        world
            .until("it has lasted", SOON, |_| Ok(since.elapsed() > HOLD))
            .await?;
        fault.is_borne(&world)?;
        if by > 0 {
            // To this clock, nobody has lived for a year: who was not checked since is not listed.
            let whole = |world: &World| Ok(world.nodes()? == before);
            world.until("the list is whole", SOON, whole).await?;
        } else {
            assert_eq!(world.nodes()?, before, "the list");
        }
        world.stop(Role::Run).await?;
        clock.ahead_by(0)?;
        world.begin(Role::Run).await?;
        fault.ends_well(&world).await?;
        // Each host's first verdict by a clock that was set back changes nothing written before.
        let mut last = Ok(());
        let sound = world
            .until("all moments are sound", SOON, |world| {
                last = moments_are_sound(world);
                Ok(last.is_ok())
            })
            .await;
        sound.with_context(|| format!("{last:?}"))?;
    }
    Ok(())
}

/// Like the clock of a machine without a battery. In an hour of doubt, every host would be recorded
/// as last alive a year ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_begins_a_year_back_and_is_set_right_is_gone_by_at_once() -> anyhow::Result<()>
{
    let (mut world, clock) = living_by_a_clock().await?;
    let fault = Fault::begin(&world, "clock begins a year back, and is set right")?;
    let before = world.nodes()?;
    world.stop(Role::Run).await?;
    clock.ahead_by(-YEAR_S)?;
    world.begin(Role::Run).await?;
    world
        .until("it is said", SOON, |world| {
            Ok(world.log(Role::Run).contains("time is in the future"))
        })
        .await?;
    let since = Instant::now();
    world
        .until("it has lasted", SOON, |_| Ok(since.elapsed() > HOLD))
        .await?;
    fault.is_borne(&world)?;
    assert_eq!(world.nodes()?, before, "the list");
    clock.ahead_by(0)?;
    fault.ends_well(&world).await?;
    moments_are_sound(&world)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_slept_for_a_day_raises_no_alarm() -> anyhow::Result<()> {
    let world = living(options()).await?;
    let fault = Fault::begin(&world, "the machine slept")?;
    let asleep = Instant::now();
    for part in PARTS {
        world.freeze(part)?;
    }
    world
        .until("a day is over", SOON, |_| Ok(asleep.elapsed() > A_DAY))
        .await?;
    for part in PARTS {
        world.thaw(part)?;
    }
    fault.is_borne(&world)?;
    fault.ends_well(&world).await?;
    let errors = complaints(&world, Role::Run);
    assert!(
        !errors.iter().any(|line| line.contains(" ERROR ")),
        "{errors:?}"
    );
    assert!(world.command(&["health"])?.status.success());
    Ok(())
}
