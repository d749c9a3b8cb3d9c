//! Which crate may import which, by the manifests. `deny.toml` has the same rules for crates with
//! dangerous powers.

use std::collections::BTreeSet;

use crate::tree::{manifests, none, read};

/// No runtime, files, network, engine or chance.
const IMPURE: &str = "tokio rusqlite reqwest bollard rand";

/// No engine, network or SQL of its own.
const POWERS: &str = "bollard rusqlite reqwest hickory-resolver";

/// For each member: which of our crates it may depend on, and which external ones it never may;
/// [`IMPURE`] and [`POWERS`] are those above. Tests of a crate may use more.
const RULES: &str = "
protocol: | IMPURE
census: protocol | IMPURE jiff
admission: protocol | IMPURE jiff
report: protocol census | IMPURE jiff
scheduler: protocol census | IMPURE jiff tokio-util tracing
token: protocol | IMPURE jiff
# A separate file, which the census never opens.
accounts: files limiter | tokio axum reqwest bollard jiff
# Neither the census's database nor a network.
console: accounts limiter local-socket | rusqlite reqwest bollard
# Of the census only names, messages and pure rules: it reads published files only.
push: protocol census files local-socket | reqwest bollard rand jiff
# Only tokio's locks and timer, and counters.
limiter: | axum rusqlite reqwest bollard rand jiff
files: | IMPURE jiff
store: protocol census admission files | bollard reqwest axum
publish: files | tokio reqwest bollard rusqlite jiff
dump: protocol census files publish store | tokio reqwest bollard rusqlite rustls
site: protocol census dump publish | tokio reqwest bollard rusqlite rustls
local-socket: | rusqlite reqwest bollard rand jiff
gateway: protocol local-socket | bollard rusqlite reqwest
launcher: protocol local-socket | rusqlite reqwest hickory-resolver
fedicensus-checker: protocol | bollard rusqlite hickory-resolver
orchestrator: protocol accounts census admission console store dump files gateway intake launcher \
    limiter local-socket publish push report scheduler site token | POWERS
intake: protocol admission gateway local-socket token | POWERS rand
lab: files protocol | bollard rusqlite reqwest
# Measures the whole path against the engine's bare API, the store against plain SQL, dumps and the
# push service.
bench: protocol admission census dump gateway lab launcher orchestrator publish push scheduler \
    store tests | reqwest
# Only for tests. `census` and `protocol` can't use it in theirs.
kit: protocol census | IMPURE jiff
# Simulates a census over a virtual clock, with all parts except those that talk to engines and
# hosts.
simulation: kit protocol admission census gateway launcher orchestrator report scheduler store \
    | POWERS
# Calls the parsers of untrusted bytes.
fuzz-targets: protocol admission census fedicensus-checker console gateway kit launcher \
    local-socket push report token | POWERS
xtask: | tokio
";

/// What the rule of a member allows and forbids.
fn rule(name: &str) -> Option<(&'static str, String)> {
    let (_, rule) = RULES
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(member, _)| *member == name)?;
    let (may, never) = rule.split_once('|')?;
    let never = never.replace("IMPURE", IMPURE).replace("POWERS", POWERS);
    Some((may, never))
}

/// The package that may use everything: it holds the scenarios.
const SCENARIOS: &str = "tests";

#[test]
fn every_crate_imports_only_what_it_may() {
    let manifests = manifests();
    let ours = manifests.iter().map(|(_, manifest)| name(manifest));
    let ours: BTreeSet<String> = ours.collect();
    let mut breaches = Vec::new();
    for (folder, manifest) in &manifests {
        let name = name(manifest);
        if name == SCENARIOS {
            continue;
        }
        let Some((may, never)) = rule(&name) else {
            let advice = "add one to tests/tidy/imports.rs";
            breaches.push(format!("{folder}: no rule for `{name}`; {advice}"));
            continue;
        };
        for dependency in dependencies(manifest) {
            let is_in = |names: &str| names.split(' ').any(|name| name == dependency);
            let why = if is_in(&never) {
                "never import"
            } else if ours.contains(&dependency) && !is_in(may) {
                "not import our"
            } else {
                continue;
            };
            breaches.push(format!("{folder}: `{name}` may {why} `{dependency}`"));
        }
    }
    none("imports go one way", &breaches);
}

/// A service that a stranger takes over has no engine, and writes no host.
#[test]
fn services_import_no_engine_and_no_store() {
    let manifests = manifests();
    let services = manifests
        .iter()
        .filter(|(folder, _)| folder.starts_with("services/"));
    assert_eq!(services.clone().count(), 6);
    let breaches: Vec<_> = services
        .flat_map(|(folder, manifest)| {
            let dependencies = dependencies(manifest).into_iter();
            let never = ["bollard", "launcher", "orchestrator", "store"];
            dependencies
                .filter(move |dependency| never.contains(&dependency.as_str()))
                .map(move |dependency| format!("{folder}: {dependency}"))
        })
        .collect();
    none("services may never import these", &breaches);
}

/// The same rule as cargo-deny's, checked within a second.
#[test]
fn only_the_wrappers_that_deny_toml_names_use_what_opens_doors() {
    let deny: toml::Table = read("deny.toml").parse().expect("TOML");
    let mut breaches = Vec::new();
    let mut doors = 0;
    for banned in deny["bans"]["deny"].as_array().expect("a list") {
        let Some(wrappers) = banned.get("wrappers").and_then(toml::Value::as_array) else {
            continue;
        };
        doors += 1;
        for (folder, manifest) in manifests() {
            let uses = |table: &str| {
                let table = manifest.get(table).and_then(toml::Value::as_table);
                table.is_some_and(|table| {
                    table.contains_key(banned["crate"].as_str().expect("a name"))
                })
            };
            let is_named = wrappers.contains(&manifest["package"]["name"]);
            if (uses("dependencies") || uses("dev-dependencies")) && !is_named {
                breaches.push(format!("{folder}: {}", banned["crate"]));
            }
        }
    }
    assert!(doors > 3, "{doors}");
    none("deny.toml names other wrappers", &breaches);
}

#[test]
fn every_member_takes_the_workspaces_lints() {
    let takes_none = |(folder, manifest): (String, toml::Table)| {
        let lints = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        (lints != Some(&true.into())).then_some(folder)
    };
    let breaches: Vec<_> = manifests().into_iter().filter_map(takes_none).collect();
    none("`[lints] workspace = true` is missing", &breaches);
}

fn name(manifest: &toml::Table) -> String {
    manifest["package"]["name"]
        .as_str()
        .expect("a package has a name")
        .to_owned()
}

/// The dependencies of the product itself: ordinary, per-target and build dependencies.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let ordinary = ["dependencies", "build-dependencies"].map(|key| manifest.get(key));
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(toml::Table::values);
    let of_targets = targets.map(|target| target.get("dependencies"));
    let tables = ordinary.into_iter().chain(of_targets).flatten();
    let names = tables
        .filter_map(toml::Value::as_table)
        .flat_map(toml::Table::keys);
    names.cloned().collect()
}
