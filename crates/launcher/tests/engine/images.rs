//! The name of the checker's image moves to another image, or disappears, while the launcher runs.

use std::time::{Duration, Instant};

use bollard::query_parameters::{
    InspectContainerOptions, RemoveImageOptionsBuilder, TagImageOptionsBuilder,
};
use protocol::container::FaultKind;

use crate::bench::{
    Bench, IMAGE, MOVING_IMAGE, MOVING_REPOSITORY, PATIENCE, READABLE_IMAGE, Running, patient,
};

async fn move_to(bench: &Bench, image: &str) {
    let tag = std::process::id().to_string();
    let options = TagImageOptionsBuilder::default()
        .repo(MOVING_REPOSITORY)
        .tag(&tag)
        .build();
    bench.docker.tag_image(image, Some(options)).await.unwrap();
}

async fn remove_the_name(bench: &Bench) {
    let force = RemoveImageOptionsBuilder::default().force(true).build();
    let removed = bench.docker.remove_image(&MOVING_IMAGE, Some(force), None);
    removed.await.unwrap();
}

async fn id_of(bench: &Bench, image: &str) -> String {
    bench.docker.inspect_image(image).await.unwrap().id.unwrap()
}

/// The id of the image of a check that is launched now.
async fn image_of_a_check(bench: &Bench, running: &Running) -> String {
    let (id, container) = running.launch("stay").await;
    let label = format!("org.fedicensus.check={id}");
    let start = Instant::now();
    let image = loop {
        // Docker lists a container a moment before it can be inspected.
        if let Some(found) = bench.containers(&[&label]).await.pop()
            && let Ok(told) = bench
                .docker
                .inspect_container(&found, None::<InspectContainerOptions>)
                .await
        {
            break told.image.unwrap();
        }
        assert!(start.elapsed() < patient(PATIENCE), "no check was started");
        tokio::time::sleep(patient(Duration::from_millis(50))).await;
    };
    drop(container);
    bench.until_gone(&[&label]).await;
    image
}

async fn until_status(
    running: &Running,
    what: &str,
    told: impl Fn(&launcher::wire::Status) -> bool,
) {
    let start = Instant::now();
    loop {
        let status = running.client.status().await.unwrap();
        if told(&status) {
            return println!("{what}: {status:?}");
        }
        assert!(start.elapsed() < patient(PATIENCE), "{what}: {status:?}");
        tokio::time::sleep(patient(Duration::from_millis(50))).await;
    }
}

// S9
pub(crate) async fn no_check_starts_from_an_image_that_was_not_probed(bench: &Bench) {
    bench.import(&READABLE_IMAGE, "0755").await;
    // A second image, sound as well.
    bench.import(&MOVING_IMAGE, "0511").await;
    let (sound, other) = (
        id_of(bench, &IMAGE).await,
        id_of(bench, &MOVING_IMAGE).await,
    );
    assert_ne!(sound, other);
    let running = bench.launcher("moving", |settings| {
        settings.image = MOVING_IMAGE.clone();
        settings.sweep_interval = Duration::from_secs(1);
    });
    assert_eq!(image_of_a_check(bench, &running).await, other);
    // Docker's containerd store drops an image with its last name, whatever runs from it.
    move_to(bench, &READABLE_IMAGE).await;
    assert_eq!(image_of_a_check(bench, &running).await, other, "at once");
    until_status(&running, "readable", |status| {
        let mut warnings = status.warnings.iter();
        warnings.any(|warning| warning.contains("through /proc/self/mem"))
    })
    .await;
    assert_eq!(image_of_a_check(bench, &running).await, other, "probed");
    move_to(bench, &IMAGE).await;
    let start = Instant::now();
    while image_of_a_check(bench, &running).await != sound {
        assert!(start.elapsed() < patient(PATIENCE), "never taken up");
    }
    running.shut_down().await;
    remove_the_name(bench).await;
}

pub(crate) async fn an_image_that_goes_is_a_fault_until_it_comes_again(bench: &Bench) {
    bench.import(&MOVING_IMAGE, "0511").await;
    let running = bench.launcher("going", |settings| {
        settings.image = MOVING_IMAGE.clone();
        settings.sweep_interval = Duration::from_secs(1);
    });
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    bench.until_no_check("going").await;
    remove_the_name(bench).await;
    until_status(&running, "gone", |status| {
        let trouble = status.trouble.as_deref().unwrap_or_default();
        trouble.contains(&format!("{}: build it", *MOVING_IMAGE))
    })
    .await;
    let report = running.report("hello").await;
    assert_eq!(report.fault(), FaultKind::ImageMissing, "{report:?}");
    move_to(bench, &IMAGE).await;
    until_status(&running, "back", |status| status.trouble.is_none()).await;
    assert_eq!(running.report("hello").await.ended().exit_code, 0);
    running.shut_down().await;
    remove_the_name(bench).await;
}
