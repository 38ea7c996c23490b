//! The counters that every operator keeps.

/// Counters that every operator keeps for explain and the profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units of work: rows or keys looked at.
    pub works: u64,
    /// Rows passed up.
    pub advanced: u64,
    /// Records read from storage.
    pub docs_examined: u64,
    /// Index keys read.
    pub keys_examined: u64,
    /// Repositionings of an index cursor.
    pub seeks: u64,
    /// True once it answered `Eof`.
    pub is_eof: bool,
}
