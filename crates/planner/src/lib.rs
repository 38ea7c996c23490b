//! Query and catalog snapshot to a checked plan tree and its explain form; pure.
