//! "Known since 2026-12" as a picture: one a month, which names no host. Owners copy it to their
//! own site and link it to their host's answer, which says what is true then.

/// The month of a day such as `2026-12-31`.
pub(crate) fn month(day: &str) -> String {
    day.chars().take("2026-12".len()).collect()
}

/// The path of a month's picture.
pub(crate) fn path(month: &str) -> String {
    format!("badges/known-since-{month}.svg")
}

/// The picture for a month such as `2026-12`.
pub(crate) fn badge(month: &str) -> String {
    format!(
        concat!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="168" height="28" role="img" aria-label="Known since {month}">"##,
            r##"<rect width="168" height="28" rx="6" fill="#0b6e66"/>"##,
            r##"<text x="84" y="18.5" fill="#fff" font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">known since {month}</text></svg>"##,
            "\n"
        ),
        month = month
    )
}
