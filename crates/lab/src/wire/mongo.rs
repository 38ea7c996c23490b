//! MongoDB's protocol: OP_MSG with the command encoded beforehand.
//!
//! Source: manual, "MongoDB Wire Protocol"; driver specification "Transactions".

use super::{Buffered, Durability, Session, Stream};
use crate::rows::{Argument, Arguments, Cell, Rows};
use crate::statement::{Role, Statement, places};
use nestor_model::{DocRef, Document, RawDoc, ValueRef, doc};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HEADER_BYTES: usize = 16;
/// Header, flags and the kind of the one section.
const BODY_AT: usize = 21;
const OP_MSG: i32 = 2013;
/// Longest message a server may send, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Stands for the number of the transaction.
const NUMBER_MARK: i64 = 0x7A5A_3C1E_0F90_0000;

/// A command ready to be sent again and again.
struct Template {
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
    /// Where the number of the transaction stands.
    transaction: Option<usize>,
}

impl Template {
    fn new(command: &Document) -> Self {
        let body = command.to_raw();
        let mut bytes = vec![0; BODY_AT];
        bytes[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        bytes.extend_from_slice(body.as_bytes());
        let length = bytes.len() as i32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let mark = NUMBER_MARK.to_le_bytes();
        Self {
            places: places(&bytes),
            transaction: bytes.windows(8).position(|window| window == mark),
            bytes,
        }
    }

    fn fill(&mut self, arguments: &Arguments, transaction: i64) {
        if let Some(at) = self.transaction {
            self.bytes[at..at + 8].copy_from_slice(&transaction.to_le_bytes());
        }
        for &(at, number) in &self.places {
            match arguments.list[number] {
                Argument::Int(value) => self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes()),
                Argument::Text { start, length } => {
                    self.bytes[at..at + length].copy_from_slice(&arguments.bytes[start..start + length]);
                }
            }
        }
    }
}

/// A statement alone, at the beginning of a transaction, and later in it.
struct Prepared {
    name: &'static str,
    role: Role,
    /// The fields of an answer in the order that its cells have; empty for documents as they are.
    fields: Vec<String>,
    alone: Template,
    first: Template,
    later: Template,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Alone,
    First,
    Later,
}

pub struct Mongo {
    stream: Buffered,
    database: String,
    durability: Durability,
    prepared: Vec<Prepared>,
    session: [u8; 16],
    transaction: i64,
    stage: Stage,
    commit: Option<Template>,
    rows: Rows,
}

impl Mongo {
    pub fn new(stream: Box<dyn Stream>, database: &str, durability: Durability) -> Self {
        // Sessions of one run and of runs that follow have to be different ones.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = now.map_or(0, |time| time.as_nanos() as u64);
        let own = u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Relaxed);
        let session = nestor_model::random::uuid_of(crate::random::mix(nanoseconds), crate::random::mix(own));
        Self {
            stream: Buffered::new(stream),
            database: database.to_owned(),
            durability,
            prepared: Vec::new(),
            session,
            transaction: 0,
            stage: Stage::Alone,
            commit: None,
            rows: Rows::default(),
        }
    }

    fn concern(&self) -> Document {
        match self.durability {
            Durability::Relaxed => doc! { "w": 1, "j": false },
            Durability::Durable => doc! { "w": 1, "j": true },
        }
    }

    /// The fields of a command of a transaction.
    fn in_transaction(&self, command: &Document, is_first: bool) -> Document {
        let mut command = command.clone();
        let id = nestor_model::Binary {
            subtype: 4,
            bytes: self.session.as_slice().into(),
        };
        command.push("lsid", doc! { "id": nestor_model::Value::Binary(id) });
        command.push("txnNumber", NUMBER_MARK);
        if is_first {
            command.push("startTransaction", true);
        }
        command.push("autocommit", false);
        command
    }

    fn exchange(&mut self, number: usize, arguments: &Arguments, rows: &mut Rows) -> Result<(), String> {
        let prepared = &mut self.prepared[number];
        let template = match self.stage {
            Stage::Alone => &mut prepared.alone,
            Stage::First => &mut prepared.first,
            Stage::Later => &mut prepared.later,
        };
        template.fill(arguments, self.transaction);
        self.stream.send(&template.bytes)?;
        if self.stage == Stage::First {
            self.stage = Stage::Later;
        }
        rows.clear();
        let mut more = read_answer(&mut self.stream, prepared.role, &prepared.fields, rows)?;
        while let Some((cursor, collection)) = more {
            let command = doc! {
                "getMore": cursor, "collection": collection, "batchSize": 1_000_000, "$db": self.database.as_str(),
            };
            let message = Template::new(&command);
            self.stream.send(&message.bytes)?;
            more = read_answer(&mut self.stream, Role::Reads, &prepared.fields, rows)?;
        }
        Ok(())
    }
}

