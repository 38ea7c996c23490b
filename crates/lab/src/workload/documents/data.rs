//! The documents: `_id` from 0, and all else made of it.

use crate::rows::Arguments;
use crate::statement::{Kind, Role, Statement, mark, text_mark};
use nestor_model::{Document, Value, doc};

/// The collection.
pub const NAME: &str = "documents";
/// Documents of 100 KB.
pub const LARGE: &str = "documents_large";
/// What is inserted while measured.
pub const NEW: &str = "documents_new";
/// Accounts of transfers.
pub const ACCOUNTS: &str = "accounts";
/// How many large documents there are.
pub const LARGE_DOCUMENTS: u64 = 64;
/// How many accounts.
pub const ACCOUNTS_MAX: u64 = 1_000;
/// Documents of one insertMany: whole teams.
pub const BATCH: usize = 100;
/// Documents with the same `team`.
pub const TEAM: u64 = 10;
/// Different values of `group`.
pub const GROUPS: u64 = 10;
/// Different first words.
pub const WORDS_MAX: u64 = 16;
/// Bytes of `words`.
const WORDS_BYTES: usize = 48;

const WORDS: [&str; WORDS_MAX as usize] = [
    "amber", "basalt", "cedar", "dune", "ember", "fjord", "glacier", "heron", "island", "jasper", "kelp", "lagoon",
    "meadow", "nectar", "orchid", "pebble",
];

/// The words of document `id`, of exactly 48 bytes.
pub fn words(id: u64) -> String {
    let text = format!("{} {} number{id}", word(id), word(id / WORDS_MAX));
    format!("{text:<WORDS_BYTES$}")
}

/// A word that document `id` has.
pub fn word(id: u64) -> &'static str {
    WORDS[(id % WORDS_MAX) as usize]
}

/// Longitude and latitude of document `id`, whole degrees.
pub fn place(id: u64) -> (i64, i64) {
    ((id % 360) as i64 - 180, (id / 360 % 170) as i64 - 85)
}

/// Inserts `count` documents into `collection`.
pub fn insert(collection: &str, count: usize) -> Statement {
    use Kind::{Long, Text};
    let kinds = [Long, Long, Long, Long, Text(WORDS_BYTES), Long, Long];
    let width = kinds.len();
    let item = |k: i64| Value::from(doc! { "k": k, "n": 0i64 });
    let document = |row: usize| {
        let at = row * width;
        Value::from(doc! {
            "_id": mark(at),
            "number": mark(at + 1),
            "team": mark(at + 2),
            "group": mark(at + 3),
            "words": text_mark(at + 4, WORDS_BYTES),
            "visits": 0i64,
            "items": vec![item(0), item(1), item(2)],
            "place": doc! { "type": "Point", "coordinates": vec![mark(at + 5), mark(at + 6)] },
            "address": doc! { "street": "12 St James's Square", "city": "London", "zip": "SW1Y 4JH" },
        })
    };
    let mongo = doc! { "insert": collection, "documents": (0..count).map(document).collect::<Vec<_>>() };
    Statement::new("an insert", Role::Writes, kinds.repeat(count), mongo, String::new())
}

/// Pushes the parameters of document `id`.
pub fn push(id: u64, arguments: &mut Arguments) {
    let (longitude, latitude) = place(id);
    arguments
        .int(id as i64)
        .int(id as i64)
        .int((id / TEAM) as i64)
        .int((id % GROUPS) as i64);
    arguments.text(|out| out.extend_from_slice(words(id).as_bytes()));
    arguments.int(longitude).int(latitude);
}

/// The command that makes the indexes that tests by keys use.
pub fn indexes() -> Document {
    create(&[
        ("team", doc! { "team": 1 }),
        ("group", doc! { "group": 1, "number": 1 }),
    ])
}

/// The command that makes the index of one test alone, of a kind that not every server has.
pub fn index_of(test: &str) -> Option<Document> {
    match test {
        "text" => Some(create(&[("words", doc! { "words": "text" })])),
        "near" => Some(create(&[("place", doc! { "place": "2dsphere" })])),
        _ => None,
    }
}

fn create(indexes: &[(&str, Document)]) -> Document {
    let index = |(name, key): &(&str, Document)| Value::from(doc! { "key": key.clone(), "name": *name });
    doc! { "createIndexes": NAME, "indexes": indexes.iter().map(index).collect::<Vec<_>>() }
}
