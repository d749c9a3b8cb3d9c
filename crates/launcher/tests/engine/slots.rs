//! Network namespaces that checks join one after the other, on an engine that supports this.

use std::time::Duration;

use bollard::query_parameters::{InspectContainerOptions, KillContainerOptions};
use launcher::SlotMode;

use crate::bench::{Bench, Running, installation, of_installation, patient};

const HOLDER: &str = "org.fedicensus.holder";

fn launcher(bench: &Bench, name: &str) -> Running {
    bench.launcher(name, |settings| settings.slots = SlotMode::On)
}

async fn holders(bench: &Bench, name: &str) -> Vec<String> {
    bench.containers(&[&of_installation(name), HOLDER]).await
}

/// The network mode of a container, once the engine reports it.
async fn network_mode(bench: &Bench, container: &str) -> String {
    let options = None::<InspectContainerOptions>;
    let inspected = bench.docker.inspect_container(container, options).await;
    let host = inspected.unwrap().host_config.unwrap();
    host.network_mode.unwrap_or_default()
}

pub(crate) async fn checks_join_one_namespace_and_it_leads_nowhere(bench: &Bench) {
    let running = launcher(bench, "joined");
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    let [holder] = &holders(bench, "joined").await[..] else {
        panic!("the probe and the check join the same");
    };
    assert_eq!(network_mode(bench, holder).await, "none");
    let (id, container) = running.launch("stay").await;
    let label = format!("org.fedicensus.check={id}");
    let guest = loop {
        if let Some(found) = bench.containers(&[&label]).await.pop() {
            break found;
        }
        tokio::time::sleep(patient(Duration::from_millis(50))).await;
    };
    let joined = network_mode(bench, &guest).await;
    assert_eq!(joined, format!("container:{holder}"));
    let listed = running.client.list().await.unwrap();
    assert_eq!(listed, [id], "a holder is no check");
    drop(container);
    bench.until_no_check("joined").await;
    running.shut_down().await;
    bench.until_gone(&[&of_installation("joined")]).await;
}

/// The check that finds its holder ended runs in a new namespace, and the next check in a new slot.
pub(crate) async fn a_holder_that_died_costs_no_check(bench: &Bench) {
    let running = launcher(bench, "died");
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    let [dead] = &holders(bench, "died").await[..] else {
        panic!("one check at once has one holder");
    };
    let options = None::<KillContainerOptions>;
    bench.docker.kill_container(dead, options).await.unwrap();
    for _ in 0..2 {
        assert_eq!(running.report("seven").await.ended().exit_code, 7);
    }
    let now = holders(bench, "died").await;
    assert!(now.len() == 1 && now[0] != *dead, "{dead} and {now:?}");
    running.shut_down().await;
    let name = installation("died");
    bench.until_gone(&[&format!("org.fedicensus={name}")]).await;
}