impl Session for Mongo {
    fn prepare(&mut self, statement: &Statement) -> Result<usize, String> {
        let database = self.database.as_str();
        let named = |mut command: Document| {
            command.push("$db", database);
            Template::new(&command)
        };
        let mut alone = statement.mongo.clone();
        let first_field = statement.mongo.iter().next().map(|(name, _)| name.to_owned());
        let takes_concern = matches!(
            first_field.as_deref(),
            Some("insert" | "update" | "delete" | "findAndModify")
        );
        if statement.role == Role::Writes && takes_concern && statement.mongo.get("writeConcern").is_none() {
            alone.push("writeConcern", self.concern());
        }
        let prepared = Prepared {
            name: statement.name,
            role: statement.role,
            fields: fields(&statement.mongo),
            alone: named(alone),
            first: named(self.in_transaction(&statement.mongo, true)),
            later: named(self.in_transaction(&statement.mongo, false)),
        };
        self.prepared.push(prepared);
        Ok(self.prepared.len() - 1)
    }

    fn call(&mut self, number: usize, arguments: &Arguments, rows: &mut Rows) -> Result<(), String> {
        let done = self.exchange(number, arguments, rows);
        done.map_err(|error| format!("{}: {error}", self.prepared[number].name))
    }

    fn begin(&mut self) -> Result<(), String> {
        self.transaction += 1;
        self.stage = Stage::First;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        let was = std::mem::replace(&mut self.stage, Stage::Alone);
        if was != Stage::Later {
            return Ok(());
        }
        let mut message = match self.commit.take() {
            Some(message) => message,
            None => {
                let mut command = self.in_transaction(&doc! { "commitTransaction": 1 }, false);
                command.push("writeConcern", self.concern());
                command.push("$db", "admin");
                Template::new(&command)
            }
        };
        message.fill(&Arguments::default(), self.transaction);
        self.stream.send(&message.bytes)?;
        self.commit = Some(message);
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let answer = read_answer(&mut self.stream, Role::Writes, &[], &mut rows);
        self.rows = rows;
        answer.map(drop).map_err(|error| format!("commit: {error}"))
    }
}

/// The fields that a command asks for, in its order: those of a find's projection, and of a pipeline's last `$project` or `$group`. None where documents
/// are wanted as they are.
fn fields(command: &Document) -> Vec<String> {
    let included = |projection: &Document| {
        let is_left_out =
            |value: ValueRef<'_>| matches!(number(Some(value)), Some(0)) || matches!(value, ValueRef::Bool(false));
        let named = projection
            .iter()
            .filter(|(_, value)| !is_left_out(*value))
            .map(|(name, _)| name.to_owned());
        let named: Vec<String> = named.collect();
        match projection.get("_id") {
            None if !named.is_empty() => std::iter::once("_id".to_owned()).chain(named).collect(),
            _ => named,
        }
    };
    let document = |value: ValueRef<'_>| value.as_document().map(|document| document.to_document());
    if let Some(projection) = command.get("projection").and_then(document) {
        return included(&projection);
    }
    let stages = command.get("pipeline").and_then(ValueRef::as_array);
    let stages: Vec<Document> = stages
        .into_iter()
        .flat_map(|stages| stages.iter())
        .filter_map(document)
        .collect();
    let mut dropped: Vec<String> = Vec::new();
    for stage in stages.iter().rev() {
        let body = stage
            .iter()
            .next()
            .and_then(|(name, value)| Some((name, document(value)?)));
        match body {
            Some(("$project", projection)) if !included(&projection).is_empty() => return included(&projection),
            // It only leaves some out.
            Some(("$project", projection)) => dropped.extend(projection.iter().map(|(name, _)| name.to_owned())),
            Some(("$group", group)) => {
                let names = group.iter().map(|(name, _)| name.to_owned());
                return names.filter(|name| !dropped.contains(name)).collect();
            }
            Some(("$sort", _)) => {}
            None if stage.get("$limit").is_some() || stage.get("$skip").is_some() => {}
            _ => return Vec::new(),
        }
    }
    Vec::new()
}

