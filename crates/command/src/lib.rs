//! One file per command: typed arguments, work, reply; sessions and cursors.
