//! One table of counters for each kind of item, so that a key never shares a counter with a domain.

use super::slots::Slots;

/// The kind of item that a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    Key,
    /// Configured names, for `domain` lines.
    Domain,
    /// Registered domains, for the `public` line.
    Public,
    /// Registered domains of the servers that named new names.
    Source,
    /// Registered domains by ICANN's rules whose owners hand out names below them.
    SharedSuffix,
    /// All names, with a single counter.
    Total,
}

impl Table {
    pub const ALL: [Self; 6] = [
        Self::Key,
        Self::Domain,
        Self::Public,
        Self::Source,
        Self::SharedSuffix,
        Self::Total,
    ];

    /// The table's name. For a kind of rule it is the rule's keyword.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Domain => "domain",
            Self::Public => "public",
            Self::Source => "source",
            Self::SharedSuffix => "shared_suffix",
            Self::Total => "total",
        }
    }

    /// The table of this name. `None` if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.as_str() == name)
    }
}

/// The counts of each table.
#[derive(Debug, Default)]
pub(super) struct Tables {
    keys: Slots,
    domains: Slots,
    publics: Slots,
    sources: Slots,
    shared_suffixes: Slots,
    total: Slots,
}

impl Tables {
    pub(super) fn of(&self, table: Table) -> &Slots {
        match table {
            Table::Key => &self.keys,
            Table::Domain => &self.domains,
            Table::Public => &self.publics,
            Table::Source => &self.sources,
            Table::SharedSuffix => &self.shared_suffixes,
            Table::Total => &self.total,
        }
    }

    pub(super) fn of_mut(&mut self, table: Table) -> &mut Slots {
        match table {
            Table::Key => &mut self.keys,
            Table::Domain => &mut self.domains,
            Table::Public => &mut self.publics,
            Table::Source => &mut self.sources,
            Table::SharedSuffix => &mut self.shared_suffixes,
            Table::Total => &mut self.total,
        }
    }

    /// Every count above zero, with its table and id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Table, u64, u32)> {
        Table::ALL.into_iter().flat_map(|table| {
            let slots = self.of(table);
            slots.iter().map(move |(id, count)| (table, id, count))
        })
    }
}
