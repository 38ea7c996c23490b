//! The messages of each case, encoded once; what changes from one operation to the next are 8-byte numbers.

use super::{COLLECTION, DATABASE, LARGE_COLLECTION};
use crate::client::{body_of, command_message, refusal};
use clap::ValueEnum;
use nestor_model::{Document, RawDocBuf, RawWriter, Value, ValueRef, doc};

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
/// Documents that have the same `team`.
const TEAM: u64 = 10;
/// Different values of `group`.
const GROUPS: u64 = 10;
/// Documents that an aggregation reads at most.
const AGGREGATED: u64 = 1_000_000;
/// Outer documents of a join at most.
const JOINED: u64 = 100_000;
/// Tags of each document.
const TAGS: [&str; 3] = ["analytical", "engine", "notes"];

/// What stands at a place of a message, as a number made of the operation's `_id`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    /// The `_id`, the first field of each document.
    Id,
    /// The document's `number`: the `_id` again.
    Number,
    /// Where a range that begins at the `_id` ends.
    End,
    /// The document's `team`.
    Team,
    /// The document's `group`.
    Group,
    /// The document's `shuffled`: in an order that looks random, each number once.
    Shuffled,
}

impl Slot {
    const ALL: [Slot; 6] = [
        Slot::Id,
        Slot::Number,
        Slot::End,
        Slot::Team,
        Slot::Group,
        Slot::Shuffled,
    ];

    /// Stands in the encoded message where the number goes.
    fn mark(self) -> i64 {
        0x7A5A_3C1E_0F87_A5C0 + self as i64
    }

    fn of(self, id: u64) -> u64 {
        match self {
            Slot::Id | Slot::Number => id,
            Slot::End => id + RANGE,
            Slot::Team => id / TEAM,
            Slot::Group => id % GROUPS,
            Slot::Shuffled => id.wrapping_mul(2_654_435_761) % (1 << 32),
        }
    }
}

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
    /// find of 10 documents by equality on an indexed field.
    Equality,
    /// find of 100 values by a range of an indexed field that the index covers.
    Covered,
    /// The first document of each of 10 groups, by $sort and $group on an indexed field.
    LooseScan,
    /// $match and $group with $sum, over the whole collection.
    Group,
    /// $sort of the whole collection by one field.
    Sort,
    /// $unwind of arrays of 3.
    Unwind,
    /// $lookup of one document by an indexed field.
    Lookup,
    /// $lookup of one document by an indexed field, and $unwind.
    LookupUnwind,
    /// insert of one document, w:1.
    Insert,
    /// insert of 1,000 documents, w:1.
    InsertMany,
}

impl Case {
    /// In the order they run.
    pub const ALL: [Case; 15] = [
        Case::InsertMany,
        Case::Ping,
        Case::Find,
        Case::Range,
        Case::Inc,
        Case::IncLarge,
        Case::Equality,
        Case::Covered,
        Case::LooseScan,
        Case::Group,
        Case::Sort,
        Case::Unwind,
        Case::Lookup,
        Case::LookupUnwind,
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
            Case::Equality => "find of 10 by an index",
            Case::Covered => "covered range of 100",
            Case::LooseScan => "first of 10 groups by an index",
            Case::Group => "$match, $group, per document",
            Case::Sort => "$sort, per document",
            Case::Unwind => "$unwind, per element",
            Case::Lookup => "$lookup, per document",
            Case::LookupUnwind => "$lookup, $unwind, per document",
            Case::Insert => "insert one",
            Case::InsertMany => "insertMany 1000, per document",
        }
    }

    /// The field whose index the case needs.
    pub fn index(self) -> Option<&'static str> {
        match self {
            Case::Equality => Some("team"),
            Case::Covered | Case::Lookup | Case::LookupUnwind => Some("number"),
            Case::LooseScan => Some("group"),
            _ => None,
        }
    }

    /// The command, with marks for its numbers and without what an insert or update brings in a section.
    pub fn command(self) -> Document {
        let range = |from: Slot| doc! { "$gte": from.mark(), "$lt": Slot::End.mark() };
        match self {
            Case::Ping => doc! { "ping": 1 },
            Case::Find => {
                doc! { "find": COLLECTION, "filter": doc! { "_id": Slot::Id.mark() }, "limit": 1, "singleBatch": true }
            }
            Case::Range => doc! { "find": COLLECTION, "filter": doc! { "_id": range(Slot::Id) } },
            Case::Equality => doc! { "find": COLLECTION, "filter": doc! { "team": Slot::Team.mark() } },
            Case::Covered => {
                let projection = doc! { "_id": 0, "number": 1 };
                doc! { "find": COLLECTION, "filter": doc! { "number": range(Slot::Number) }, "projection": projection }
            }
            Case::LooseScan => {
                let sort = doc! { "$sort": doc! { "group": 1 } };
                let first = doc! { "$first": "$number" };
                let group = doc! { "$group": doc! { "_id": "$group", "number": first } };
                aggregate(vec![sort, group])
            }
            Case::Group => {
                let total = doc! { "_id": "$group", "total": doc! { "$sum": "$visits" } };
                aggregate(vec![
                    doc! { "$limit": AGGREGATED as i64 },
                    doc! { "$match": doc! { "active": true } },
                    doc! { "$group": total },
                ])
            }
            Case::Sort => {
                let sort = doc! { "$sort": doc! { "shuffled": 1 } };
                aggregate(vec![doc! { "$limit": AGGREGATED as i64 }, sort, count()])
            }
            Case::Unwind => {
                let unwind = doc! { "$unwind": "$tags" };
                aggregate(vec![doc! { "$limit": AGGREGATED as i64 }, unwind, count()])
            }
            Case::Lookup | Case::LookupUnwind => {
                let join = doc! { "from": COLLECTION, "localField": "number", "foreignField": "number", "as": "found" };
                let unwind = (self == Case::LookupUnwind).then(|| doc! { "$unwind": "$found" });
                let mut stages = vec![doc! { "$limit": JOINED as i64 }, doc! { "$lookup": join }];
                stages.extend(unwind);
                stages.push(count());
                aggregate(stages)
            }
            Case::Inc => doc! { "update": COLLECTION },
            Case::IncLarge => doc! { "update": LARGE_COLLECTION },
            Case::Insert | Case::InsertMany => doc! { "insert": COLLECTION },
        }
    }

    /// Whether it changes documents.
    pub fn writes(self) -> bool {
        matches!(self, Case::Inc | Case::IncLarge | Case::Insert | Case::InsertMany)
    }

    /// What one message counts as, on a collection of so many documents.
    pub fn operations_per_message(self, documents: u64) -> u64 {
        match self {
            Case::InsertMany => BATCH as u64,
            Case::Group | Case::Sort => documents.min(AGGREGATED),
            Case::Unwind => documents.min(AGGREGATED) * TAGS.len() as u64,
            Case::Lookup | Case::LookupUnwind => documents.min(JOINED),
            _ => 1,
        }
    }

    /// Connections that send it, of those there are: one for what takes a processor for long.
    pub fn connections(self, all: usize) -> usize {
        match self {
            Case::Group | Case::Sort | Case::Unwind | Case::Lookup | Case::LookupUnwind => 1,
            _ => all,
        }
    }
}

