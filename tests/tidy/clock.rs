//! No test judges by the wall clock: a busy machine is slower, and that is no error in what it
//! tests.

use crate::tree::{none, read, rust_files};

const JUDGES: &str = concat!(".elapsed()", " <");

/// Comparisons in test code, with their line numbers.
fn judgements(path: &str, text: &str) -> Vec<String> {
    let is_test = path.starts_with("tests/") || path.contains("/tests");
    let lines: Vec<&str> = text.lines().collect();
    let begin = match is_test {
        true => 0,
        false => lines
            .iter()
            .position(|line| *line == "mod tests {")
            .unwrap_or(lines.len()),
    };
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate().skip(begin) {
        // A loop with a duration, or a wait that only ends what hangs.
        let is_wait = line.trim_start().starts_with("while ") || line.contains("PATIENCE");
        if line.contains(JUDGES) && !is_wait && !is_paused(&lines, number) {
            found.push(format!("{path}:{}: {}", number + 1, line.trim()));
        }
    }
    found
}

/// Whether the test around this line has paused time; for a helper above the first test, whether
/// the first test has.
fn is_paused(lines: &[&str], number: usize) -> bool {
    let is_test = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("#[tokio::test") || line.starts_with("#[test]")
    };
    let (before, after) = lines.split_at(number);
    before
        .iter()
        .rev()
        .find(is_test)
        .or_else(|| after.iter().find(is_test))
        .is_some_and(|line| line.contains("start_paused = true"))
}

#[test]
fn no_test_judges_by_the_wall_clock() {
    let breaches: Vec<_> = rust_files()
        .into_iter()
        .flat_map(|path| judgements(&path, &read(&path)))
        .collect();
    none(
        "compare paused time, processor time or nothing: a busy machine fails this",
        &breaches,
    );
}

#[test]
fn a_judgement_is_found_in_tests_on_real_time_alone() {
    let judges = format!("    assert!(start{JUDGES} LIMIT);");
    let of = |path: &str, attribute: &str| {
        judgements(path, &format!("mod tests {{\n{attribute}\n{judges}\n")).len()
    };
    assert_eq!(of("crates/a/src/b.rs", "#[test]"), 1);
    assert_eq!(of("crates/a/src/b/tests.rs", "#[tokio::test]"), 1);
    assert_eq!(
        of("crates/a/src/b.rs", "#[tokio::test(start_paused = true)]"),
        0
    );
    assert_eq!(judgements("crates/a/src/b.rs", &judges).len(), 0);
}
