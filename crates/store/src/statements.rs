//! Every statement about the census's tables, with its expected query plan.
//!
//! The list collects the constants of the tables' modules. The cache of prepared statements holds
//! all, and a test compares their plans. The test fails for a statement that is not in the
//! list, one that reads a whole table without a stated reason, and a changed plan.
//!
//! Statistics are never gathered (`ANALYZE`), so SQLite plans from the schema alone, and the same
//! for ten rows as for ten million: the daemon uses the plans that the test sees.

use crate::db::connection::STATEMENTS_KEPT;
use crate::known;
use crate::queries::{counts, due, each, host, host_answers, listed, review};
use crate::soundness;
use crate::tables::hosts::{add, commit, opt_out, proof, recovery, take};
use crate::tables::{
    admitted, day_versions, days, dumps, groups, history, host_decisions, one_way, row, sources,
    walks,
};

/// `path => [plan]`, or `path => [plan] because "reason"` for a statement that reads a whole table
/// or sorts.
macro_rules! statements {
    ($($path:path => [$($line:literal),* $(,)?] $(because $reason:literal)?,)*) => {
        pub(crate) const ALL: &[&str] = &[$($path),*];

        #[cfg(test)]
        const EXPECTED: &[tests::Expected] = &[$(tests::Expected {
            name: stringify!($path),
            sql: $path,
            plan: &[$($line),*],
            reasons: &[$($reason)?],
        }),*];
    };
}

const _: () = assert!(ALL.len() + 8 <= STATEMENTS_KEPT);

