//! The messages of each case, encoded once; what changes from one operation to the next are 8-byte `_id`s.

use super::{COLLECTION, DATABASE, LARGE_COLLECTION};
use crate::client::{body_of, command_message, refusal};
use clap::ValueEnum;
use nestor_model::{RawDocBuf, RawWriter, ValueRef};

/// Size of each document, in bytes.
pub const DOCUMENT_BYTES: usize = 344;
/// Size of each document of the collection of large ones, in bytes.
const LARGE_BYTES: usize = 100 * 1024;
/// How many large ones there are.
pub const LARGE_DOCUMENTS: u64 = 64;
/// Documents of one insertMany.
pub const BATCH: usize = 1_000;
/// Documents a range returns.
const RANGE: u64 = 100;

/// Stand in the encoded messages where the `_id`s go.
const MARKS: [i64; 2] = [0x7A5A_3C1E_0F87_A5C3, 0x7A5A_3C1E_0F87_A5C4];

/// One kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// The ping command.
    Ping,
    /// find of one document by _id.
    Find,
    /// find of 100 documents by a range of _id.
    Range,
    /// update of one document by _id with $inc, w:1.
    Inc,
    /// update of one document of 100 KiB by _id with $inc, w:1.
    IncLarge,
    /// insert of one document, w:1.
    Insert,
    /// insert of 1,000 documents, w:1.
    InsertMany,
}

impl Case {
    /// In the order they run.
    pub const ALL: [Case; 7] = [
        Case::InsertMany,
        Case::Ping,
        Case::Find,
        Case::Range,
        Case::Inc,
        Case::IncLarge,
        Case::Insert,
    ];

    /// As the table prints it.
    pub fn title(self) -> &'static str {
        match self {
            Case::Ping => "ping",
            Case::Find => "find by _id",
            Case::Range => "range of 100 by _id",
            Case::Inc => "$inc by _id",
            Case::IncLarge => "$inc by _id, 100 KiB",
            Case::Insert => "insert one",
            Case::InsertMany => "insertMany 1000, per document",
        }
    }

    /// What one message counts as.
    pub fn operations_per_message(self) -> u64 {
        if self == Case::InsertMany { BATCH as u64 } else { 1 }
    }
}

/// Which `_id`s the next operations use.
#[derive(Clone, Debug)]
pub struct Ids {
    /// Documents 0 to here exist; an insert takes the next one.
    next: u64,
    end: Option<u64>,
    random: u64,
}

impl Ids {
    /// For `case` on a collection with documents 0 to `documents`.
    pub fn new(case: Case, documents: u64) -> Self {
        Self {
            next: documents,
            end: None,
            random: 0x9E37_79B9_7F4A_7C15 ^ case as u64,
        }
    }

    /// Inserts from this id on.
    pub fn insert_from(next: u64) -> Self {
        Self::new(Case::Insert, next)
    }

    /// Inserts end here.
    pub fn until(mut self, end: u64) -> Self {
        self.end = Some(end);
        self
    }

    /// True when every document up to the end was handed out.
    pub fn exhausted(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// The id the next insert takes.
    pub fn next_insert(&self) -> u64 {
        self.next
    }

    /// An id in `0..below`, xorshift.
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below.max(1)
    }
}

/// A message ready to be sent again and again.
#[derive(Clone)]
pub struct Template {
    case: Case,
    bytes: Vec<u8>,
    /// Where the ids stand, in ascending order.
    places: Vec<usize>,
}

impl Template {
    /// The message of `case`.
    pub fn new(case: Case) -> Self {
        let mut command = RawWriter::new();
        match case {
            Case::Ping => command.append("ping", 1),
            Case::Find => {
                command.append("find", COLLECTION);
                command.begin_document("filter");
                command.append("_id", MARKS[0]);
                command.end();
                command.append("limit", 1);
                command.append("singleBatch", true);
            }
            Case::Range => {
                command.append("find", COLLECTION);
                command.begin_document("filter");
                command.begin_document("_id");
                command.append("$gte", MARKS[0]);
                command.append("$lt", MARKS[1]);
                command.end();
                command.end();
            }
            Case::Inc => command.append("update", COLLECTION),
            Case::IncLarge => command.append("update", LARGE_COLLECTION),
            Case::Insert | Case::InsertMany => command.append("insert", COLLECTION),
        }
        if !matches!(case, Case::Ping | Case::Find | Case::Range) {
            // Without it a write waits for the journal, as majority does.
            command.begin_document("writeConcern");
            command.append("w", 1);
            command.end();
        }
        command.append("$db", DATABASE);
        let section = match case {
            Case::Inc | Case::IncLarge => Some(("updates", increment().as_bytes().to_vec())),
            Case::Insert => Some(("documents", document().as_bytes().to_vec())),
            Case::InsertMany => Some(("documents", document().as_bytes().repeat(BATCH))),
            _ => None,
        };
        let section = section.as_ref().map(|(name, bytes)| (*name, bytes.as_slice()));
        let bytes = command_message(command.into_doc().as_raw(), section);
        let places = places_of_marks(&bytes);
        Self { case, bytes, places }
    }

