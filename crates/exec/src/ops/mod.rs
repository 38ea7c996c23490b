//! The operators, one file each.

mod collscan;
mod count;
mod eof;
mod filter;
mod id_lookup;
mod limit;
mod project;
mod skip;
pub mod sort;
mod values;

pub use collscan::CollScan;
pub use count::Count;
pub use eof::Eof;
pub use filter::Filter;
pub use id_lookup::IdLookup;
pub use limit::Limit;
pub use project::Project;
pub use skip::Skip;
pub use sort::Sort;
pub use values::Values;
