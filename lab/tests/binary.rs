//! The program from a shell's point of view. This test also makes `cargo test` build the program,
//! which scenarios start from their own directory.

use std::process::Command;

#[test]
fn the_table_has_every_persona_once() {
    let output = Command::new(env!("CARGO_BIN_EXE_fedicensus-lab"))
        .args(["expect", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let told: Vec<_> = table["personas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|persona| persona["host"].as_str().unwrap().to_owned())
        .collect();
    let played = lab::personas::personas();
    assert_eq!(told.len(), played.len());
    for persona in played {
        let name = persona.host.to_string();
        let count = told.iter().filter(|host| **host == name).count();
        assert_eq!(count, 1, "{}", persona.host);
    }
}
