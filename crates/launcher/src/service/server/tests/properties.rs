//! The server accepts little (invariant I1): for any request, a container is built only
//! from a check's id, a host and the settings.

use proptest::prelude::*;
use protocol::Host;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::super::*;
use crate::container::spec::Spec;
use crate::engine::EngineKind;
use crate::engine::create::create_body;
use crate::tests::fake_engine::{FakeEngine, IMAGE_ID, Script};
use crate::wire::FaultKind;

struct Came {
    answer: Vec<u8>,
    /// The containers of checks, without the probe's.
    specs: Vec<Spec>,
    creates: usize,
}

fn send(line: &[u8]) -> Came {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let launcher = Launcher::new(Settings::default(), FakeEngine::new(Script::Print(0)));
        let keeping = launcher.clone();
        tokio::spawn(async move { keeping.keep(CancellationToken::new()).await });
        launcher.shared.settled().await;
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let asking = async {
            near.write_all(line).await.unwrap();
            near.write_all(b"\n").await.unwrap();
            let mut answer = Vec::new();
            near.read_to_end(&mut answer).await.unwrap();
            answer
        };
        let ((), answer) = tokio::join!(launcher.serve_connection(far), asking);
        let engine = &launcher.shared.engine;
        let mut specs = engine.specs();
        assert_eq!(specs.remove(0).argv, ["--probe"]);
        let calls = engine.calls();
        let creates = calls.iter().filter(|call| **call == "create");
        Came {
            answer,
            specs,
            creates: creates.count(),
        }
    })
}

/// Puts a check's four words into a body built for other words: nothing else may differ.
fn with_words(mut body: Value, check: &str, host: &str) -> Value {
    *body.pointer_mut("/Cmd/1").unwrap() = json!(format!("/egress/{check}"));
    *body.pointer_mut("/Cmd/3").unwrap() = json!(host);
    *body.pointer_mut("/Labels/org.fedicensus.check").unwrap() = json!(check);
    *body.pointer_mut("/Labels/org.fedicensus.host").unwrap() = json!(host);
    body
}

fn body(spec: &Spec) -> Value {
    serde_json::to_value(create_body(spec, EngineKind::Docker)).unwrap()
}

fn is_narrow(line: &[u8]) -> Result<(), TestCaseError> {
    let came = send(line);
    let Some(spec) = came.specs.first() else {
        prop_assert_eq!(came.creates, 1, "the probe's");
        let answer: Answer = serde_json::from_slice(&came.answer).unwrap();
        if let Answer::Fault(fault) = answer {
            prop_assert_eq!(fault.kind, FaultKind::BadRequest);
        }
        return Ok(());
    };
    prop_assert_eq!((came.specs.len(), came.creates), (1, 2));
    let asked: Value = serde_json::from_slice(line).unwrap();
    let asked = asked.as_object().unwrap();
    prop_assert_eq!(asked.keys().collect::<Vec<_>>(), ["launch"]);
    let launch = &asked["launch"];
    // The two words may also come as a list: serde accepts that form, and it carries no more
    // information.
    let (check, host) = match launch.as_array() {
        Some(words) => {
            prop_assert_eq!(words.len(), 2);
            (&words[0], &words[1])
        }
        None => {
            let keys: Vec<_> = launch.as_object().unwrap().keys().collect();
            prop_assert_eq!(keys, ["check", "host"]);
            (&launch["check"], &launch["host"])
        }
    };
    let check = CheckId::parse(check.as_str().unwrap()).unwrap();
    let host = Host::parse(host.as_str().unwrap()).unwrap();
    let settings = Settings::default();
    prop_assert_eq!(spec, &Spec::check(&settings, IMAGE_ID, &check, &host));
    let other = Spec::check(
        &settings,
        IMAGE_ID,
        &CheckId::from_random(0),
        &Host::parse("other.example").unwrap(),
    );
    let expect = with_words(body(&other), check.as_str(), host.as_str());
    prop_assert_eq!(body(spec), expect);
    let egress = format!("/egress/{check}");
    prop_assert_eq!(&spec.argv, &["--egress", &egress, "--", host.as_str()]);
    Ok(())
}

const ID: &str = "0123456789abcdef0123456789abcdef";

const NASTY: [&str; 24] = [
    "",
    ID,
    "a.example",
    "../../../../../../../../../../etc",
    "0123456789abcdef0123456789abcde/",
    "0123456789abcdef/../../../../../",
    "0123456789ABCDEF0123456789ABCDEF",
    "0123456789abcdef0123456789abcdef\n",
    "--probe",
    "-v=/:/host",
    "--.example",
    "a.example --privileged",
    "a.example\u{0}",
    "a.example\r\nX: y",
    "a.example,source=/",
    "a.example/../..",
    "a.example:443",
    "user@a.example",
    "PLEROMA.Example.",
    "bücher.example",
    "127.0.0.1",
    "[::1]",
    "org.fedicensus=other",
    "localhost/evil:latest",
];

