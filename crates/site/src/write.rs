//! Writes the whole site, from rows to files.

use std::path::Path;

use dump::{Cancel, ListedRow};
use protocol::Host;

use crate::answers::answer::{Answer, Key};
use crate::answers::shards::{self, Shards};
use crate::error::{SiteError, Skipped};
use crate::facts::{Facts, Push};
use crate::history;
use crate::list::List;
use crate::pages;
use crate::pages::assets::{ASSETS, CARD, FAVICON, PUSH_ASSETS};
use crate::robots;
use crate::software::{self, Candidates, Ranking};
use crate::staging::{self, Staging};

/// The folder with the pages of each software.
const SOFTWARE_FOLDER: &str = "software";

/// The sitemap, which exists only with an address.
const SITEMAP: &str = "sitemap.xml";
const SITEMAP_GZIP: &str = "sitemap.xml.gz";

/// A site that is being written next to the published one. Dropping it removes its files.
#[derive(Debug)]
pub struct Site {
    facts: Facts,
    staging: Staging,
    list: List,
    candidates: Candidates,
    shards: Shards,
}

/// A complete site on disk that is not yet published. Dropping it removes its files.
#[derive(Debug)]
pub struct Staged {
    staging: Staging,
    rows: u64,
    answers: u64,
}

/// Removes files that a crash left next to the published pages in `folder`, and returns their
/// number. Call it at start, before anything is written.
///
/// # Errors
/// A folder can't be read, or such a file can't be removed.
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
    /// Begins a site in the public folder. After `cancel` is called, all steps before
    /// [`Staged::publish`] fail with [`SiteError::Cancelled`].
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

    /// Adds a listed host, strictly ascending by name.
    pub fn instance(&mut self, instance: &ListedRow) -> Result<(), SiteError> {
        if let Some(software) = self.list.push(instance)? {
            self.candidates.add(software);
        }
        Ok(())
    }

    /// Adds the answer for a known host, listed or not, in any order.
    pub fn answer(&mut self, host: &Host, answer: &Answer) -> Result<(), SiteError> {
        self.staging.check()?;
        self.shards.push(Key::of(self.facts.salt, host), answer)
    }

    /// Writes all pages and waits until they are on disk.
    ///
    /// # Errors
    /// A page can't be written, or the work is cancelled. No files are left.
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
        staging.write_plain("card.png", CARD)?;
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

/// Writes the page of each software in the ranking. Software whose page can't be written because of
/// its name stays in the ranking without a page.
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

/// Writes the scripts of the notification button, or removes them if the census has no push
/// service.
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
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Publishes all files, one after the other, in place of the last site's. Returns the skipped
    /// pages.
    ///
    /// # Errors
    /// A file can't be renamed or the rename can't be synced. Each file is then either the complete
    /// old or the complete new one.
    pub fn publish(self) -> Result<Vec<Skipped>, SiteError> {
        self.staging.publish()
    }
}

#[cfg(test)]
mod tests;