fn aggregate(stages: Vec<Document>) -> Document {
    let pipeline: Vec<Value> = stages.into_iter().map(Value::from).collect();
    doc! { "aggregate": COLLECTION, "pipeline": pipeline, "cursor": doc! {} }
}

/// So that what is measured has to be made, but not sent.
fn count() -> Document {
    doc! { "$group": doc! { "_id": Value::Null, "n": doc! { "$sum": 1 } } }
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
    /// Where the numbers stand, in ascending order.
    places: Vec<(usize, Slot)>,
}

impl Template {
    /// The message of `case`.
    pub fn new(case: Case) -> Self {
        let mut command = case.command();
        if case.writes() {
            // Without it a write waits for the journal, as majority does.
            command.push("writeConcern", doc! { "w": 1 });
        }
        command.push("$db", DATABASE);
        let section = match case {
            Case::Inc | Case::IncLarge => Some(("updates", increment().as_bytes().to_vec())),
            Case::Insert => Some(("documents", document().as_bytes().to_vec())),
            Case::InsertMany => Some(("documents", document().as_bytes().repeat(BATCH))),
            _ => None,
        };
        let section = section.as_ref().map(|(name, bytes)| (*name, bytes.as_slice()));
        let bytes = command_message(command.to_raw().as_raw(), section);
        let places = places_of_marks(&bytes);
        Self { case, bytes, places }
    }

    /// The message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the numbers of the next operation; returns the id the next insert takes.
    pub fn fill(&mut self, ids: &mut Ids) -> u64 {
        let mut id = match self.case {
            Case::IncLarge => ids.random(LARGE_DOCUMENTS),
            Case::Range | Case::Covered => ids.random(ids.next.saturating_sub(RANGE)),
            _ => ids.random(ids.next),
        };
        let inserts = matches!(self.case, Case::Insert | Case::InsertMany);
        for &(at, slot) in &self.places {
            if inserts && slot == Slot::Id {
                id = ids.next;
                ids.next += 1;
            }
            self.bytes[at..at + 8].copy_from_slice(&slot.of(id).to_le_bytes());
        }
        ids.next
    }
}

fn places_of_marks(bytes: &[u8]) -> Vec<(usize, Slot)> {
    let slot = |window: &[u8]| Slot::ALL.into_iter().find(|slot| slot.mark().to_le_bytes() == window);
    let windows = bytes.windows(8).enumerate();
    windows.filter_map(|(at, window)| Some((at, slot(window)?))).collect()
}

fn increment() -> RawDocBuf {
    doc! { "q": doc! { "_id": Slot::Id.mark() }, "u": doc! { "$inc": doc! { "visits": 1 } } }.to_raw()
}

/// A document of exactly [`DOCUMENT_BYTES`].
fn document() -> RawDocBuf {
    document_of(Slot::mark, DOCUMENT_BYTES)
}

/// The large document of that `_id`.
pub fn large_document(id: u64) -> RawDocBuf {
    document_of(|slot| slot.of(id) as i64, LARGE_BYTES)
}

/// A document of exactly `bytes` with these numbers.
fn document_of(number: impl Fn(Slot) -> i64, bytes: usize) -> RawDocBuf {
    let build = |pad: usize| {
        let mut writer = RawWriter::with_capacity(bytes);
        writer.append("_id", number(Slot::Id));
        writer.append("number", number(Slot::Number));
        writer.append("team", number(Slot::Team));
        writer.append("group", number(Slot::Group));
        writer.append("shuffled", number(Slot::Shuffled));
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
        for (i, tag) in TAGS.into_iter().enumerate() {
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
            (Case::Equality, 1),
            (Case::Covered, 2),
            (Case::LooseScan, 0),
            (Case::Group, 0),
            (Case::Insert, 5),
            (Case::InsertMany, 5 * BATCH),
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
        let first = RawDoc::validate_prefix(&template.bytes[template.places[0].0 - 9..]).unwrap();
        for (name, number) in [("_id", 500), ("number", 500), ("team", 50), ("group", 0)] {
            assert!(
                matches!(first.get(name), Some(ValueRef::Int64(n)) if n == number),
                "{name}"
            );
        }
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
