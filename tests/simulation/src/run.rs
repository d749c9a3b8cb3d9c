//! One run, from its plan to its report.

use std::time::Instant;

use thiserror::Error;

use crate::census::Census;
use crate::plan::{Failure, Plan};
use crate::report::{Cost, Report};

#[derive(Debug, Error)]
#[error(
    "seed {seed}, world {world}, {hosts} hosts, {days} days, {capacity} containers a second: {why}"
)]
pub struct Failed {
    pub seed: u64,
    pub world: &'static str,
    pub hosts: u32,
    pub days: u32,
    /// Its engine's containers per second.
    pub capacity: f64,
    #[source]
    pub why: Failure,
}

/// Runs a simulation from its start to its end.
pub fn run(plan: &Plan) -> Result<Report, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Failure::Other(error.into()));
    runtime
        .and_then(|runtime| runtime.block_on(simulate(plan)))
        .map_err(|why| Failed {
            seed: plan.seed,
            world: plan.world.name,
            hosts: plan.hosts,
            days: plan.days,
            capacity: plan.capacity,
            why,
        })
}

async fn simulate(plan: &Plan) -> Result<Report, Failure> {
    let set_up = Instant::now();
    let mut census = Census::new(plan.clone()).await.map_err(Failure::Other)?;
    let set_up = set_up.elapsed();
    let began = Instant::now();
    Box::pin(census.run()).await?;
    let took = began.elapsed();
    let Census {
        stage,
        truth,
        network,
        engine,
        guard,
        measure,
        told,
        ..
    } = census;
    let waiting = stage.reader.waiting()?;
    let cost = Cost {
        set_up,
        took,
        bytes: stage.close().map_err(Failure::Other)?,
        steps: guard.steps(),
    };
    Ok(Report {
        plan: plan.clone(),
        counts: measure.counts,
        longest: measure.longest,
        samples: measure.samples,
        containers: engine.started(),
        beings: truth.count(),
        waiting,
        outages: network.count(),
        told,
        cost,
    })
}
