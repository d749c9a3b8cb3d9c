//! The census database: the only SQL.
//!
//! One thread writes, in batched transactions, and acknowledges each request only after it is on disk (invariant I6); readers use connections of
//! their own and never block it. In: hosts, changes. Out: rows. Refused: a second writer, a newer schema, another program's file.
//!
//! A failure in here is a fault of ours and never counts against a host (invariant I5).

mod admitted;
mod asked;
pub mod backup;
pub mod checkpoint;
mod copy;
mod days;
mod dumps;
pub mod error;
mod forgotten;
mod groups;
mod history;
mod hosts;
mod instances_file;
mod known;
mod migrate;
pub mod minoru;
pub mod open;
pub mod reader;
pub mod soundness;
mod sources;
mod statements;
mod upgrade;
pub mod writer;

pub use admitted::{Admission, Remembered};
pub use asked::{Asked, Known};
pub use backup::{Copied, Restored, backup, backup_into, restore};
pub use census::state::StateName;
pub use checkpoint::TakeOver;
pub use days::{DAYS_MAX, DayCounts, SOFTWARE_A_DAY_MAX, day_of};
pub use dumps::DumpRecord;
pub use error::{CopyError, OpenError, StoreError};
pub use groups::{Decided, HeldCounts, StoredGroup, WildcardLook};
pub use hosts::add::{AddedAs, Candidate};
pub use hosts::check::{Committed, Taken};
pub use hosts::word::{OptIn, OptOut, Park};
pub use instances_file::{InstanceRow, InstancesFile, VersionCount};
pub use open::{Location, Opening, Store, open, open_read_only, open_with};
pub use reader::{Counts, Listed, Reader, Stored};
pub use soundness::{Depth, Finding, Remedy, Soundness};
pub use sources::Memories;
pub use writer::Writer;
