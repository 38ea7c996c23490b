//! The operators, one file each.

mod collscan;
mod count;
mod covered;
mod dedup;
mod eof;
mod fetch;
mod filter;
mod id_lookup;
mod index_scan;
mod limit;
mod oplog_scan;
mod or;
mod project;
mod scan_bounds;
mod show_record_id;
mod skip;
pub mod sort;
mod sort_merge;
mod values;

pub use collscan::CollScan;
pub use count::Count;
pub use covered::Covered;
pub use eof::Eof;
pub use fetch::Fetch;
pub use filter::Filter;
pub use id_lookup::IdLookup;
pub use index_scan::IndexScan;
pub use limit::Limit;
pub use oplog_scan::OplogScan;
pub use or::Or;
pub use project::Project;
pub use show_record_id::ShowRecordId;
pub use skip::Skip;
pub use sort::Sort;
pub use sort_merge::SortMerge;
pub use values::Values;
