//! One dump from beginning to end: the set, its pages, one swap, its record.
//!
//! A failure of one part does not keep the other from being published. Pages are made from the set
//! that is published with them, new or former. So hosts that opted out leave the pages even if no
//! new set could be written or it was held back; if pages fail, the former ones are kept without
//! these hosts (invariant I7). A failed part is tried again minutes later, and `status` reports it
//! until then. The caller chooses with [`Extent`] how much is made.

use ::publish::{Tree, TreeError};
use scheduler::publication::Extent;
use site::Salt;
use store::{DayCounts, DumpRecord, Reader, SoftwareVersions, Writer};
use tokio::runtime::Handle;

use super::pages::PagesError;
use super::{Occasion, PublishError, Publisher, Set, day, pages};

/// The result of a dump.
#[derive(Debug)]
pub struct Done {
    /// The number of names in the list, or an error. An error of the list takes precedence over an
    /// error of the pages.
    pub names: Result<u64, PublishError>,
    /// Whether the pages belong to the published set.
    pub has_pages: bool,
    /// Whether a list that names a host was made.
    pub has_names: bool,
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
        self.try_make(extent).unwrap_or_else(|error| Done {
            names: Err(error),
            has_pages: false,
            has_names: false,
        })
    }

    fn try_make(&self, extent: Extent) -> Result<Done, PublishError> {
        let tree = self.publisher.begin(self.occasion.cancel)?;
        let list = self.list(&tree, extent)?;
        let is_as_before = matches!(list.outcome, Err(PublishError::HeldBack(_)));
        if extent == Extent::ListFirst && is_as_before && !list.is_changed {
            return Ok(Done {
                names: list.outcome,
                has_pages: true,
                has_names: false,
            });
        }
        let today = list.new.as_ref().and_then(|new| new.today.clone());
        let Self { reader, about, .. } = self;
        let (occasion, fixes) = (self.occasion, &self.publisher.fixes);
        let pages = pages::write(reader, &tree, occasion, about, self.salt, today, fixes);
        if pages.is_err() {
            self.occasion.cancel.check()?;
            if !list.is_changed {
                return Ok(done(list.outcome, pages.map(drop), false));
            }
            self.keep_pages(&tree)?;
        }
        tree.publish().map_err(|error| match error {
            TreeError::Cancelled => error.into(),
            error => PublishError::Swap(error),
        })?;
        if let Ok(written) = &pages {
            let site::Written { rows, answers } = written;
            tracing::debug!(rows, answers, "pages published");
        }
        let has_names = list.new.as_ref().is_some_and(|new| new.names > 0);
        let outcome = match list.new {
            Some(new) => self.record(new).and(list.outcome),
            None => list.outcome,
        };
        Ok(done(outcome, pages.map(drop), has_names))
    }

    /// Writes or keeps the set.
    fn list(&self, tree: &Tree, extent: Extent) -> Result<List, PublishError> {
        let former = |outcome, is_changed| List {
            outcome,
            is_changed,
            new: None,
        };
        if extent == Extent::Pages {
            tree.keep_where(dump::is_of_set)?;
            let names = self.reader.last_dump()?.map_or(0, |dump| dump.names);
            return Ok(former(Ok(names), false));
        }
        match self.publisher.write(tree, self.reader, self.occasion) {
            Ok(Set::New {
                names,
                is_full,
                unsigned,
                versions,
            }) => Ok(List {
                outcome: unsigned.map_or(Ok(names), |error| Err(PublishError::Unsigned(error))),
                is_changed: true,
                new: Some(New {
                    names,
                    is_full,
                    today: self.today(tree, versions),
                }),
            }),
            Ok(Set::HeldBack { why, is_changed }) => Ok(former(Err(why.into()), is_changed)),
            Err(error) => {
                self.occasion.cancel.check()?;
                // For pages without hosts that left.
                let kept = tree
                    .remove_where(dump::is_of_set)
                    .and_then(|()| tree.keep_where(dump::is_of_set));
                if kept.is_err() || tree.former().is_none() {
                    return Err(error);
                }
                Ok(former(Err(error), false))
            }
        }
    }

    /// Counts of the new list. The plots are no reason not to publish.
    fn today(&self, tree: &Tree, versions: Vec<SoftwareVersions>) -> Option<DayCounts> {
        let counts = day::counts(self.reader, tree, self.occasion.now, versions);
        counts.unwrap_or_else(|error| {
            // Only a point of the plots is missing.
            tracing::warn!(what = %error, "the day's counts could not be computed");
            None
        })
    }

    /// Replaces pages that failed by the former ones, without hosts that left.
    fn keep_pages(&self, tree: &Tree) -> Result<(), PublishError> {
        let is_page = |place: &str| !dump::is_of_set(place);
        tree.remove_where(is_page)?;
        let left = |host: &str| Ok(!self.occasion.stays(self.reader, host)?);
        if let Err(error) = site::keep(tree, left) {
            let what: PublishError = error;
            self.occasion.cancel.check()?;
            tracing::error!(%what, "the list is published without pages, since the former ones can't be kept");
            tree.remove_where(is_page)?;
        }
        Ok(())
    }

    fn record(&self, new: New) -> Result<(), PublishError> {
        let dump = DumpRecord {
            at: self.occasion.now,
            names: new.names,
            is_full: new.is_full,
        };
        Handle::current()
            .block_on(async {
                self.writer.record_dump(dump).await?;
                match new.today {
                    Some(today) => self.writer.record_day(today).await,
                    None => Ok(()),
                }
            })
            .map_err(PublishError::Unrecorded)
    }
}

struct List {
    /// The result once the tree is published.
    outcome: Result<u64, PublishError>,
    /// Whether it differs from the published one.
    is_changed: bool,
    new: Option<New>,
}

struct New {
    names: u64,
    is_full: bool,
    today: Option<DayCounts>,
}

fn done(list: Result<u64, PublishError>, pages: Result<(), PagesError>, has_names: bool) -> Done {
    let has_pages = pages.is_ok();
    let names = match (list, pages) {
        (Ok(_names), Err(error)) => Err(PublishError::Pages(error)),
        (Err(listed), Err(error)) => {
            tracing::error!(what = %error, "no new pages were published either");
            Err(listed)
        }
        (names, Ok(())) => names,
    };
    Done {
        names,
        has_pages,
        has_names,
    }
}
