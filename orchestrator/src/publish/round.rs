//! One dump from beginning to end: the set, its record, the day's counts, the pages.
//!
//! A failure of one part does not keep the others from being published. Pages are made from the set
//! that is published then, old or new. So hosts that opted out leave the pages even if no new set
//! could be written or it was held back (invariant I7). A failed part is tried again minutes later,
//! and `status` reports it until then. The caller chooses with [`Extent`] how much of the rest is
//! made with it.

use std::path::Path;

use scheduler::publication::Extent;
use site::Salt;
use store::{Reader, Writer};
use tokio::runtime::Handle;

use super::{Occasion, PublishError, Published, Publisher, day, pages};

/// The result of a dump.
#[derive(Debug)]
pub struct Done {
    /// The number of names in the list, or an error. An error of the list takes precedence over an
    /// error of the pages.
    pub names: Result<u64, PublishError>,
    /// Whether the pages belong to the published set.
    pub has_pages: bool,
}

/// One dump with all its inputs.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// Where it is published, and under which name.
    pub publisher: &'a Publisher,
    /// What the pages say about the census's operator.
    pub about: &'a pages::About,
    pub reader: &'a Reader,
    pub writer: &'a Writer,
    /// Time and manner of the dump.
    pub occasion: Occasion<'a>,
    /// Salt for the keys of the answers, from an unpredictable generator.
    pub salt: Salt,
}

impl Round<'_> {
    /// Makes all of it, and returns the number of names in the new list. Blocks; must run on a
    /// thread where the runtime allows blocking.
    ///
    /// # Errors
    /// See [`PublishError`]. An error of the list takes precedence over an error of the pages and
    /// over a missing signature; the others are logged.
    pub fn run(&self) -> Result<u64, PublishError> {
        self.make(Extent::Full).names
    }

    /// Makes as much of it as `extent` says. Blocks like [`Self::run`].
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

    /// Number of names in the last published list.
    fn standing_names(&self) -> Result<u64, PublishError> {
        Ok(self.reader.last_dump()?.map_or(0, |dump| dump.names))
    }

    /// Publishes the set and records it.
    fn list(&self) -> Result<u64, PublishError> {
        let (now, folder) = (self.occasion.now, &self.publisher.public_dir);
        // Opened now, it can be read after another set has replaced it. The plots are no reason not
        // to publish.
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
                        // Only a point of the plots is missing.
                        tracing::warn!(what = %error, "the day's counts could not be computed");
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

/// The index of the published set, which differs from that of any other; `None` if it can't be
/// read.
fn index(folder: &Path) -> Option<Vec<u8>> {
    let place = folder.join(dump::DATA_FOLDER).join(dump::INDEX_FILE);
    std::fs::read(place).ok()
}
