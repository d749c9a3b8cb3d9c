//! Moderators in their console: a browser, the web server, and the whole census behind it.

mod console;
mod slow;

use std::process::Command;

use tests::Need;

/// `None` if a program is missing, which is printed.
pub(crate) fn is_there() -> Option<()> {
    for program in ["nginx", "chromium", "node"] {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .output();
        if !found.is_ok_and(|output| output.status.success()) {
            let why = format!("no `{program}` here: apt-get install nginx-light chromium nodejs");
            tests::skip(Need::Programs, &why);
            return None;
        }
    }
    Some(())
}
