//! Text search: how texts become terms, what terms of a document score, and what `$text` asks for.
//!
//! ```text
//! "The Brown foxes!"  ──words──►  The | Brown | foxes  ──term──►  brown | fox        "the" is a stop word
//! {title: "The Brown foxes!"}  ──TextSpec::terms──►  brown → 0.75, fox → 0.75         what an index stores
//! '"brown fox" -red'  ──TextSearch──►  terms brown, fox; phrase "brown fox"; without red
//! ```
//!
//! Reading order: `stems` (stemmers), `language` (stop words), `words` (from a text to its terms), `spec` (which texts of a document
//! count, and what their terms score), `search` (what `$text` asks for, and which documents have it).
//!
//! An index has one of three versions, which differ in what they see as the same letter: see [`Version`].
//! Source: manual, "Text Index Properties", "Text Index Versions", "$text".

mod language;
mod search;
mod spec;
mod stems;
mod unicode;
mod words;

pub use language::Language;
pub use search::{TextQuery, TextSearch, TextTest};
pub use spec::{DEFAULT_LANGUAGE, TextSpec, WHOLE_DOCUMENT};
pub use stems::Stems;
pub use unicode::is_mark;
pub use words::{Version, stored_term};
