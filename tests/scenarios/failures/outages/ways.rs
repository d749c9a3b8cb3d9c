//! Two ways out: a host that answers by either is up, and as long as one works, all are checked.

use census::state::StateName;
use census::time::{Calendar, Timestamp};
use lab::crowd::{Crowd, name};
use tests::{Namespace, Role, Watch, World};
use tokio::time::Instant;

use super::{CROWD, DIVISOR, SOON, crowd, options, replace, until_all_live};

/// Hosts, unless `FEDICENSUS_WAYS_HOSTS` says how many: 300 are always due and keep a machine busy.
fn hosts() -> u32 {
    let hosts = std::env::var("FEDICENSUS_WAYS_HOSTS").ok();
    hosts.and_then(|hosts| hosts.parse().ok()).unwrap_or(60)
}

/// /24s in which the hosts are.
const BLOCKS: u32 = 30;

/// How a way fails, and what is run for that in its namespace and the folder of its lab.
const FAILURES: [&str; 5] = [
    "has no route: ip addr flush dev lo",
    "has no DNS: sed 's/ .*/ servfail/' sound > new; mv new names",
    // The certificates are of an authority that checkers don't know.
    "has its TLS intercepted: cp ../lab/ca.pem new; mv new ca.pem",
    "loses half of all blocks: nft add rule inet fault in ip daddr 127.0.0.0/20 tcp dport 8443 reject",
    "loses every packet: nft add rule inet fault in tcp dport 8443 drop",
];

const BEFORE: &str = "cp ca.pem own.pem; cp names sound; nft 'add table inet fault; add chain inet fault in { type filter hook input priority 0; }'";

/// Ends any of the failures.
const MEND: &str = "for at in 127.0.0.1/8 ::1/128; do ip addr replace $at dev lo; done; nft flush chain inet fault in; cp sound new; mv new names; cp own.pem new; mv new ca.pem";

const WAYS: [(&str, Role); 2] = [("first", Role::Gateway), ("second", Role::SecondGateway)];

