//! A day's file of changes, and its notifications: every message fits, and subscribers learn only
//! names that they asked for or that are published.

use push::notify::seal::MESSAGE_BYTES_MAX;
use push::notify::text::Text;
use push::notify::{Change, Filter, Section};

/// Longest name of a subscription's subject, in bytes.
const SUBJECT_BYTES_MAX: usize = 253;

/// Changes whose names are tried as filters.
const TRIED_MAX: usize = 8;

pub fn check(file: &[u8]) {
    let Ok(Some(section)) = Section::after(None, file) else {
        return;
    };
    let lines = file.split(|byte| *byte == b'\n').count();
    assert!(section.recent().len() < lines && section.recent().ends_with(section.changes()));
    if let Some(text) = Text::of(&section, &Filter::All) {
        fits(&text);
        let is_of_numbers = |c: char| c.is_ascii_digit() || "new,ogelistd ".contains(c);
        assert!(text.body.chars().all(is_of_numbers), "{}", text.body);
    }
    for change in section.recent().iter().take(TRIED_MAX) {
        match change {
            Change::Appeared(row) | Change::Returned(row) | Change::Changed(row) => {
                tell(&section, Filter::Host, &row.host);
                if let Some(software) = &row.software {
                    tell(&section, Filter::Software, software);
                }
            }
            Change::Died { host } | Change::Moved { host, .. } => {
                tell(&section, Filter::Host, host);
            }
            Change::Left { host_sha256 } => tell(&section, Filter::Host, host_sha256),
        }
    }
}

fn tell(section: &Section, filter: fn(String) -> Filter, subject: &str) {
    if subject.len() <= SUBJECT_BYTES_MAX {
        let filter = filter(subject.to_owned());
        let texts = [
            Text::of(section, &filter),
            Text::of_recent(section, &filter),
        ];
        texts.iter().flatten().for_each(fits);
    }
}

fn fits(text: &Text) {
    let words = serde_json::to_vec(text).expect("it has a JSON form");
    assert!(words.len() <= MESSAGE_BYTES_MAX, "{} bytes", words.len());
}
