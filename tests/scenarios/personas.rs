//! Every persona gets the verdict in the lab's table.

use std::time::Duration;

use anyhow::bail;
use lab::report::{Found, compare};
use tests::{Engine, Options, PATIENCE, Role, World};

/// A look starts a program and reads the lab's whole log.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How fast time passes, and how many checks run at once. All hosts must get their first check
/// before most get their second; otherwise repeated checks keep the rest waiting.
struct Pace {
    interval_divisor: u32,
    checks_max: u32,
}

impl Pace {
    fn of(engine: &Engine) -> Self {
        match engine {
            // Tarpits hold their slots for a minute and need nothing more: there are slots for all
            // of them.
            Engine::Process => Self {
                interval_divisor: 2500,
                checks_max: 32,
            },
            // A container takes a third of a second of both processors.
            Engine::Socket(_) => Self {
                interval_divisor: 1000,
                checks_max: 8,
            },
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_persona_comes_out_as_the_table_says_and_the_list_holds_exactly_the_living()
-> anyhow::Result<()> {
    let mut options = Options::new(&[lab::personas::SEED]);
    options.canaries = vec![lab::personas::SEED.to_owned()];
    // Two registered domains, so that the second one is found through the first.
    options.crowd = 12;
    let pace = Pace::of(&options.engine);
    options.settings = vec![
        ("checks_max", pace.checks_max.to_string()),
        ("lab.opens_max", (pace.checks_max * 2).to_string()),
    ];
    options.interval_divisor = pace.interval_divisor;
    until_as_expected(&World::start(options).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn customers_of_a_hoster_are_listed_and_no_name_of_a_farm() -> anyhow::Result<()> {
    let mut options = Options::new(&[lab::personas::SEED]);
    options.canaries = vec![lab::personas::SEED.to_owned()];
    options.personas = vec!["mastodon.lab.test".to_owned()];
    options.farm = 2000;
    options.settings = vec![
        ("group_threshold", "10".to_owned()),
        ("checks_max", "16".to_owned()),
    ];
    let mut world = World::prepare(options).await?;
    let hosters = world.path("hosters.txt");
    std::fs::write(&hosters, include_str!("../../lab/hosters.txt"))?;
    world.set("hosters", &hosters.display().to_string());
    for role in [Role::Gateway, Role::Launcher, Role::Run] {
        world.begin(role).await?;
    }
    until_as_expected(&world).await
}

async fn until_as_expected(world: &World) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    let outcome = world
        .until_each(LOOK_EVERY, "all is as the table says", PATIENCE, |world| {
            // A list is published only when nothing except the list differs.
            differences = compared(world, &expected_list(world))?;
            if differences.is_empty() {
                world.command(&["dump"])?;
                differences = compared(world, &world.nodes()?)?;
            }
            Ok(differences.is_empty())
        })
        .await;
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => bail!(
            "{} differences:\n{}\n{error:#}",
            differences.len(),
            differences.join("\n")
        ),
    }
}

fn expected_list(world: &World) -> Vec<String> {
    let table = world.lab().table();
    let listed = table
        .personas
        .iter()
        .filter(|persona| persona.expectation.listed)
        .map(|persona| persona.host.to_string());
    let mut names: Vec<_> = listed.chain(table.crowd.iter().cloned()).collect();
    names.sort_unstable();
    names
}

fn compared(world: &World, nodes: &[String]) -> anyhow::Result<Vec<String>> {
    let output = world.command(&["status", "--hosts", "--json"])?;
    let found: Vec<Found> = serde_json::from_slice(&output.stdout)?;
    let asked = lab::request_log::asked(&world.path("lab/requests.ndjson"))?;
    Ok(compare(world.lab().table(), &found, nodes, Some(&asked)).differences)
}