/// The same hosts in two namespaces, each with one of the gateways.
async fn in_namespaces(spaces: &mut [Namespace; 2]) -> anyhow::Result<World> {
    let mut options = options();
    options.seeds = Crowd::new(hosts(), 1).names().collect();
    options.interval_divisor = 2 * DIVISOR;
    let blocks = options.seeds.iter().zip((1..=BLOCKS).cycle());
    let blocks: String = blocks
        .map(|(name, block)| format!("{name} 127.0.{block}.1 8443\n"))
        .collect();
    let mut world = World::prepare(options).await?;
    for (space, (way, role)) in spaces.iter_mut().zip(WAYS) {
        let state = world.path(way);
        space.start_lab(&state, hosts())?;
        world
            .until("the lab has written its files", SOON, |_| {
                Ok(state.join("names").exists())
            })
            .await?;
        std::fs::write(state.join("names"), &blocks)?;
        space.run(&format!("cd {}; {BEFORE}", state.display()))?;
        let roots = state.join("ca.pem").display().to_string();
        world.set("lab.extra_ca", &roots);
        world.wrap(role, space.entrance());
        world.begin_way(role, &state.join("names")).await?;
    }
    for role in [Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    until_all_live(&world).await?;
    Ok(world)
}

fn assert_listed(world: &World, count: u32, when: &str) -> anyhow::Result<()> {
    let dumped = world.command(&["dump", "--force"])?;
    assert!(dumped.status.success(), "{dumped:?}");
    assert_eq!(world.nodes()?.len(), usize::try_from(count)?, "{when}");
    Ok(())
}

/// Waits until every host was found alive since `begin`. Returns such checks a second.
async fn until_all_responded(
    world: &World,
    failure: &str,
    begin: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let alive = || Ok::<_, anyhow::Error>(world.status()?["daemon"]["ended"]["alive"].as_f64());
    let watch = Watch::begin(world, failure, Crowd::new(hosts(), 1).names())?;
    begin()?;
    let (before, began) = (alive()?, Instant::now());
    watch.recovers(world, SOON).await?;
    let checks = alive()?.zip(before).map_or(0.0, |(now, then)| now - then);
    let rate = checks / began.elapsed().as_secs_f64();
    assert_listed(world, hosts(), failure)?;
    Ok(rate)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_fails_in_any_manner_wrongs_no_host() -> anyhow::Result<()> {
    let (Some(first), Some(second)) = (super::network::namespace(), super::network::namespace())
    else {
        return Ok(());
    };
    let mut spaces = [first, second];
    let world = in_namespaces(&mut spaces).await?;
    let sound = until_all_responded(&world, "both ways work", || Ok(())).await?;
    let tell = |failure: &str, rate: f64| {
        eprintln!("{failure}: {:.2} of {sound:.1} checks/s", rate / sound);
    };
    for (space, (way, _)) in spaces.iter().zip(WAYS) {
        for failure in FAILURES {
            let (fails, begin) = failure.split_once(": ").expect("what is run");
            let failure = format!("the {way} way {fails}");
            let folder = world.path(way).display().to_string();
            let run = |script| space.run(&format!("cd {folder}; {script}"));
            let rate = until_all_responded(&world, &failure, || run(begin)).await?;
            tell(&failure, rate);
            run(MEND)?;
        }
    }
    let failure = "the second gateway hangs";
    let hangs = || world.freeze(Role::SecondGateway);
    tell(failure, until_all_responded(&world, failure, hangs).await?);
    world.thaw(Role::SecondGateway)?;
    until_all_responded(&world, "both ways work again", || Ok(())).await?;
    Ok(())
}

/// A month takes four and a half minutes.
const CALENDAR: Calendar = Calendar { divisor: 10_000 };
const MONTH: std::time::Duration = std::time::Duration::from_hours(30 * 24);

#[tokio::test(flavor = "multi_thread")]
async fn host_leaves_after_a_week_only_if_it_answers_by_neither_way() -> anyhow::Result<()> {
    let mut options = options();
    options.interval_divisor = CALENDAR.divisor;
    let mut world = World::prepare(options).await?;
    let all = std::fs::read_to_string(world.path("lab/names"))?;
    let [by_first, by_second, by_none] = [11, 12, 13].map(name);
    for ((way, role), host) in WAYS.into_iter().zip([&by_second, &by_first]) {
        replace(&world, way, &format!("{all}{host} nxdomain\n"))?;
        world.begin_way(role, &world.path(way)).await?;
    }
    for role in [Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    until_all_live(&world).await?;
    let (began, others) = (Instant::now(), crowd().filter(|name| *name != by_none));
    let watch = Watch::begin(&world, "a month by one way only", others)?;
    for ((way, _), host) in WAYS.into_iter().zip([&by_second, &by_first]) {
        let names = format!("{all}{host} nxdomain\n{by_none} nxdomain\n");
        replace(&world, way, &names)?;
    }
    let mut since = Vec::new();
    for (state, listed_then) in [(StateName::Dying, CROWD), (StateName::Dead, CROWD - 1)] {
        world
            .until(&format!("the host is {state:?}"), SOON, |world| {
                let record = world.host(&by_none)?.map(|stored| stored.record);
                let found = record.filter(|record| record.state.name() == state);
                since.extend(found.as_ref().map(|record| record.since));
                Ok(found.is_some())
            })
            .await?;
        assert_listed(&world, listed_then, &format!("{state:?}"))?;
    }
    let [dying, dead] = since[..] else {
        panic!("{since:?}")
    };
    let lasted: std::time::Duration = Timestamp::since(dead, dying);
    assert!(lasted > CALENDAR.dying_at_least(), "{lasted:?}");
    let month = CALENDAR.shortened(MONTH);
    world
        .until("a month has passed", SOON, |_| Ok(began.elapsed() > month))
        .await?;
    watch.recovers(&world, SOON).await?;
    assert_listed(&world, CROWD - 1, "after a month")?;
    for ((way, _), host) in WAYS.into_iter().zip([&by_first, &by_second]) {
        let said = String::from_utf8(world.command(&["explain", host])?.stdout)?;
        let only = format!("only (the {way} way out)");
        assert!(said.contains(&only), "{said}");
    }
    Ok(())
}
