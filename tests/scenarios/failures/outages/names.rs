//! DNS fails, denies names, or directs all names to one address.

use tests::{Watch, World};

use super::{SOON, Trouble, a_living_crowd, crowd, replace};

const NAMES: &str = "lab/names";

fn all_lead_to(world: &World, place: &str) -> anyhow::Result<()> {
    let text: String = crowd().map(|name| format!("{name} {place}\n")).collect();
    replace(world, NAMES, &text)
}

async fn while_all_lead_to(world: &World, place: &str, trouble: Trouble) -> anyhow::Result<()> {
    let sound = std::fs::read_to_string(world.path(NAMES))?;
    trouble
        .strikes(
            world,
            || all_lead_to(world, place),
            || replace(world, NAMES, &sound),
        )
        .await
}

const RESOLVER: &str = "Does this machine's resolver answer";

#[tokio::test(flavor = "multi_thread")] // S3
async fn a_resolver_that_fails_or_denies_every_name_changes_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    let dead = Trouble::blackout("DNS answers SERVFAIL for all", &["dns ×", RESOLVER]);
    while_all_lead_to(&world, "servfail", dead).await?;
    let denies = Trouble::blackout(
        "DNS answers NXDOMAIN for all",
        &["no_such_name ×", RESOLVER],
    );
    while_all_lead_to(&world, "nxdomain", denies).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_is_silent_or_leads_all_to_nobody_changes_no_state() -> anyhow::Result<()> {
    let world = a_living_crowd().await?;
    let silent = Trouble::blackout("DNS does not answer at all", &["dns ×", RESOLVER]);
    while_all_lead_to(&world, "timeout", silent).await?;
    let nobody = Trouble::blackout(
        "DNS leads all names to one address where nobody listens",
        &["unreachable ×", "Does this machine reach the Internet?"],
    );
    while_all_lead_to(&world, "127.0.0.1 1", nobody).await
}

/// Responding instances of another lab, at a separate address; that lab has none of the crowd.
const ELSEWHERE: [&str; 6] = [
    "mastodon.lab.test",
    "pleroma.lab.test",
    "takahe.lab.test",
    "snac-open.lab.test",
    "akkoma.lab.test",
    "misskey.lab.test",
];

/// The hardest case: some hosts stay alive and are witnesses all the time, with fresh look-ups, at
/// the very address to which all names lead.
#[tokio::test(flavor = "multi_thread")] // S3
async fn resolver_that_leads_all_to_one_instance_changes_no_state() -> anyhow::Result<()> {
    let second = lab::Lab::start(lab::Settings {
        listen: ([127, 0, 0, 2], 0).into(),
        ..lab::Settings::default()
    })
    .await?;
    let place = format!("{} {}", second.address().ip(), second.address().port());
    let mut options = super::options();
    options.seeds.extend(ELSEWHERE.map(str::to_owned));
    let mut world = World::prepare(options).await?;
    let lives_there: String = ELSEWHERE.map(|name| format!("{name} {place}\n")).concat();
    let sound = std::fs::read_to_string(world.path(NAMES))? + &lives_there;
    replace(&world, NAMES, &sound)?;
    let roots = world.lab().ca_pem().to_owned() + second.ca_pem();
    replace(&world, "lab/ca.pem", &roots)?;
    for role in [
        tests::Role::Gateway,
        tests::Role::Launcher,
        tests::Role::Run,
    ] {
        world.begin(role).await?;
    }
    let everybody = || crowd().chain(ELSEWHERE.map(str::to_owned));
    world
        .until("all live, at both addresses", SOON, |world| {
            let lives = |name: String| {
                let verdict = world.verdict(&name)?;
                anyhow::Ok(verdict.is_some_and(|(word, _)| word == "alive"))
            };
            everybody()
                .map(lives)
                .try_fold(true, |all, lives| Ok(all && lives?))
        })
        .await?;
    let mut watch = Watch::begin(
        &world,
        "DNS leads all names to one living instance",
        everybody(),
    )?;
    // Any further name leads there too.
    replace(&world, NAMES, &format!("*.test {place}\n"))?;
    let witnesses = |world: &World| -> anyhow::Result<u32> {
        let counts = ELSEWHERE.map(|name| world.host(name));
        counts
            .into_iter()
            .map(|stored| Ok(stored?.map_or(0, |stored| stored.record.alive_count)))
            .sum()
    };
    // By then, most have waited for two minutes, always with witnesses in between.
    world
        .until("failures were dropped without a witness", SOON, |world| {
            let mut dropped = 0;
            for name in crowd() {
                let note = world.host(&name)?.and_then(|stored| stored.last_note);
                dropped += u32::from(note.is_some_and(|note| note.starts_with("not counted")));
            }
            let is_enough = dropped > super::CROWD / 2 && witnesses(world)? >= 12;
            Ok(is_enough || !watch.wronged(world)?.is_empty())
        })
        .await?;
    assert_eq!(watch.wronged(&world)?, Vec::<String>::new());
    let says = [
        "NO FAILURE IS CONFIRMED",
        "Does this machine's resolver return one address for all names?",
    ];
    world
        .until("status tells of it", SOON, |world| {
            let text = super::status_text(world)?;
            Ok(says.iter().all(|words| text.contains(words)))
        })
        .await?;
    assert_eq!(watch.wronged(&world)?, Vec::<String>::new());
    watch.over(&world)?;
    replace(&world, NAMES, &sound)?;
    watch.recovers(&world, SOON).await
}
