//! The whole site, from rows to files.

use std::path::Path;

use dump::{Cancel, Instance};
use protocol::Host;

use crate::answers::answer::{Answer, Key};
use crate::answers::shards::{self, Shards};
use crate::error::{SiteError, Skipped};
use crate::facts::{Facts, Push};
use crate::history;
use crate::list::List;
use crate::pages;
use crate::pages::assets::{ASSETS, FAVICON, PUSH_ASSETS};
use crate::robots;
use crate::software::{self, Candidates, Ranking};
use crate::staging::{self, Staging};

/// The folder of the pages of each software.
const SOFTWARE_FOLDER: &str = "software";

/// The sitemap. There is none without an address.
const SITEMAP: &str = "sitemap.xml";
const SITEMAP_GZIP: &str = "sitemap.xml.gz";

/// The picture for links to the site, as [`crate::pages`] name it.
const CARD: &str = "card.png";

/// A site that is being written beside the published one. Dropped, it is taken away again.
#[derive(Debug)]
pub struct Site {
    facts: Facts,
    staging: Staging,
    list: List,
    candidates: Candidates,
    shards: Shards,
}

/// A site that is written, complete and on the disk, and not yet published. Dropped, it is taken away again.
#[derive(Debug)]
pub struct Staged {
    staging: Staging,
    rows: u64,
    answers: u64,
}

/// Removes what a crash left beside the published pages in `folder`, and tells how many files that were. For the start, before anything is written.
///
/// # Errors
/// When a folder can't be read or such a file can't be removed.
pub fn clear_stale(folder: &Path) -> Result<u32, SiteError> {
    [
        Path::new(""),
        Path::new(SOFTWARE_FOLDER),
        Path::new(shards::FOLDER),
    ]
    .iter()
    .try_fold(0_u32, |sum, name| {
        Ok(sum.saturating_add(staging::clear(&folder.join(name))?))
    })
}

impl Site {
    /// Begins a site in the public folder. It ends with [`SiteError::Cancelled`] once `cancel` is
    /// called, up to [`Staged::publish`].
    ///
    /// # Errors
    /// When the folder is not there or can't be written.
    pub fn begin(folder: &Path, mut facts: Facts, cancel: &Cancel) -> Result<Self, SiteError> {
        facts.history = history::fit(facts.history);
        let mut staging = Staging::new(folder, cancel.clone());
        Ok(Self {
            list: List::new(folder, &mut staging)?,
            shards: Shards::new(folder)?,
            candidates: Candidates::default(),
            facts,
            staging,
        })
    }

    /// Takes a listed host, strictly ascending by name.
    ///
    /// # Errors
    /// When it is out of order or can't be written.
    pub fn instance(&mut self, instance: &Instance) -> Result<(), SiteError> {
        if let Some(software) = self.list.push(instance)? {
            self.candidates.add(software);
        }
        Ok(())
    }

    /// Takes the answer for a host that the census knows, listed or not, in any order.
    ///
    /// # Errors
    /// When it can't be written, or is no longer wanted.
    pub fn answer(&mut self, host: &Host, answer: &Answer) -> Result<(), SiteError> {
        self.staging.check()?;
        self.shards.push(Key::of(self.facts.salt, host), answer)
    }

    /// Writes all pages and waits until they are on the disk.
    ///
    /// # Errors
    /// Why that failed. Nothing is left behind then.
    pub fn finish(self) -> Result<Staged, SiteError> {
        let Self {
            facts,
            mut staging,
            list,
            candidates,
            shards,
        } = self;
        let written = shards.write(&mut staging, facts.made, facts.salt)?;
        let mut listed = list.finish()?;
        let mut ranking = software::rank(candidates, &mut listed, software::sha256)?;
        // Before the pages that link to them.
        write_software(&mut staging, &facts, listed.rows, &mut ranking)?;
        software::files::write(&mut staging, SOFTWARE_FOLDER, &mut listed, &ranking.pages)?;
        for (name, bytes) in ASSETS {
            staging.write(name, bytes.as_bytes())?;
        }
        write_push(&mut staging, facts.push)?;
        staging.write("favicon.ico", FAVICON)?;
        staging.write_plain(CARD, &pages::card(&facts, listed.rows)?)?;
        staging.write("robots.txt", robots::robots_txt(&facts).as_bytes())?;
        match robots::sitemap(&facts, &ranking.pages) {
            Some(sitemap) => staging.write(SITEMAP, sitemap.as_bytes())?,
            None => staging.retire(&[SITEMAP, SITEMAP_GZIP]),
        }
        let mut page = |name: &str, text: String| staging.write(name, text.as_bytes());
        page("index.html", pages::start(&facts, &listed, &ranking))?;
        page("why.html", pages::why(&facts, written.shape))?;
        page("owners.html", pages::owners(&facts))?;
        page("data.html", pages::data(&facts))?;
        page("404.html", pages::missing(&facts))?;
        page("429.html", pages::too_often(&facts))?;
        page(
            "software.html",
            pages::all_software(&facts, listed.rows, &ranking),
        )?;
        staging.retire_others(SOFTWARE_FOLDER)?;
        staging.sync()?;
        Ok(Staged {
            staging,
            rows: listed.rows,
            answers: written.answers,
        })
    }
}

/// Writes the page of each software in the ranking. One whose page can't be written for its name's
/// sake stays in the ranking without a page.
fn write_software(
    staging: &mut Staging,
    facts: &Facts,
    listed: u64,
    ranking: &mut Ranking,
) -> Result<(), SiteError> {
    staging.make_folder(SOFTWARE_FOLDER)?;
    for software in std::mem::take(&mut ranking.pages) {
        let name = format!("{SOFTWARE_FOLDER}/{}.html", software.slug);
        let text = pages::software(facts, listed, &software);
        if staging.write_page(&name, text.as_bytes())? {
            ranking.pages.push(software);
        } else {
            ranking.without_page(software);
        }
    }
    Ok(())
}

/// Writes the scripts of the button for notifications, or removes those of a census that had push.
fn write_push(staging: &mut Staging, push: Push) -> Result<(), SiteError> {
    for (name, script) in PUSH_ASSETS {
        match push {
            Push::Open => staging.write(name, script.as_bytes())?,
            Push::Closed => staging.retire(&[name, &format!("{name}.gz")]),
        }
    }
    Ok(())
}

impl Staged {
    /// Listed hosts in it.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Hosts that it has an answer for.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Puts all files in the places of the last site's, one after the other. Gives the pages that
    /// the site is published without.
    ///
    /// # Errors
    /// When one can't take its place or can't be made to stay there. Each file is then the old one or the new one, whole.
    pub fn publish(self) -> Result<Vec<Skipped>, SiteError> {
        self.staging.publish()
    }
}

#[cfg(test)]
mod tests;
