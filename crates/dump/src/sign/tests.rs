//! Compares with the program `minisign`. Without it these tests are skipped, or fail where
//! `FEDICENSUS_E2E` is `required`.

use std::path::Path;
use std::process::{Command, Output};

use super::*;

const SEED: [u8; SEED_BYTES] = [7; SEED_BYTES];

fn at(seconds: i64) -> Moment {
    Moment::from_milliseconds(seconds * 1000)
}

/// Runs the program in this folder. `None` if it is not installed.
pub(super) fn minisign(folder: &Path, arguments: &[&str]) -> Option<Output> {
    let mut minisign = Command::new("minisign");
    kit::output(minisign.args(arguments).current_dir(folder))
}

fn put(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), content).unwrap();
}

/// The key in a key file; the line before it is a comment.
fn key_line(file: &str) -> &str {
    file.lines().nth(1).unwrap()
}

/// As [`minisign`], with arguments without spaces in them.
fn minisign_by(folder: &Path, arguments: &str) -> Option<Output> {
    minisign(folder, &arguments.split(' ').collect::<Vec<_>>())
}

fn verifies(folder: &Path) -> Option<bool> {
    let output = minisign_by(folder, "-V -p fedicensus.pub -m index.json")?;
    Some(output.status.success())
}

fn signed(folder: &Path, content: &[u8], key: &SigningKey) {
    put(folder, "index.json", content);
    let signature = key.sign(content, "index.json", at(1_795_305_600));
    put(folder, "index.json.minisig", signature);
    put(folder, "fedicensus.pub", key.public().to_file());
}

#[test]
fn minisign_itself_takes_a_signature_and_shows_when_and_of_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::from_seed(&SEED);
    signed(folder.path(), b"{}\n", &key);
    // -H: accepts only the prehashed format.
    let arguments = format!("-V -H -P {} -m index.json", key.public());
    let Some(output) = minisign_by(folder.path(), &arguments) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let comment = "timestamp:1795305600\tfile:index.json\thashed";
    assert!(said.contains(comment), "{said}");
    assert_eq!(verifies(folder.path()), Some(true));
}

#[test]
fn one_flipped_bit_anywhere_or_another_key_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let key = SigningKey::from_seed(&SEED);
    let content = b"{\"files\":[]}\n";
    signed(path, content, &key);
    if verifies(path).is_none() {
        return;
    }
    for place in 0..content.len() {
        let mut flipped = content.to_vec();
        flipped[place] ^= 1;
        put(path, "index.json", &flipped);
        assert_eq!(verifies(path), Some(false), "byte {place}");
    }
    signed(path, content, &key);
    let signature = key.sign(content, "index.json", at(1_795_305_600));
    let comment = signature.replace("timestamp:1795305600", "timestamp:1795305601");
    put(path, "index.json.minisig", comment);
    assert_eq!(verifies(path), Some(false), "the trusted comment");
    signed(path, content, &key);
    let other = SigningKey::from_seed(&[8; SEED_BYTES]);
    put(path, "fedicensus.pub", other.public().to_file());
    assert_eq!(verifies(path), Some(false), "another key");
}

/// Ed25519 is deterministic, so two correct programs produce the same bytes.
#[test]
fn minisign_reads_our_secret_key_and_signs_byte_for_byte_as_we_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // An id with a leading zero, which versions of minisign show differently in a comment.
    let mut keys = (0..=u8::MAX).map(|byte| SigningKey::from_seed(&[byte; SEED_BYTES]));
    let key = keys.find(|key| key.public().id().starts_with('0')).unwrap();
    put(path, "secret", key.to_file().as_bytes());
    put(path, "index.json", "{}\n");
    let comment = "timestamp:1795305600\tfile:index.json\thashed";
    let untrusted = "signature from a fedicensus key";
    let files = ["-S", "-s", "secret", "-m", "index.json"];
    let comments = ["-t", comment, "-c", untrusted];
    let Some(output) = minisign(path, &[&files[..], &comments].concat()) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let theirs = std::fs::read_to_string(path.join("index.json.minisig")).unwrap();
    assert_eq!(theirs, key.sign(b"{}\n", "index.json", at(1_795_305_600)));
    let output = minisign(path, &["-R", "-s", "secret", "-p", "public"]).unwrap();
    assert!(output.status.success(), "{output:?}");
    let public = std::fs::read_to_string(path.join("public")).unwrap();
    assert_eq!(key_line(&public), key_line(&key.public().to_file()));
}

#[test]
fn a_key_that_minisign_made_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let Some(output) = minisign(path, &["-G", "-W", "-s", "secret", "-p", "fedicensus.pub"]) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let key = SigningKey::parse(&std::fs::read_to_string(path.join("secret")).unwrap()).unwrap();
    let public = std::fs::read_to_string(path.join("fedicensus.pub")).unwrap();
    assert_eq!(key_line(&public), key_line(&key.public().to_file()));
    put(path, "index.json", "x");
    let signature = key.sign(b"x", "index.json", at(0));
    put(path, "index.json.minisig", signature);
    assert_eq!(verifies(path), Some(true));
}

#[test]
fn a_damaged_or_foreign_key_is_refused_and_none_is_ever_shown() {
    let key = SigningKey::from_seed(&SEED);
    let file = key.to_file();
    assert_eq!(SigningKey::parse(&file).unwrap().public(), key.public());
    let line = file.lines().nth(1).unwrap();
    let bytes = Base64::decode_vec(line).unwrap();
    assert_eq!(bytes.len(), 158);
    let with = |bytes: &[u8]| format!("{UNTRUSTED}x\n{}\n", Base64::encode_string(bytes));
    // The salt and limits are meaningless without a passphrase.
    for place in (0..6).chain(54..158) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        assert!(SigningKey::parse(&with(&flipped)).is_err(), "byte {place}");
    }
    let mut scrypt = bytes.clone();
    scrypt[2..4].copy_from_slice(b"Sc");
    let refused = SigningKey::parse(&with(&scrypt)).unwrap_err();
    assert_eq!(refused, NoKey::Passphrase);
    let longer = [bytes.as_slice(), &[0]].concat();
    for content in [
        "",
        "untrusted comment: x",
        &key.public().to_file(),
        line,
        &with(&bytes[..157]),
        &with(&longer),
    ] {
        assert_eq!(SigningKey::parse(content).unwrap_err(), NoKey::Malformed);
    }
    let shown = format!("{key:?}");
    assert!(shown.contains(&key.public().id()), "{shown}");
    let has_secret = shown.contains("7, 7") || shown.contains("0707");
    assert!(!has_secret, "{shown}");
}

#[test]
fn a_name_cannot_add_a_line_to_a_signature() {
    let key = SigningKey::from_seed(&SEED);
    let text = key.sign(b"", "a\nuntrusted comment: b", at(0));
    assert_eq!(text.lines().count(), 4, "{text}");
}
