//! Reports of results: [`table`] has the figures of all of them side by side, [`text`] prints them, [`page`] makes one
//! HTML page that needs nothing else.

pub mod chart;
pub mod flame;
pub mod page;
pub mod table;
mod tables;
pub mod text;
