//! Writes the whole site, from rows to files.

use std::collections::BTreeSet;

use dump::ListedRow;
use protocol::Host;
use publish::Tree;

use crate::answers::answer::{Answer, Key};
use crate::answers::badge;
use crate::answers::shards::Shards;
use crate::error::SiteError;
use crate::facts::{Facts, Push};
use crate::history;
use crate::list::List;
use crate::pages;
use crate::pages::assets::{ASSETS, CARD, FAVICON, PUSH_ASSETS};
use crate::robots;
use crate::software::{self, Candidates};

/// The folder with the pages of each software.
const SOFTWARE_FOLDER: &str = "software";

/// A site that is being written into a tree.
#[derive(Debug)]
pub struct Site<'t> {
    facts: Facts,
    tree: &'t Tree,
    list: List<'t>,
    candidates: Candidates,
    shards: Shards<'t>,
    /// The months since which listed hosts are known: at most those since 1970.
    months: BTreeSet<String>,
}

/// What a site holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub rows: u64,
    pub answers: u64,
}

impl<'t> Site<'t> {
    /// Begins a site in a tree that has no pages yet.
    pub fn begin(tree: &'t Tree, mut facts: Facts) -> Result<Self, SiteError> {
        facts.history = history::fit(facts.history);
        Ok(Self {
            list: List::new(tree)?,
            shards: Shards::new(tree)?,
            candidates: Candidates::default(),
            months: BTreeSet::new(),
            facts,
            tree,
        })
    }

    /// Adds a listed host, strictly ascending by name.
    pub fn instance(&mut self, instance: &ListedRow) -> Result<(), SiteError> {
        let (software, span) = self.list.push(instance)?;
        if let Some(software) = software {
            self.candidates.add(software);
        }
        self.months.insert(badge::month(&instance.first_seen.day()));
        let key = Key::of_name(self.facts.salt, &instance.host);
        self.shards.listed(key, span)
    }

    /// Adds the answer for a known host, listed or not, in any order.
    pub fn answer(&mut self, host: &Host, answer: &Answer) -> Result<(), SiteError> {
        self.tree.cancel().check()?;
        self.shards.push(Key::of(self.facts.salt, host), answer)
    }

    /// Writes all pages.
    ///
    /// # Errors
    /// A page can't be written, or the work is cancelled. Some pages may be there then.
    pub fn finish(self) -> Result<Written, SiteError> {
        let Self {
            facts,
            tree,
            list,
            candidates,
            shards,
            months,
        } = self;
        let mut listed = list.finish()?;
        let answers = shards.write(facts.made, facts.salt, &listed)?;
        let ranking = software::rank(candidates, &mut listed, dump::slugs::sha256)?;
        for software in &ranking.pages {
            let name = format!("{SOFTWARE_FOLDER}/{}.html", software.slug);
            let text = pages::software(&facts, listed.rows, software);
            tree.write_page(&name, text.as_bytes())?;
        }
        software::files::write(tree, SOFTWARE_FOLDER, &mut listed, &ranking.pages)?;
        let scripts: &[_] = match facts.push {
            Push::Open => &PUSH_ASSETS,
            Push::Closed => &[],
        };
        for (name, bytes) in ASSETS.iter().chain(scripts) {
            tree.write_page(name, bytes.as_bytes())?;
        }
        tree.write_page("favicon.ico", FAVICON)?;
        // It does not profit from gzip.
        tree.write("card.png", CARD)?;
        let page = |name: &str, text: String| tree.write_page(name, text.as_bytes());
        for month in &months {
            page(&badge::path(month), badge::badge(month))?;
        }
        for (name, bytes) in pages::plot_files(&facts) {
            tree.write_page(&name, &bytes)?;
        }
        for (name, text) in pages::fixes(&facts) {
            page(&name, text)?;
        }
        page("robots.txt", robots::robots_txt(&facts))?;
        if let Some(sitemap) = robots::sitemap(&facts, &ranking.pages) {
            page("sitemap.xml", sitemap)?;
        }
        page("index.html", pages::start(&facts, &listed, &ranking))?;
        page("why.html", pages::why(&facts, answers.shape))?;
        page("my-hosts.html", pages::hosts(&facts))?;
        page("my-peers.html", pages::peers(&facts))?;
        page("owners.html", pages::owners(&facts))?;
        page("data.html", pages::data(&facts))?;
        page("404.html", pages::missing(&facts))?;
        page("429.html", pages::too_often(&facts))?;
        page(
            "software.html",
            pages::all_software(&facts, listed.rows, &ranking),
        )?;
        Ok(Written {
            rows: listed.rows,
            answers: answers.answers,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