statements! {
    row::IS_KNOWN => ["SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    admitted::PUT_COUNTERS => ["SCAN 50-ROW VALUES CLAUSE"] because "the rows that are written",
    admitted::DELETE_COUNTER => ["SEARCH admission_counters USING PRIMARY KEY (window_start_s=? AND counts=? AND id=?)"],
    admitted::DELETE_OLD => [
        "SEARCH admission_counters USING PRIMARY KEY (window_start_s=? AND counts=? AND id=?)",
        "SEARCH admission_counters USING PRIMARY KEY (window_start_s<?)",
    ],
    admitted::PUT_WINDOW => ["SEARCH admission_state USING INTEGER PRIMARY KEY (rowid=?)"],
    admitted::PUT_WAITING => [],
    admitted::DELETE_WAITING => ["SEARCH waiting USING PRIMARY KEY (name=?)"],
    admitted::STATE => ["SEARCH admission_state USING INTEGER PRIMARY KEY (rowid=?)"],
    admitted::GROW_OLDER => ["SEARCH admission_state USING INTEGER PRIMARY KEY (rowid=?)", "SCAN dumps"] because "the last lists, once a minute of a first day",
    admitted::MOVE_UP => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    admitted::COUNTERS => ["SEARCH admission_counters USING PRIMARY KEY (window_start_s=?)"],
    admitted::WAITING => ["SCAN waiting"] because "at a start, all that the gate remembers",
    admitted::WAITER => ["SEARCH waiting USING PRIMARY KEY (name=?)"],
    admitted::COUNT_WAITING => ["SCAN waiting"] because "those who wait are bounded: admission::waiting",
    host_answers::WAITING => ["SCAN waiting", "SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)"]
        because "once a dump, for the answers of all names",
    days::PUT => [],
    days::CLEAR_STATES => ["SEARCH day_states USING PRIMARY KEY (day=?)"],
    days::CLEAR_SOFTWARE => ["SEARCH day_software USING PRIMARY KEY (day=?)"],
    days::PUT_STATE => [],
    days::PUT_SOFTWARE => [],
    days::PRUNE => [
        "SEARCH days USING INTEGER PRIMARY KEY (rowid=?)",
        "SCAN days",
        "SEARCH day_minors USING PRIMARY KEY (day=?)",
        "SEARCH day_versions USING PRIMARY KEY (day=?)",
        "SEARCH day_software USING PRIMARY KEY (day=?)",
        "SEARCH day_states USING PRIMARY KEY (day=?)",
    ] because "a dump's, over DAYS_MAX rows",
    days::DAYS => ["SEARCH days USING INTEGER PRIMARY KEY (rowid<?)"],
    days::STATES => ["SEARCH day_states USING PRIMARY KEY (day=?)"],
    days::SOFTWARE => ["SEARCH day_software USING PRIMARY KEY (day=?)"],
    day_versions::CLEAR => ["SEARCH day_versions USING PRIMARY KEY (day=?)"],
    day_versions::CLEAR_MINORS => ["SEARCH day_minors USING PRIMARY KEY (day=?)"],
    day_versions::PUT => [],
    day_versions::PUT_MINOR => [],
    day_versions::PRUNE => ["SEARCH day_versions USING PRIMARY KEY (day=?)", "SCAN days"]
        because "a dump's, over DAYS_MAX rows",
    day_versions::VERSIONS => [
        "SEARCH days USING INTEGER PRIMARY KEY (rowid<?)",
        "SEARCH day_versions USING PRIMARY KEY (day=? AND software=?)",
    ],
    day_versions::MINORS => [
        "SEARCH days USING INTEGER PRIMARY KEY (rowid<?)",
        "SEARCH day_minors USING PRIMARY KEY (day=? AND software=?)",
    ],
    dumps::RECORD => [],
    dumps::PRUNE => ["SEARCH dumps USING INTEGER PRIMARY KEY (rowid<?)"],
    dumps::LAST => ["SCAN dumps"] because "from the end, and the first row is the answer",
    dumps::LAST_FULL => ["SCAN dumps"] because "from the end, over DUMPS_MAX rows",
    dumps::FIRST => ["SCAN dumps"] because "over DUMPS_MAX rows",
    known::forgotten::KEY => ["SEARCH forgotten_key USING INTEGER PRIMARY KEY (rowid=?)"],
    known::forgotten::IS_FORGOTTEN => ["SEARCH forgotten USING INTEGER PRIMARY KEY (rowid=?)"],
    known::forgotten::FORGET => [],
    known::forgotten::COUNT_SPAN => ["SEARCH forgotten USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
    known::forgotten::DROP_ONE => [
        "SEARCH forgotten USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH forgotten USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    ],
    known::forgotten::REMEMBER => ["SEARCH forgotten USING INTEGER PRIMARY KEY (rowid=?)"],
    known::forgotten::DELETE => [
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH one_way USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH peers_lists USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH history USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING INDEX namings_source (source=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=?)",
        "SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosters USING PRIMARY KEY (domain=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
        "SEARCH hosts USING INDEX hosts_group (group_id=?)",
    ],
    groups::UNGROUPED => ["SEARCH hosts USING INDEX hosts_ungrouped (id>?)"],
    groups::AGAIN => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid>?)", "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)"],
    groups::MAKE => [],
    groups::JOIN => [
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING INDEX namings_source (source=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=?)",
        "SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosters USING PRIMARY KEY (domain=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
        "SEARCH hosts USING INDEX hosts_group (group_id=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
    ],
    groups::DROP_HOSTERS => [],
    groups::PUT_HOSTER => [],
    groups::evidence::HELD => ["SEARCH groups USING INDEX groups_over (decision=?)"],
    groups::evidence::SOURCE => [
        "SEARCH groups USING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH hosts EXISTS USING INDEX hosts_group (group_id=? AND held_back=?)",
    ],
    groups::evidence::NOTE => [
        "SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    groups::evidence::DROP_FORMER => [
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts EXISTS USING INDEX hosts_group (group_id=? AND held_back=?)",
    ],
    groups::evidence::COUNT => [
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts EXISTS USING INDEX hosts_group (group_id=? AND held_back=?)",
    ],
    groups::evidence::NAMED_BY => [
        "USE TEMP B-TREE FOR count(DISTINCT)",
        "SEARCH member USING COVERING INDEX hosts_group (group_id=?)",
        "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts EXISTS USING INDEX hosts_group (group_id=? AND held_back=?)",
    ] because "a person asks, and one group alone",
    groups::evidence::PLACES => ["SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)", "SCAN (subquery-1)"]
        because "counts no further than the given limit",
    groups::evidence::FREE => [
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
    ],
    groups::PUT_THRESHOLD => ["SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)"],
    groups::COMPARE => [
        "SCAN groups",
        "SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosters USING PRIMARY KEY (domain=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
        "SEARCH hosts USING INDEX hosts_group (group_id=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
    ] because "at a start, and groups alone",
    groups::OF_HOST => ["SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)"],
    groups::BY_DOMAIN => [
        "SEARCH groups USING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
    ],
    groups::BY_ID => [
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
    ],
    groups::LARGEST => [
        "SCAN groups",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
        "USE TEMP B-TREE FOR ORDER BY",
    ] because "a person asks",
    groups::OLDER => ["SEARCH hosts USING INDEX hosts_group (group_id=? AND held_back=? AND rowid<?)"],
    groups::COUNT => ["SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)"],
    groups::PUT_OFF => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    groups::DECISIONS => ["SEARCH group_decisions USING INDEX group_decisions_domain (domain=?)"],
    groups::COUNT_HELD => ["SEARCH groups USING COVERING INDEX groups_over (decision=?)"],
    groups::COUNT_HELD_HOSTS => [
        "SEARCH groups USING COVERING INDEX groups_over (decision=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
    ],
    groups::COUNT_DENIED => ["SCAN groups"] because "a person asks, and metrics now and then; groups alone",
    groups::decide::DECIDE => ["SEARCH groups USING INDEX sqlite_autoindex_groups_1 (domain=?)"],
    groups::decide::RECORD => ["SEARCH group_decisions USING INTEGER PRIMARY KEY (rowid>?)"],
    groups::decide::FREE => [
        "SEARCH hosts USING INDEX hosts_group (group_id=? AND held_back=?)",
        "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)",
    ],
    groups::decide::FORGET_FREED => [
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=?)",
        "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)",
    ],
    groups::decide::WELCOME => [
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=?)",
        "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH groups USING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
    ],
    groups::decide::HOLD_BACK => [
        "SEARCH hosts USING INDEX hosts_group (group_id=?)",
        "SEARCH groups USING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
    ],
    groups::DROP_EMPTY => [
        "SEARCH groups USING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH namings USING INDEX namings_source (source=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=?)",
    ],
    groups::decide::BY_ID => ["SEARCH group_decisions USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH newer USING COVERING INDEX group_decisions_domain (domain=? AND id>?)"],
    groups::decide::BEFORE => ["SEARCH group_decisions USING INDEX group_decisions_domain (domain=? AND id<?)"],
    opt_out::ALSO => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    opt_out::SET_ALSO => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    host_decisions::RECORD => ["SEARCH host_decisions USING INTEGER PRIMARY KEY (rowid>?)"],
    host_decisions::BY_ID => ["SEARCH host_decisions USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH newer USING COVERING INDEX host_decisions_host (host=? AND id>?)"],
    host_decisions::REASON_BEFORE => ["SEARCH host_decisions USING INDEX host_decisions_host (host=? AND id<?)"],
    review::HELD => ["SEARCH groups USING INDEX groups_over (decision=?)", "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)", "USE TEMP B-TREE FOR ORDER BY"] because "a person asks, and held groups alone",
    review::DECIDED => ["SEARCH groups USING INDEX groups_decided (decided_at>?)", "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)"],
    review::MEMBERS => ["SEARCH hosts USING INDEX hosts_group (group_id=?)", "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)", "USE TEMP B-TREE FOR ORDER BY"] because "a person asks, and one group alone",
    review::STATES => ["SEARCH hosts USING INDEX hosts_group (group_id=?)", "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)", "USE TEMP B-TREE FOR GROUP BY", "USE TEMP B-TREE FOR ORDER BY"] because "a person asks, and one group alone",
    review::SOFTWARE => ["SEARCH hosts USING INDEX hosts_group (group_id=?)", "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)", "USE TEMP B-TREE FOR GROUP BY", "USE TEMP B-TREE FOR ORDER BY"] because "a person asks, and one group alone",
    review::CAME => ["SEARCH hosts USING INDEX hosts_group (group_id=?)", "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)", "USE TEMP B-TREE FOR GROUP BY"] because "a person asks, and one group alone",
    review::SHARE => ["SCAN hosts", "SCAN (subquery-2)", "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)"] because "the newest names, no further than the given limit",
    review::WAITING => ["SEARCH waiting USING PRIMARY KEY (name>?)"],
    review::GROUP_LOG => ["SEARCH log USING INTEGER PRIMARY KEY (rowid<?)", "SEARCH newer USING COVERING INDEX group_decisions_domain (domain=? AND id>?)"],
    review::HOST_LOG => ["SEARCH log USING INTEGER PRIMARY KEY (rowid<?)", "SEARCH newer USING COVERING INDEX host_decisions_host (host=? AND id>?)"],
    history::APPEND => ["SEARCH history USING PRIMARY KEY (host_id=?)"],
    history::PRUNE => ["SEARCH history USING PRIMARY KEY (host_id=? AND seq<?)", "SEARCH history USING PRIMARY KEY (host_id=?)"],
    history::NEWEST_FIRST => ["SEARCH history USING PRIMARY KEY (host_id=?)"],
    add::INSERT => [
        "SCAN 50-ROW VALUES CLAUSE",
        "SEARCH forgotten USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH groups USING COVERING INDEX sqlite_autoindex_groups_1 (domain=?)",
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH one_way USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH peers_lists USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH history USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosters USING PRIMARY KEY (domain=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
        "SEARCH hosts USING INDEX hosts_group (group_id=?)",
    ] because "the rows that are written",
    add::NOTE => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    take::TAKE_DUE => ["SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>? AND due<?)"],
    take::COUNT_WAITING => ["SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>? AND due<?)", "SCAN (subquery-1)"]
        because "counts no further than the given limit",
    take::CREDIT => ["SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)"],
    take::PUT_CREDIT => ["SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)"],
    take::MARK => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    commit::CLEAR => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    commit::RELEASE => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    commit::COUNT_FAULT => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    recovery::IN_FLIGHT => ["SCAN hosts USING INDEX hosts_in_flight"] because "at a start; the index holds those in flight alone",
    recovery::INTERRUPTED => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    recovery::CLAMP => [
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>?)",
    ],
    recovery::CLAMP_IN_FLIGHT => ["SCAN hosts USING INDEX hosts_in_flight"]
        because "after the clock has jumped; the index holds those in flight alone",
    recovery::NAMES => ["SCAN hosts"] because "at a start, and `fedicensus db check`: all names against the rules of this version",
    recovery::PARK => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    opt_out::PARKED => ["SEARCH hosts USING INDEX hosts_state (state=? AND hidden=? AND rowid>?)"],
    opt_out::UNPARK => [
        "SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH history USING PRIMARY KEY (host_id=?)",
    ],
    proof::FIND => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    proof::PUT => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    proof::ASK_AGAIN => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    row::FIND => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    row::INSERT => [
        "SEARCH freed USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH one_way USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH namings USING PRIMARY KEY (host_id=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH peers_lists USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH history USING PRIMARY KEY (host_id=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosters USING PRIMARY KEY (domain=?)",
        "SEARCH hosts USING COVERING INDEX hosts_group (group_id=? AND held_back=?)",
        "SEARCH hosts USING INDEX hosts_group (group_id=?)",
    ],
    row::UPDATE => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    row::STILL_ALIVE => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    row::STILL => ["SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"],
    known::NAMES_AFTER => ["SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name>?)"],
    known::FORGOTTEN_AFTER => ["SEARCH forgotten USING INTEGER PRIMARY KEY (rowid>?)"],
    host::TARGET_IS_ALIVE => ["SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    counts::COUNT_BY_STATE => ["SCAN hosts USING COVERING INDEX hosts_state"]
        because "a person asks, and metrics now and then; one small index from end to end",
    counts::COUNT_UNCHECKED => ["SEARCH hosts USING INDEX hosts_state (state=?)", "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"],
    counts::COUNT_IN_FLIGHT => ["SCAN hosts USING COVERING INDEX hosts_in_flight"] because "the index holds those in flight alone",
    counts::COUNT_OPTED_OUT => ["SEARCH hosts USING INDEX hosts_state (state=?)", "USE TEMP B-TREE FOR GROUP BY"]
        because "metrics now and then; who opted out is few, and the kinds are three",
    due::COUNT_DUE => ["SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>? AND due<?)"],
    due::COUNT_DUE_BETWEEN => ["SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>? AND due<?)", "SCAN (subquery-1)"]
        because "counts no further than the given limit",
    due::NEXT_DUE => ["SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>?)"],
    listed::LISTED => [
        "SCAN host USING COVERING INDEX hosts_listable",
        "SEARCH target USING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
    ] because "once a dump, all who are listed, from one index in its order",
    listed::IS_WITHDRAWN => [
        "SEARCH host USING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    each::EACH => ["SCAN hosts USING INDEX sqlite_autoindex_hosts_1"] because "once a dump, every name",
    soundness::NEVER_DUE => ["SCAN hosts"] because "`fedicensus db check`",
    soundness::ALIVE_NEVER => ["SEARCH hosts USING INDEX hosts_state (state=?)"],
    soundness::GROUP_SIZES => ["SCAN groups", "SEARCH hosts USING COVERING INDEX hosts_group (group_id=?)"]
        because "`fedicensus db check`",
    soundness::GROUPS_OVER => ["SCAN groups", "SEARCH grouping USING INTEGER PRIMARY KEY (rowid=?)"] because "`fedicensus db check`",
    soundness::LONG_HISTORY => ["SCAN history", "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)"] because "`fedicensus db check`",
    soundness::SINGLE_ROWS => ["SCAN forgotten_key", "SCAN admission_state", "SCAN grouping"] because "`fedicensus db check`; one row each",
    one_way::PUT => ["SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    one_way::CLEAR => [
        "SEARCH one_way USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)",
    ],
    one_way::FIND => [
        "SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH one_way USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    one_way::FORGET => ["SCAN one_way"] because "once a start, without a second way out",
    one_way::COUNT => ["SCAN one_way"] because "metrics now and then; few hosts answer by one way only",
    sources::PUT => [],
    sources::ALL => ["SCAN sources"] because "as many rows as the operator has lists",
    sources::FORGET => ["SEARCH sources USING INDEX sqlite_autoindex_sources_1 (name=?)"],
    walks::PUT_PEERS => ["SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    walks::PEERS => [
        "SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH peers_lists USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    walks::COUNT_PEERS => ["SCAN peers_lists", "USE TEMP B-TREE FOR GROUP BY"]
        because "a person asks, and metrics now and then; five kinds",
    walks::PUT => ["SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)"],
    walks::FIND => [
        "SEARCH hosts USING COVERING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    walks::COUNT => ["SCAN walks", "USE TEMP B-TREE FOR GROUP BY"]
        because "a person asks, and metrics now and then; eight kinds, and some hundred walks a week",
    walks::LAST_ID => ["SEARCH hosts"],
    walks::SILENT_FROM => [
        "SEARCH peers_lists USING INDEX peers_lists_silent (host_id>?)",
        "SEARCH hosts USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    walks::ANY_FROM => [
        "SEARCH hosts USING INDEX hosts_state (state=? AND hidden=? AND rowid>?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    walks::MAY_BE_WALKED => [
        "SEARCH hosts USING INDEX sqlite_autoindex_hosts_1 (name=?)",
        "SEARCH groups USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH walks USING INTEGER PRIMARY KEY (rowid=?)",
    ],
    walks::IS_LATE => ["SEARCH hosts USING INDEX hosts_due_in_class (class=? AND due>? AND due<?)"],
}

#[cfg(test)]
mod tests;
