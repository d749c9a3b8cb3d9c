//! One dump from its beginning to its end: the set, the record of it, the day's counts, the pages.
//!
//! In: the database, a folder. Out: what is published, and what the database remembers of it. Refused: to let a failure of one keep the others from being
//! published: pages are made of the set that stands then, whichever that is, so that who opted out is gone from them too when no set could be written
//! or one was held back (invariant I7). What failed is tried again minutes later, and `status` says it meanwhile; the caller says with [`Extent`] how much
//! of the rest is made with it.

use std::path::Path;

use scheduler::publication::Extent;
use site::Salt;
use store::{Reader, Writer};
use tokio::runtime::Handle;

use super::{Occasion, PublishError, Published, Publisher, day, pages};

/// What came of a dump.
#[derive(Debug)]
pub struct Done {
    /// The number of names in the list, or what is wrong with it, which goes before what is wrong with the pages.
    pub names: Result<u64, PublishError>,
    /// Whether the pages are those of the set that stands.
    pub has_pages: bool,
}

/// One dump, and all that it goes by.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// Where it is published, and as whom.
    pub publisher: &'a Publisher,
    /// What the pages say of whoever runs the census.
    pub about: &'a pages::About,
    /// Where rows come from.
    pub reader: &'a Reader,
    /// Who remembers it.
    pub writer: &'a Writer,
    /// When and how.
    pub occasion: Occasion<'a>,
    /// What the keys of the answers are made with, of a generator that nobody can foresee.
    pub salt: Salt,
}

impl Round<'_> {
    /// Does all of it, and gives the number of names in the new list. Blocks: for a thread on which a runtime allows that, and on no other.
    ///
    /// # Errors
    /// See [`PublishError`]. What is wrong with the list goes before what is wrong with the pages, which is then in the log; so does that it is not signed.
    pub fn run(&self) -> Result<u64, PublishError> {
        self.make(Extent::Full).names
    }

    /// Does as much of it as `extent` says. Blocks like [`Self::run`].
    pub fn make(&self, extent: Extent) -> Done {
        let folder = &self.publisher.public_dir;
        let names = match extent {
            Extent::Full => self.list(),
            Extent::ListFirst => {
                let former = index(folder);
                let names = self.list();
                if matches!(names, Err(PublishError::HeldBack(_))) && index(folder) == former {
                    return Done {
                        names,
                        has_pages: true,
                    };
                }
                names
            }
            Extent::Pages => self.standing_names(),
        };
        let pages = pages::publish(self.reader, folder, self.occasion, self.about, self.salt);
        let has_pages = pages.is_ok();
        let names = match (names, pages) {
            (Ok(_names), Err(error)) => Err(PublishError::Pages(error)),
            (Err(listed), Err(error)) => {
                tracing::error!(what = %error, "no new pages were published either");
                Err(listed)
            }
            (names, Ok(())) => names,
        };
        Done { names, has_pages }
    }

    /// Names of the list that was published last.
    fn standing_names(&self) -> Result<u64, PublishError> {
        Ok(self.reader.last_dump()?.map_or(0, |dump| dump.names))
    }

    /// The set, and the record of it.
    fn list(&self) -> Result<u64, PublishError> {
        let (now, folder) = (self.occasion.now, &self.publisher.public_dir);
        // Opened now, it can be read when another has taken its place. Plots are no reason not to publish.
        let former = dump::standing_rows(folder).ok().flatten();
        let Published { names, unsigned } = self.publisher.publish(self.reader, self.occasion)?;
        let day = day::counts(self.reader, folder, former, now, self.occasion.cancel);
        Handle::current()
            .block_on(async {
                self.writer.record_dump(now, names).await?;
                match day {
                    Ok(Some(day)) => self.writer.record_day(day).await,
                    Ok(None) => Ok(()),
                    Err(error) => {
                        // The plots lack a point, and nothing else.
                        tracing::warn!(what = %error, "the day's counts could not be made");
                        Ok(())
                    }
                }
            })
            .map_err(PublishError::Unrecorded)?;
        match unsigned {
            Some(error) => Err(PublishError::Unsigned(error)),
            None => Ok(names),
        }
    }
}

/// The index of the set that stands, which differs from that of any other; nothing where none can be read.
fn index(folder: &Path) -> Option<Vec<u8>> {
    let place = folder.join(dump::DATA_FOLDER).join(dump::INDEX_FILE);
    std::fs::read(place).ok()
}
