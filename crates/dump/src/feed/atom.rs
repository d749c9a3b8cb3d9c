//! Renders entries as an Atom document (RFC 4287), newest first. The caller has replaced unwanted
//! characters; this module escapes the text.

use super::{About, Entry, Named, plain};
use crate::row::Moment;

/// RFC 4287 §4.1.1 requires an author.
const AUTHOR: &str = "Fedicensus";

/// `feed` is what its id is derived from, its file and its title.
pub(super) fn render<'a>(
    about: &About,
    (of, file, title): (&str, &str, &str),
    updated: Moment,
    entries: impl Iterator<Item = &'a Entry>,
) -> String {
    let mut document = Document(String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n",
    ));
    document.element("id", &about.id(of));
    document.element("title", &plain(title));
    document.element("updated", &updated.to_string());
    document.element("rights", &plain(&about.licence));
    document.link(
        "self",
        &format!("{}{file}", about.folder_url.as_deref().unwrap_or_default()),
    );
    if let Some(home) = &about.home_url {
        document.link("alternate", home);
    }
    document.raw("<author>");
    document.element("name", AUTHOR);
    document.raw("</author>\n");
    for entry in entries {
        document.raw("<entry>\n");
        document.element("id", &about.id(&entry.of));
        document.element("title", &entry.title);
        document.element("updated", &entry.time.to_string());
        if let Some(home) = &about.home_url {
            document.link("alternate", home);
        }
        // HTML within XML: escaped twice.
        document.raw("<content type=\"html\">");
        document.text(&html(entry, about.home_url.as_deref()));
        document.raw("</content>\n</entry>\n");
    }
    document.raw("</feed>\n");
    document.0
}

/// An entry as HTML. Names link to their answers below `home`, if that is known.
fn html(entry: &Entry, home: Option<&str>) -> String {
    let mut html = Document(String::new());
    html.raw("<p>");
    html.text(&format!("{} instances in the list.", entry.hosts));
    html.raw("</p>");
    for (heading, hosts) in &entry.groups {
        html.raw("<p>");
        html.text(heading);
        html.raw(": ");
        for (number, named) in hosts.iter().enumerate() {
            if number > 0 {
                html.raw(", ");
            }
            html.named(named, home);
        }
        html.raw("</p>");
    }
    if entry.unnamed > 0 {
        html.raw("<p>");
        html.text(&format!("Not named: {}.", entry.unnamed));
        html.raw("</p>");
    }
    html.0
}

/// XML or HTML while it is written.
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

    fn named(&mut self, named: &Named, home: Option<&str>) {
        if let Some(home) = home {
            self.raw("<a href=\"");
            self.text(&format!("{}why.html#{}", plain(home), named.host));
            self.raw("\">");
        }
        self.text(&named.host);
        if home.is_some() {
            self.raw("</a>");
        }
        self.text(&named.words);
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
