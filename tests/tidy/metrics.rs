//! Compares the metrics in the rules, the dashboard, the documentation and the web server's
//! configuration with the program's own table.

use std::collections::BTreeSet;

use orchestrator::ground::meters::Kind;
use orchestrator::serve::metrics::page;
use serde_json::Value;

use crate::tree::{none, read};

const RULES: &str = "deploy/prometheus/alerts.yml";
const RULES_TESTS: [&str; 2] = [
    "deploy/prometheus/alerts.test.yml",
    "deploy/prometheus/alerts.days.test.yml",
];
const DASHBOARD: &str = "deploy/grafana/fedicensus.json";

/// All names that a scrape may contain: a histogram has three.
fn names() -> BTreeSet<String> {
    page::all()
        .flat_map(|metric| match metric.kind {
            Kind::Counter | Kind::Gauge => vec![metric.name.to_owned()],
            Kind::Histogram => ["_bucket", "_sum", "_count"]
                .map(|end| format!("{}{end}", metric.name))
                .into(),
        })
        .chain(names_of_push())
        .collect()
}

/// The push service's metrics, which a scrape of that service adds.
fn names_of_push() -> Vec<String> {
    let told = read("services/push/src/serve/meters.rs");
    let names: Vec<_> = told
        .split('"')
        .filter(|word| word.starts_with("fedicensus_push_"))
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 2, "{names:?}");
    names
}

fn named(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric())
        .filter(|word| word.starts_with("fedicensus_"))
        .map(str::to_owned)
        .collect()
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match (key.as_str(), value) {
                    ("expr" | "query", Value::String(text)) => found.push(text.clone()),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A rule over a metric that does not exist never fires, and a plot of one is empty: neither
/// reports an error.
#[test]
fn rules_and_dashboard_use_what_is_told_and_nothing_else() {
    let told = names();
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let mut plotted = Vec::new();
    expressions(&dashboard, &mut plotted);
    assert!(plotted.len() > 40, "only {} expressions", plotted.len());
    let mut breaches = Vec::new();
    let mut used = BTreeSet::new();
    for (place, text) in [
        (RULES, read(RULES)),
        (RULES_TESTS[0], read(RULES_TESTS[0])),
        (RULES_TESTS[1], read(RULES_TESTS[1])),
        (DASHBOARD, plotted.join("\n")),
    ] {
        let named = named(&text);
        assert!(!named.is_empty(), "{place} names nothing");
        breaches.extend(
            named
                .difference(&told)
                .map(|name| format!("{place} names {name}")),
        );
        used.extend(named);
    }
    none("nobody tells this", &breaches);
    let unused: Vec<_> = page::all()
        .map(|metric| metric.name.to_owned())
        .chain(names_of_push())
        .filter(|told| !used.iter().any(|name| name.starts_with(told)))
        .collect();
    none("told, and neither plotted nor watched", &unused);
}

/// The login limiter's metrics, which a scrape of the console adds.
#[test]
fn rules_about_the_console_use_what_the_login_limiter_counts() {
    let counted = read("services/limiter/src/metrics.rs");
    let mut breaches = Vec::new();
    let mut found = BTreeSet::new();
    for place in [RULES, RULES_TESTS[0], "docs/metrics.md"] {
        let text = read(place);
        let words = text.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
        for word in words {
            if !word.starts_with("login_rate_limiter_") && !word.starts_with("limiter_") {
                continue;
            }
            if !counted.contains(&format!("\"{word}\"")) {
                breaches.push(format!("{place} names {word}"));
            }
            found.insert(word.to_owned());
        }
    }
    assert!(found.len() > 4, "{found:?}");
    none("the limiter counts no such thing", &breaches);
}

/// Every label in a rule or a plot belongs to the metric, or a scrape adds it.
#[test]
fn labels_that_are_asked_for_are_there() {
    let known: BTreeSet<&str> = page::all()
        .flat_map(|metric| metric.labels.iter().copied())
        .chain(["job", "instance", "le"])
        .collect();
    let mut breaches = Vec::new();
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let mut texts = Vec::new();
    expressions(&dashboard, &mut texts);
    texts.push(read(RULES));
    for text in texts {
        for piece in text.split("by (").skip(1).chain(text.split("on (").skip(1)) {
            let list = piece.split(')').next().unwrap_or_default();
            for label in list.split(',').map(str::trim) {
                if !known.contains(label) {
                    breaches.push(format!("{label} in {text}"));
                }
            }
        }
    }
    none("labels that nobody has", &breaches);
}

#[test]
fn each_alert_says_what_it_means_and_what_to_do_and_has_a_test() {
    let (rules, tests) = (read(RULES), RULES_TESTS.map(read).concat());
    let alerts: Vec<_> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 10, "only {} alerts", alerts.len());
    let mut breaches = Vec::new();
    for alert in alerts {
        let name = alert.lines().next().unwrap_or_default();
        for wanted in ["severity: ", "summary: ", "action: "] {
            if !alert.contains(wanted) {
                breaches.push(format!("{name} has no `{wanted}`"));
            }
        }
        if !tests.contains(&format!("{{alertname=\"{name}\"")) {
            breaches.push(format!("{name} is fired by no test"));
        }
    }
    none("alerts that help nobody", &breaches);
}

