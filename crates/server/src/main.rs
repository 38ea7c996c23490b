//! The `nestor` binary.
fn main() {}
