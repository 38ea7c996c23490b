//! The storage engine: journal, memtable, base B-tree, snapshots, catalog, recovery.

pub mod base;