#[test]
fn the_documentation_has_every_metric_of_push() {
    let page = read("docs/metrics.md");
    for name in names_of_push() {
        assert!(page.contains(&format!("| `{name}` |")), "no {name}");
    }
}

#[test] // S41
fn metrics_are_never_at_the_public_port() {
    let public = read("deploy/nginx/site.conf");
    let metrics = read("deploy/nginx/metrics.conf");
    assert!(
        !public.contains("metrics.sock"),
        "the public port leads there"
    );
    let refused = "location = /metrics {\n        return 404;\n    }";
    assert!(
        public.contains(refused),
        "a file of this name would be served"
    );
    let listens: Vec<_> = metrics
        .lines()
        .filter_map(|line| line.trim().strip_prefix("listen "))
        .collect();
    assert!(matches!(listens[..], [only] if only.starts_with("9090 ")));
    let passed: Vec<_> = metrics
        .lines()
        .filter_map(|line| line.trim().strip_prefix("proxy_pass "))
        .collect();
    let sockets = [
        "http://unix:/run/metrics/metrics.sock:/metrics;",
        "http://unix:/run/console-http/http.sock:/metrics;",
        "http://unix:/run/push$push_node-http/http.sock:/metrics;",
    ];
    assert_eq!(passed, sockets);
    let includes = |text: &str| text.matches("include ").count();
    assert_eq!(
        includes(&metrics),
        0,
        "the public port's headers let any page read it"
    );

    // Only this machine can reach it, unless the operator sets an address.
    let (compose, unit) = (
        read("compose.yaml"),
        read("deploy/quadlet/fedicensus-web.container"),
    );
    assert!(compose.contains("\"${FEDICENSUS_METRICS_PORT:-127.0.0.1:9464}:9090\""));
    assert!(unit.contains("\nPublishPort=${FEDICENSUS_METRICS_PORT}:9090\n"));
    assert!(unit.contains("\nEnvironment=FEDICENSUS_METRICS_PORT=127.0.0.1:9464\n"));
    let settings = read("deploy/quadlet/fedicensus.env");
    assert!(settings.contains("\nFEDICENSUS_METRICS_PORT=127.0.0.1:9464\n"));
    // The web server may connect to the socket, and can neither remove nor replace it.
    assert!(compose.contains("source: metrics, target: /run/metrics, read_only: true"));
    assert!(unit.contains("\nVolume=fedicensus-metrics.volume:/run/metrics:ro,nocopy\n"));
}
