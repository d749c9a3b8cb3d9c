//! Makes the pages from the list in a tree and the database.
//!
//! Reads the list's rows and every host in the database, both sorted by name, in parallel, and
//! writes the site into the tree. Shows no row whose host has withdrawn since the list was written
//! (invariant I7). The answer to "why is it not listed?" is made at the same
//! moment and agrees with that. Whether a host is listed depends on the published row. Memory does
//! not grow with the hosts.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::Path;

use ::publish::Tree;
use admission::DomainList;
use census::state::StateName;
use census::time::Timestamp;
use census::why::{self, Denied, Reason, Subject};
use dump::{DumpError, ListedRow, ListedState, RowError, Rows};
use protocol::Host;
use site::facts::{Intake, Push, Reading};
use site::fixes::Fix;
use site::{Age, Answer, Day, Facts, Found, Place, Salt, Site, SiteError, Why, Written};
use store::{DayCounts, HostAnswer, KnownHost, Reader, StoreError};
use thiserror::Error;

use super::{Imprint, Occasion, day, fixes, moment, progress};

/// The facts about the census for the pages.
#[derive(Debug, Clone)]
pub struct About {
    /// Name, operator and so on.
    pub imprint: Imprint,
    /// Whether owners can submit hosts and opt out over HTTP.
    pub intake: Intake,
    /// Whether readers can be notified of changes.
    pub push: Push,
    /// What the census reads from instances.
    pub reading: Reading,
    /// What is wrong with the census now.
    pub trouble: Option<String>,
}

/// Why the pages were not made.
#[derive(Debug, Error)]
pub enum PagesError {
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rows of the list could not be read back.
    #[error(transparent)]
    Rows(#[from] DumpError),
    /// The pages could not be written.
    #[error(transparent)]
    Site(#[from] SiteError),
}

/// Makes the pages of the list in `tree`. `today` has the list's counts, unless they are recorded.
/// Blocks.
pub(super) fn write(
    reader: &Reader,
    tree: &Tree,
    occasion: Occasion<'_>,
    about: &About,
    salt: Salt,
    today: Option<DayCounts>,
    fixes: &[Fix],
) -> Result<Written, PagesError> {
    let (folder, now) = (tree.folder(), occasion.now);
    let facts = facts(reader, folder, now, about, salt, today, fixes)?;
    let mut making = Making {
        site: Site::begin(tree, facts)?,
        rows: Standing::of(tree.folder())?,
        occasion,
    };
    reader.each_host_answer(|host_answer| making.take(host_answer))?;
    let Making {
        mut site,
        mut rows,
        occasion,
    } = making;
    while let Some(row) = rows.next_before(None)? {
        pass(&mut site, &row, occasion.deny)?;
    }
    Ok(site.finish()?)
}

fn facts(
    reader: &Reader,
    folder: &Path,
    now: Timestamp,
    about: &About,
    salt: Salt,
    today: Option<DayCounts>,
    fixes: &[Fix],
) -> Result<Facts, StoreError> {
    let made = moment(now);
    let imprint = &about.imprint;
    let counts = reader.counts()?;
    let mut days = reader.days(now)?;
    let new = today.as_ref().map(|today| today.versions.clone());
    if let Some(today) = today {
        days = day::with(days, today);
    }
    let last = days.last().into_iter().flat_map(|day| &day.by_software);
    let most_frequent = last.map(|(software, _)| software.as_str());
    let new = new.unwrap_or_default();
    let of_versions = fixes::Counts {
        reader,
        now,
        today: &new,
    };
    let versions = of_versions.history(fixes, most_frequent)?;
    Ok(Facts {
        made,
        rows_read: dump::standing_rows_read(folder).unwrap_or(made),
        user_agent: protocol::user_agent(env!("CARGO_PKG_VERSION"), &imprint.contact),
        title: imprint.title.clone(),
        operator: imprint.operator.clone(),
        contact: imprint.contact.clone(),
        address: imprint.address.clone(),
        licence: imprint.licence.clone(),
        intake: about.intake,
        push: about.push,
        reading: about.reading,
        salt,
        progress: progress::read(reader, &counts, now)?,
        trouble: about.trouble.clone(),
        known: by_state(counts.by_state),
        history: days.into_iter().filter_map(shown_day).collect(),
        versions,
        published: dump::published_set(folder),
    })
}

fn by_state(counts: Vec<(StateName, u64)>) -> BTreeMap<StateName, u64> {
    counts.into_iter().collect()
}

/// Skips a day that no calendar has.
fn shown_day(counts: DayCounts) -> Option<Day> {
    Some(Day {
        day: day::date(counts.day)?,
        by_state: by_state(counts.by_state),
        by_software: counts.by_software,
        others: counts.others,
        appeared: counts.appeared,
        left: counts.died,
    })
}

struct Making<'a> {
    site: Site<'a>,
    rows: Standing,
    occasion: Occasion<'a>,
}

impl Making<'_> {
    fn take(&mut self, host_answer: HostAnswer<'_>) -> Result<(), PagesError> {
        match host_answer {
            HostAnswer::Known(known) => {
                let host = &known.record.host;
                let row = self.rows_up_to(host.as_str())?;
                let reason = self.reason(host, Subject::Known(&known.record, facts_of(known)));
                let row = row.filter(|_| !reason.is_withdrawal());
                if let Some(row) = &row {
                    self.site.instance(row)?;
                }
                if let Some(why) = Why::of(&reason) {
                    self.site.answer(
                        host,
                        &answer(known, as_published(why, row.as_ref()), &self.occasion),
                    )?;
                }
            }
            // No answer can name it, and no file shows it.
            HostAnswer::Unreadable(name) => {
                self.rows_up_to(name)?;
            }
            HostAnswer::Waiting(host) => {
                if let Some(why) = Why::of(&self.reason(host, Subject::Waiting)) {
                    self.site.answer(host, &waiting(why))?;
                }
            }
        }
        Ok(())
    }

