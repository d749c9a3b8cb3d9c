//! Every persona comes out as the lab's table says.

use std::time::Duration;

use lab::report::{Found, compare};
use tests::{Options, World};

/// The tarpits take a minute each; the rest of three hundred hosts goes beside them.
const ALL_WITHIN: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn every_persona_comes_out_as_the_table_says_and_the_list_holds_exactly_the_living()
-> anyhow::Result<()> {
    let mut options = Options::new(&[lab::personas::SEED]);
    options.canaries = vec![lab::personas::SEED.to_owned()];
    options.crowd = 30;
    options.settings = vec![
        ("checks_max", "8".to_owned()),
        ("opens_max", "24".to_owned()),
    ];
    // A day in under two minutes.
    options.interval_divisor = 1000;
    let world = World::start(options).await?;
    let outcome = world
        .until("all is as the table says", ALL_WITHIN, |world| {
            world.command(&["dump"])?;
            Ok(differences(world)?.is_empty())
        })
        .await;
    if outcome.is_err() {
        let differences = differences(&world)?;
        panic!(
            "{} differences:\n{}",
            differences.len(),
            differences.join("\n")
        );
    }
    Ok(())
}

fn differences(world: &World) -> anyhow::Result<Vec<String>> {
    let output = world.command(&["status", "--hosts", "--json"])?;
    let found: Vec<Found> = serde_json::from_slice(&output.stdout)?;
    let asked = lab::request_log::asked(&world.path("lab/requests.ndjson")).ok();
    Ok(compare(world.lab().table(), &found, &world.nodes()?, asked.as_ref()).differences)
}
