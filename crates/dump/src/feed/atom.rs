//! Atom (RFC 4287).
//!
//! In: entries, newest first. Out: one document. Refused: nothing; text was made plain before, and is escaped here.

use super::{ATOM_FILE, About, Entry, plain};
use crate::instance::Moment;

/// Who made the feed: RFC 4287 §4.1.1 wants an author.
const AUTHOR: &str = "Fedicensus";

pub(super) fn render<'a>(
    about: &About,
    updated: Moment,
    entries: impl Iterator<Item = &'a Entry>,
) -> String {
    let mut document = Document(String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n",
    ));
    document.element("id", &about.id("feed"));
    document.element("title", &plain(&about.title));
    document.element("updated", &updated.to_string());
    document.link(
        "self",
        &format!(
            "{}{ATOM_FILE}",
            about.folder_url.as_deref().unwrap_or_default()
        ),
    );
    if let Some(home) = &about.home_url {
        document.link("alternate", home);
    }
    document.raw("<author>");
    document.element("name", AUTHOR);
    document.raw("</author>\n");
    for entry in entries {
        document.raw("<entry>\n");
        document.element("id", &about.id(&entry.time.to_string()));
        document.element("title", &entry.title);
        document.element("updated", &entry.time.to_string());
        document.raw("<content type=\"text\">");
        document.text(&entry.text);
        document.raw("</content>\n</entry>\n");
    }
    document.raw("</feed>\n");
    document.0
}

/// XML while it grows.
struct Document(String);

impl Document {
    fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Text, or an attribute's value between double quotes.
    fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.raw("&amp;"),
                '<' => self.raw("&lt;"),
                '>' => self.raw("&gt;"),
                '"' => self.raw("&quot;"),
                '\'' => self.raw("&#39;"),
                _ => self.0.push(character),
            }
        }
    }

    fn element(&mut self, name: &str, text: &str) {
        self.raw("<");
        self.raw(name);
        self.raw(">");
        self.text(text);
        self.raw("</");
        self.raw(name);
        self.raw(">\n");
    }

    fn link(&mut self, rel: &str, href: &str) {
        self.raw("<link rel=\"");
        self.raw(rel);
        self.raw("\" href=\"");
        self.text(&plain(href));
        self.raw("\"/>\n");
    }
}
