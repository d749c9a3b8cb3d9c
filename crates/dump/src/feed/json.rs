//! JSON Feed 1.1 (<https://jsonfeed.org/version/1.1>).
//!
//! In: entries, newest first. Out: one document. Refused: nothing.

use serde::Serialize;

use super::{About, Entry, JSON_FILE, plain};
use crate::instance::Moment;

/// What makes it a JSON Feed.
const VERSION: &str = "https://jsonfeed.org/version/1.1";

#[derive(Serialize)]
struct Feed<'a> {
    version: &'static str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    home_page_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feed_url: Option<String>,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: String,
    title: &'a str,
    content_text: &'a str,
    date_published: Moment,
}

pub(super) fn render<'a>(about: &About, entries: impl Iterator<Item = &'a Entry>) -> String {
    let feed = Feed {
        version: VERSION,
        title: plain(&about.title),
        home_page_url: about.home_url.as_deref(),
        feed_url: about
            .folder_url
            .as_ref()
            .map(|folder| format!("{folder}{JSON_FILE}")),
        items: entries
            .map(|entry| Item {
                id: about.id(&entry.time.to_string()),
                title: &entry.title,
                content_text: &entry.text,
                date_published: entry.time,
            })
            .collect(),
    };
    // Text, moments and lists alone: there is nothing that JSON can't hold.
    let mut document = serde_json::to_string(&feed).unwrap_or_default();
    document.push('\n');
    document
}
