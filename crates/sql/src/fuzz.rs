//! What the fuzz target `sql` runs: everything of this crate that reads what a client sends, before any table is asked for.

use crate::types::{Type, input};
use crate::{functions, parse, protocol, search, types};

/// Reads `bytes` as a startup, as a message (its tag first), as statements, as a literal and a binary value of each type, and as
/// patterns, and as texts to be searched. Each is read or refused; what was read as a statement is shown as text.
pub fn any(bytes: &[u8]) {
    let _ = protocol::frontend::startup(bytes);
    if let Some((tag, body)) = bytes.split_first() {
        let _ = protocol::frontend::message(*tag, Ok(body));
    }
    for ty in Type::all() {
        let _ = input::binary(&ty, bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for statement in parse::parse(text).unwrap_or_default() {
        let _ = statement.to_string();
    }
    for ty in Type::all() {
        let _ = input::text(&ty, text);
        let _ = input::text(&ty.array(), text);
    }
    let _ = types::regex::compile(text, types::regex::Flags::default());
    let _ = types::jsonpath::path(text);
    functions::read_pattern(text);
    let config = types::regconfig::Config::default();
    let _ = search::words::vector_of(config, text);
    let _ = search::words::query_of_web(config, text);
    let _ = search::headline::Options::parse(text);
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
#[test]
fn the_corpus_is_read_or_refused() {
    for bytes in corpus::corpus("sql") {
        any(&bytes);
        for cut in (0..bytes.len()).step_by(7) {
            any(&bytes[..cut]);
        }
    }
}
