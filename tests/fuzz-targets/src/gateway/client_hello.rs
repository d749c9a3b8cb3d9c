//! The first bytes of a check's connection: only a ClientHello that names the host in plain text
//! passes, unchanged.

use crate::input::{OWN, Trickle, pieces, run};
use gateway::net::client_hello::{HELLO_BYTES_MAX, HelloError, read};

/// Handshake records and Encrypted Client Hello (RFC 8446 §5.1, RFC 9849).
const HANDSHAKE: u8 = 22;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const SERVER_NAME: u16 = 0;

pub fn check(data: &[u8]) {
    let whole = run(read(&mut Trickle::new(&[data]), &OWN));
    let in_pieces = run(read(&mut Trickle::new(&pieces(data)), &OWN));
    if data.len() <= HELLO_BYTES_MAX {
        assert_eq!(kind(&whole), kind(&in_pieces));
    }
    for hello in [whole, in_pieces].into_iter().flatten() {
        assert!(data.starts_with(&hello) && hello.len() <= HELLO_BYTES_MAX);
        let extensions = extensions(&hello).expect("a sound hello passed");
        assert!(
            !extensions
                .iter()
                .any(|(kind, _)| *kind == ENCRYPTED_CLIENT_HELLO)
        );
        let names: Vec<_> = extensions
            .iter()
            .filter(|(kind, _)| *kind == SERVER_NAME)
            .collect();
        assert_eq!(names.len(), 1);
        // List's length, type, name's length, name.
        let name = names[0].1.get(5..).unwrap_or_default().to_ascii_lowercase();
        let name = name.strip_suffix(b".").unwrap_or(&name);
        assert_eq!(name, OWN.as_str().as_bytes());
    }
}

fn kind(result: &Result<Vec<u8>, HelloError>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The extensions of the first message, from handshake records only, as the server would read it.
fn extensions(stream: &[u8]) -> Option<Vec<(u16, Vec<u8>)>> {
    let mut message = Vec::new();
    let mut rest = stream;
    while let [kind, _, _, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        if *kind == HANDSHAKE {
            message.extend_from_slice(&after[..length]);
        }
        rest = &after[length..];
    }
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(*message.get(at)?);
    at += 2 + usize::from(u16::from_be_bytes([
        *message.get(at)?,
        *message.get(at + 1)?,
    ]));
    at += 1 + usize::from(*message.get(at)?);
    let all = usize::from(u16::from_be_bytes([
        *message.get(at)?,
        *message.get(at + 1)?,
    ]));
    let mut rest = message.get(at + 2..at + 2 + all)?;
    let mut extensions = Vec::new();
    while let [a, b, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        extensions.push((u16::from_be_bytes([*a, *b]), after.get(..length)?.to_vec()));
        rest = &after[length..];
    }
    Some(extensions)
}