/// Reads a reply onto `rows`; returns the cursor that has more, and its collection.
fn read_answer(
    stream: &mut Buffered,
    role: Role,
    fields: &[String],
    rows: &mut Rows,
) -> Result<Option<(i64, String)>, String> {
    let start = rows.buffer.len();
    stream.read_onto(&mut rows.buffer, HEADER_BYTES)?;
    let prefix: [u8; 4] = [0, 1, 2, 3].map(|i| rows.buffer[start + i]);
    let length = u32::from_le_bytes(prefix) as usize;
    if !(BODY_AT + 5..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(format!("the server sent what is no reply: its length is {length}"));
    }
    stream.read_onto(&mut rows.buffer, length - HEADER_BYTES)?;
    // The cells are pushed while the buffer is read, so it is lent for as long.
    let buffer = std::mem::take(&mut rows.buffer);
    let read = read_body(&buffer, start + BODY_AT, role, fields, rows);
    rows.buffer = buffer;
    read
}

fn read_body(
    buffer: &[u8],
    at: usize,
    role: Role,
    fields: &[String],
    rows: &mut Rows,
) -> Result<Option<(i64, String)>, String> {
    let body =
        RawDoc::validate_prefix(&buffer[at..]).map_err(|e| format!("the server sent what is no reply: {e:?}"))?;
    let is_good =
        matches!(body.get("ok"), Some(ValueRef::Double(ok)) if ok == 1.0) || number(body.get("ok")) == Some(1);
    if !is_good {
        let message = body.get("errmsg").and_then(ValueRef::as_str).unwrap_or("no reason");
        return Err(format!("{message} (code {})", number(body.get("code")).unwrap_or(0)));
    }
    if role == Role::Writes {
        if let Some(first) = body
            .get("writeErrors")
            .and_then(ValueRef::as_array)
            .and_then(|errors| errors.get(0))
        {
            return Err(format!("{first:?}"));
        }
        if let Some(error) = body.get("writeConcernError") {
            return Err(format!("{error:?}"));
        }
        rows.affected = number(body.get("n")).unwrap_or(0) as u64;
        return Ok(None);
    }
    let Some(cursor) = body.get("cursor").and_then(ValueRef::as_document) else {
        return Ok(None);
    };
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
    for document in batch
        .and_then(ValueRef::as_array)
        .into_iter()
        .flat_map(|batch| batch.iter())
    {
        let document = document.as_document().ok_or("a batch has what is no document")?;
        let begin = rows.cells.len();
        let mut are_in_order = true;
        for (at, (name, value)) in document.iter().enumerate() {
            are_in_order &= fields.is_empty() || fields.get(at).is_some_and(|field| field == name);
            push(buffer, value, rows);
        }
        // Servers may send the fields in the order of the document, or of the index that they come from.
        if !are_in_order || (!fields.is_empty() && rows.cells.len() - begin != fields.len()) {
            rows.cells.truncate(begin);
            for field in fields {
                match document.get(field) {
                    Some(value) => push(buffer, value, rows),
                    None => rows.cells.push(Cell::Null),
                }
            }
        }
        rows.end_row();
    }
    let id = number(cursor.get("id")).unwrap_or(0);
    let namespace = cursor.get("ns").and_then(ValueRef::as_str).unwrap_or_default();
    let collection = namespace.split_once('.').map_or("", |(_, collection)| collection);
    Ok((id != 0).then(|| (id, collection.to_owned())))
}