    /// The message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the ids of the next operation; returns the id the next insert takes.
    pub fn fill(&mut self, ids: &mut Ids) -> u64 {
        match self.case {
            Case::Ping => {}
            Case::Find | Case::Inc => {
                let id = ids.random(ids.next);
                self.set(0, id);
            }
            Case::IncLarge => {
                let id = ids.random(LARGE_DOCUMENTS);
                self.set(0, id);
            }
            Case::Range => {
                let id = ids.random(ids.next.saturating_sub(RANGE));
                self.set(0, id);
                self.set(1, id + RANGE);
            }
            Case::Insert | Case::InsertMany => {
                for place in 0..self.places.len() {
                    self.set(place, ids.next);
                    ids.next += 1;
                }
            }
        }
        ids.next
    }

    fn set(&mut self, place: usize, id: u64) {
        let at = self.places[place];
        self.bytes[at..at + 8].copy_from_slice(&id.to_le_bytes());
    }
}

fn places_of_marks(bytes: &[u8]) -> Vec<usize> {
    let marks = MARKS.map(i64::to_le_bytes);
    let is_mark = |window: &[u8]| marks.iter().any(|mark| mark == window);
    bytes
        .windows(8)
        .enumerate()
        .filter(|(_, window)| is_mark(window))
        .map(|(at, _)| at)
        .collect()
}

fn increment() -> RawDocBuf {
    let mut statement = RawWriter::new();
    statement.begin_document("q");
    statement.append("_id", MARKS[0]);
    statement.end();
    statement.begin_document("u");
    statement.begin_document("$inc");
    statement.append("visits", 1);
    statement.end();
    statement.end();
    statement.into_doc()
}

/// A document of exactly [`DOCUMENT_BYTES`].
fn document() -> RawDocBuf {
    document_of(MARKS[0], DOCUMENT_BYTES)
}

/// The large document of that `_id`.
pub fn large_document(id: u64) -> RawDocBuf {
    document_of(id as i64, LARGE_BYTES)
}

/// A document of exactly `bytes`.
fn document_of(id: i64, bytes: usize) -> RawDocBuf {
    let build = |pad: usize| {
        let mut writer = RawWriter::with_capacity(bytes);
        writer.append("_id", id);
        writer.append("name", "Ada Lovelace");
        writer.append("email", "ada@example.org");
        writer.append("visits", 0);
        writer.append("active", true);
        writer.append("balance", 1815.1210);
        writer.append("created", ValueRef::DateTime(1_700_000_000_000));
        writer.begin_document("address");
        writer.append("street", "12 St James's Square");
        writer.append("city", "London");
        writer.append("zip", "SW1Y 4JH");
        writer.end();
        writer.begin_array("tags");
        for (i, tag) in ["analytical", "engine", "notes"].into_iter().enumerate() {
            writer.append_index(i, tag);
        }
        writer.end();
        writer.append("pad", "x".repeat(pad).as_str());
        writer.into_doc()
    };
    let pad = bytes - build(0).as_bytes().len();
    build(pad)
}

/// An error unless the reply says that all went well.
pub fn verify(message: &[u8]) -> Result<(), String> {
    let reply = body_of(message)?;
    if let Some(error) = refusal(reply) {
        return Err(error.to_string());
    }
    match reply.get("writeErrors").and_then(ValueRef::as_array) {
        Some(errors) if !errors.is_empty() => Err(format!("write errors: {:?}", errors.get(0))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::RawDoc;

    #[test]
    fn documents_have_their_size() {
        assert_eq!(document().as_bytes().len(), DOCUMENT_BYTES);
    }

    #[test]
    fn every_message_has_the_places_it_fills() {
        for (case, places) in [
            (Case::Ping, 0),
            (Case::Find, 1),
            (Case::Range, 2),
            (Case::Inc, 1),
            (Case::Insert, 1),
            (Case::InsertMany, BATCH),
        ] {
            let mut template = Template::new(case);
            assert_eq!(template.places.len(), places, "{case:?}");
            template.fill(&mut Ids::new(case, 5_000));
            assert!(
                places_of_marks(&template.bytes).is_empty(),
                "{case:?}: every mark was replaced"
            );
            assert!(body_of(&template.bytes).is_ok());
        }
    }

    #[test]
    fn inserts_count_up_and_end() {
        let mut ids = Ids::insert_from(500).until(2_500);
        let mut template = Template::new(Case::InsertMany);
        assert_eq!(template.fill(&mut ids), 1_500);
        assert!(!ids.exhausted());
        let first = RawDoc::validate_prefix(&template.bytes[template.places[0] - 9..]).unwrap();
        assert!(matches!(first.get("_id"), Some(ValueRef::Int64(500))));
        template.fill(&mut ids);
        assert!(ids.exhausted());
    }

    #[test]
    fn ranges_stay_inside_the_collection() {
        let mut ids = Ids::new(Case::Range, 150);
        for _ in 0..1_000 {
            assert!(ids.random(50) < 50);
        }
    }
}
