//! The census database: the only SQL about the census.
//!
//! One thread writes in batched transactions, and acknowledges each request only after it is on
//! disk (invariant I6). Readers use separate connections and never block the writer. A second
//! writer, a newer schema and another program's file are refused.
//!
//! A failure in this crate is a fault on our side and never counts against a host (invariant I5).

mod db;
mod files;
mod known;
mod open;
mod queries;
mod queue;
mod soundness;
mod statements;
mod tables;
mod upgrade;
mod writer;

pub use census::state::StateName;
pub use db::error::{CopyError, OpenError, StoreError};
pub use db::reader::Reader;
pub use files::backup::{Copied, Restored, backup, backup_into, restore};
pub use files::instances_file::{InstanceRow, InstancesFile, VersionCount};
pub use open::{Location, Store, open, open_read_only};
pub use queries::counts::{Counts, Unchecked};
pub use queries::host::Stored;
pub use queries::host_answers::{HostAnswer, KnownHost};
pub use queries::listed::Listed;
pub use queries::review::{About, LogCursor, LogPage, LoggedDecision, Member, Members, Which};
pub use queue::handle::Writer;
pub use soundness::{Depth, Finding, Remedy, Soundness};
pub use tables::admitted::{Admission, Remembered};
pub use tables::day_versions::{ByDay, MINORS_A_DAY_MAX, SoftwareVersions, VERSIONS_A_DAY_MAX};
pub use tables::days::{DAYS_MAX, DayCounts, SOFTWARE_A_DAY_MAX, day_of};
pub use tables::dumps::DumpRecord;
pub use tables::groups::evidence::NamedBy;
pub use tables::groups::{Decided, HeldCounts, Recorded, StoredGroup};
pub use tables::host_decisions::{HostDecided, HostDecision, Ruling, Undone};
pub use tables::hosts::add::{AddedAs, Candidate};
pub use tables::hosts::commit::Committed;
pub use tables::hosts::opt_out::{OptIn, OptOut, Park};
pub use tables::hosts::proof::SeenProof;
pub use tables::hosts::take::Taken;
pub use tables::sources::Memories;
pub use tables::walks::{LastWalk, WalkTimes};