const KEYS: [&str; 22] = [
    "launch",
    "kill",
    "list",
    "status",
    "check",
    "host",
    "image",
    "Image",
    "mounts",
    "Binds",
    "network",
    "NetworkMode",
    "HostConfig",
    "Privileged",
    "CapAdd",
    "labels",
    "argv",
    "Cmd",
    "Env",
    "memory",
    "__proto__",
    "",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(&NASTY[..]).prop_map(str::to_owned),
        2 => any::<u128>().prop_map(|bits| CheckId::from_random(bits).to_string()),
        2 => "[a-z]{1,8}\\.[a-z]{2,6}",
        1 => "\\PC{0,40}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(&KEYS[..]).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ]
}

/// Almost a launch: keys in any order, repeated, or with other keys. Written as text, because no
/// map repeats a key.
fn nearly() -> impl Strategy<Value = String> {
    let field = |name: &'static str| text().prop_map(move |text| (name.to_owned(), json!(text)));
    let extras = prop::collection::vec((key(), value()), 0..3);
    let outer = prop::collection::vec((key(), value()), 0..2);
    (field("check"), field("host"), extras, outer, any::<bool>()).prop_map(
        |(check, host, extras, outer, turned)| {
            let mut fields = vec![check, host];
            fields.extend(extras);
            if turned {
                fields.reverse();
            }
            let mut all = vec![("launch".to_owned(), object(&fields))];
            all.extend(
                outer
                    .iter()
                    .map(|(key, value)| (key.clone(), value.to_string())),
            );
            joined(&all)
        },
    )
}

fn object(fields: &[(String, Value)]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(key, value)| (key.clone(), value.to_string()))
        .collect();
    joined(&fields)
}

fn joined(fields: &[(String, String)]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(key, value)| format!("{}:{value}", json!(key)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

proptest! {
    #[test] // S14
    fn no_object_changes_a_container(value in value()) {
        is_narrow(value.to_string().as_bytes())?;
    }

    #[test] // S14
    fn no_launch_changes_a_container(line in nearly()) {
        is_narrow(line.as_bytes())?;
    }

    #[test]
    fn every_sound_launch_makes_the_same_container(bits: u128, host in "[a-z]{1,8}(\\.[a-z]{2,8}){1,3}") {
        let line = json!({"launch": {"check": CheckId::from_random(bits), "host": host}});
        prop_assert_eq!(send(line.to_string().as_bytes()).specs.len(), 1);
        is_narrow(line.to_string().as_bytes())?;
    }

    #[test]
    fn no_bytes_make_a_container(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        is_narrow(&bytes)?;
    }
}

#[test] // S39
fn what_is_said_twice_or_in_excess_is_refused() {
    let sound = format!(r#"{{"launch":{{"check":"{ID}","host":"a.example"}}}}"#);
    assert_eq!(send(sound.as_bytes()).specs.len(), 1);
    for line in [
        format!(r#"{{"launch":{{"check":"{ID}","check":"{ID}","host":"a.example"}}}}"#),
        format!(r#"{{"launch":{{"check":"{ID}","host":"a.example","host":"b.example"}}}}"#),
        format!(r#"{{"launch":{{"check":"{ID}","host":"a.example","image":"x"}}}}"#),
        format!(r#"{{"launch":{{"check":"{ID}","host":"a.example"}},"image":"x"}}"#),
        format!(
            r#"{{"launch":{{"check":"{ID}","host":"a.example"}},"launch":{{"check":"{ID}","host":"b.example"}}}}"#
        ),
        format!(r#"{{"launch":{{"check":"{ID}","host":["a.example","--privileged"]}}}}"#),
        format!(r#"{{"launch":{{"check":"{ID}","host":1e999}}}}"#),
        format!(r#"{{"launch":["{ID}","a.example","x"]}}"#),
        format!(r#"{{"launch":{{"check":"{ID}"}}}}"#),
        format!(r#"{{"LAUNCH":{{"check":"{ID}","host":"a.example"}}}}"#),
        format!(r#"[{sound}]"#),
        format!("{sound}{sound}"),
        format!("{sound} x"),
        "[".repeat(1000),
    ] {
        let came = send(line.as_bytes());
        assert!(came.specs.is_empty(), "{line}");
        let answer = serde_json::from_slice(&came.answer).unwrap();
        assert!(
            matches!(&answer, Answer::Fault(fault) if fault.kind == FaultKind::BadRequest),
            "{line}: {answer:?}"
        );
    }
}