    /// Passes on the rows before this name, which the database no longer knows. Returns the row of
    /// this name.
    fn rows_up_to(&mut self, name: &str) -> Result<Option<ListedRow>, PagesError> {
        while let Some(row) = self.rows.next_before(Some(name))? {
            pass(&mut self.site, &row, self.occasion.deny)?;
        }
        self.rows.next_of(name)
    }

    fn reason<'s>(&self, host: &Host, subject: Subject<'s>) -> Reason<'s> {
        let Occasion {
            now,
            calendar,
            deny,
            ..
        } = self.occasion;
        let denied = match deny.covers_text(host.as_str()) {
            Some(_) => Denied::Yes,
            None => Denied::No,
        };
        why::reason(subject, denied, now, calendar)
    }
}

fn facts_of(known: &KnownHost) -> why::Facts<'_> {
    why::Facts {
        target_is_alive: known.target_is_alive,
        group: known.group.as_ref(),
        place: known.place,
        last: found(known),
    }
}

fn found(known: &KnownHost) -> Option<Found> {
    let last = known.last.as_ref()?;
    Found::parse(&last.verdict, last.reason.as_deref())
}

fn answer(known: &KnownHost, why: Why, occasion: &Occasion<'_>) -> Answer {
    let Occasion { now, calendar, .. } = *occasion;
    if why == Why::Withheld {
        return Answer::WITHHELD;
    }
    let record = &known.record;
    let is_failing = matches!(why, Why::Failing | Why::MovingToNobody);
    let leaves = is_failing.then(|| {
        let failed = record.since.plus(calendar.dying_at_least());
        let stale = record
            .last_alive
            .map(|at| at.plus(calendar.unlisted_after()));
        moment(stale.map_or(failed, |stale| stale.min(failed)))
    });
    Answer {
        place: Place::Known(record.state.name()),
        why,
        // An opt-out is withheld, even after the host has come back: it may be parked or listed
        // again before its next check.
        found: found(known).filter(|found| *found != Found::OptedOut),
        last_checked: record.last_checked.map(moment),
        next_check: record.due.map(moment),
        leaves,
        age: Some(Age::of(
            record.last_alive.map(moment),
            moment(record.first_seen),
            moment(now),
        )),
    }
}

/// The database's reason, adjusted to the published row. A list may be older than the database if
/// the last one was held back or could not be written.
fn as_published(why: Why, row: Option<&ListedRow>) -> Why {
    match (row, why.is_listed()) {
        (Some(_), false) => Why::LeavesNext,
        (None, true) => Why::NextList,
        (Some(_), true) | (None, false) => why,
    }
}

/// A row of a host that the database does not know, such as after a restored backup.
fn pass(site: &mut Site<'_>, row: &ListedRow, deny: &DomainList) -> Result<(), PagesError> {
    if deny.covers_text(&row.host).is_some() {
        return Ok(());
    }
    site.instance(row)?;
    if let Ok(host) = Host::parse(&row.host) {
        let answer = Answer {
            place: Place::Known(match row.state {
                ListedState::Alive => StateName::Alive,
                ListedState::Dying => StateName::Dying,
                ListedState::Moving => StateName::Moving,
            }),
            why: Why::LeavesNext,
            ..Answer::WITHHELD
        };
        site.answer(&host, &answer)?;
    }
    Ok(())
}

fn waiting(why: Why) -> Answer {
    if why == Why::Withheld {
        return Answer::WITHHELD;
    }
    Answer {
        place: Place::Waiting,
        why,
        ..Answer::WITHHELD
    }
}

/// The rows of the published list, without damaged or unordered ones.
struct Standing {
    rows: Option<Peekable<Rows>>,
    last: String,
}

impl Standing {
    fn of(folder: &Path) -> Result<Self, DumpError> {
        Ok(Self {
            rows: dump::standing_rows(folder)?.map(Iterator::peekable),
            last: String::new(),
        })
    }

    /// The next row before this name, or before the end.
    fn next_before(&mut self, name: Option<&str>) -> Result<Option<ListedRow>, PagesError> {
        self.next_if(|host| name.is_none_or(|name| host < name))
    }

    /// The next row, if it has this name.
    fn next_of(&mut self, name: &str) -> Result<Option<ListedRow>, PagesError> {
        self.next_if(|host| host == name)
    }

    fn next_if(
        &mut self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<ListedRow>, PagesError> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        // Ends after the last row.
        while let Some(row) = rows.next_if(|row| match row {
            Ok(row) => row.host <= self.last || is_wanted(&row.host),
            Err(_) => true,
        }) {
            match row {
                Ok(row) if row.host > self.last => {
                    self.last.clone_from(&row.host);
                    return Ok(Some(row));
                }
                Ok(_) | Err(RowError::Damaged { .. }) => {}
                Err(RowError::Unreadable(error)) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}