fn push(buffer: &[u8], value: ValueRef<'_>, rows: &mut Rows) {
    // Texts and documents lie within the buffer.
    let within = |bytes: &[u8]| {
        let start = bytes.as_ptr() as usize - buffer.as_ptr() as usize;
        start..start + bytes.len()
    };
    match value {
        ValueRef::Double(number) => rows.cells.push(Cell::Float(number)),
        ValueRef::Bool(truth) => rows.cells.push(Cell::Int(i64::from(truth))),
        ValueRef::String(text) => rows.push_bytes(within(text.as_bytes())),
        ValueRef::DateTime(milliseconds) => rows.cells.push(Cell::Int(milliseconds)),
        ValueRef::Document(DocRef::Raw(document)) => rows.push_bytes(within(document.as_bytes())),
        other => rows.cells.push(number(Some(other)).map_or(Cell::Null, Cell::Int)),
    }
}

fn number(value: Option<ValueRef<'_>>) -> Option<i64> {
    match value? {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        ValueRef::Double(number) if number.fract() == 0.0 => Some(number as i64),
        _ => None,
    }
}

/// Sends a command and returns its whole reply.
pub fn command(stream: &mut dyn Stream, command: &Document) -> Result<Document, String> {
    let message = Template::new(command);
    stream
        .write_all(&message.bytes)
        .and_then(|()| stream.flush())
        .map_err(super::lost)?;
    let mut reply = Vec::new();
    super::read_onto(stream, &mut reply, 4)?;
    let length = u32::from_le_bytes([0, 1, 2, 3].map(|i| reply[i])) as usize;
    if !(BODY_AT + 5..=MESSAGE_BYTES_MAX).contains(&length) {
        return Err(format!("the server sent what is no reply: its length is {length}"));
    }
    super::read_onto(stream, &mut reply, length - 4)?;
    read_body(&reply, BODY_AT, Role::Reads, &[], &mut Rows::default())?;
    let body = RawDoc::validate_prefix(&reply[BODY_AT..]).map_err(|e| e.reason.to_owned())?;
    Ok(DocRef::Raw(body).to_document())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{aggregate, find};
    use nestor_model::Value;

    #[test]
    fn the_order_of_fields_is_the_commands() {
        let group = || doc! { "$group": doc! { "_id": "$a", "n": doc! { "$sum": 1 } } };
        let sort = doc! { "$sort": doc! { "n": -1 } };
        for (command, expected) in [
            (find("c", doc! {}, doc! {}), vec![]),
            (find("c", doc! {}, doc! { "b": 1, "a": 1 }), vec!["_id", "b", "a"]),
            (find("c", doc! {}, doc! { "_id": 0, "b": 1 }), vec!["b"]),
            (
                aggregate("c", vec![group(), sort.clone(), doc! { "$limit": 3 }]),
                vec!["_id", "n"],
            ),
            (
                aggregate("c", vec![group(), doc! { "$project": doc! { "_id": 0, "x": "$n" } }]),
                vec!["x"],
            ),
            (
                aggregate("c", vec![group(), doc! { "$project": doc! { "_id": 0 } }]),
                vec!["n"],
            ),
            (aggregate("c", vec![sort]), vec![]),
        ] {
            assert_eq!(fields(&command), expected, "{command:?}");
        }
    }

    #[test]
    fn answers_are_read_in_that_order() {
        let row = Value::from(doc! { "a": 1i64, "b": 2i64 });
        let reply = doc! { "ok": 1, "cursor": doc! { "id": 0i64, "ns": "d.c", "firstBatch": vec![row] } }.to_raw();
        let mut rows = Rows::default();
        let fields = ["b", "c", "a"].map(str::to_owned);
        read_body(reply.as_bytes(), 0, Role::Reads, &fields, &mut rows).expect("a reply");
        assert_eq!(rows.row(0), [Cell::Int(2), Cell::Null, Cell::Int(1)]);
    }
}
