//! Replays every committed seed of the fuzz targets, without a fuzzer.
#![allow(
    clippy::panic,
    reason = "all of it is test code: a panic is how it reports what it found"
)]

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// A test per target, in a module per subject, and the list of all of them.
macro_rules! replayed {
    ($($subject:ident: $($target:ident)*;)*) => {
        const TARGETS: &[(&str, &str)] = &[$($((stringify!($subject), stringify!($target)),)*)*];

        $(mod $subject {
            $(#[test]
            fn $target() {
                crate::replay(
                    stringify!($subject),
                    stringify!($target),
                    fuzz_targets::$subject::$target::check,
                );
            })*
        })*
    };
}

replayed! {
    admission: admission_rules host suffix_list;
    checker: flags json lists nodeinfo nodeinfo_pointer peers robots walks;
    console: console_form console_wire;
    gateway: client_hello gateway_control names_file;
    launcher: launcher_frames launcher_request probe_report;
    protocol: delivery event lines order;
    push: push_bodies push_client push_news push_sender;
    token: token_header token_records;
}

fn fuzz(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz")
        .join(folder)
}

/// Names in a folder, without their endings.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| {
            let path = entry.unwrap_or_else(|error| panic!("{error}")).path();
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        })
        .collect()
}

fn replay(subject: &str, target: &str, check: fn(&[u8])) {
    let folder = fuzz("seeds").join(subject).join(target);
    let seeds = names(&folder);
    assert!(!seeds.is_empty(), "{}: no seeds", folder.display());
    let failed: Vec<_> = seeds
        .iter()
        .filter(|seed| {
            let bytes = std::fs::read(folder.join(seed))
                .unwrap_or_else(|error| panic!("{subject}/{target}/{seed}: {error}"));
            catch_unwind(|| check(&bytes)).is_err()
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{}: the panics above are of {failed:?}",
        folder.display()
    );
}

#[test]
fn every_target_of_the_fuzzer_and_every_folder_of_seeds_is_replayed() {
    let targets: BTreeSet<_> = TARGETS
        .iter()
        .map(|(subject, target)| format!("{subject}/{target}"))
        .collect();
    for folder in ["seeds", "targets"] {
        let found: BTreeSet<_> = names(&fuzz(folder))
            .iter()
            .flat_map(|subject| {
                let names = names(&fuzz(folder).join(subject));
                names
                    .into_iter()
                    .map(move |target| format!("{subject}/{target}"))
            })
            .collect();
        assert_eq!(found, targets, "in tests/fuzz/{folder}");
    }
}
