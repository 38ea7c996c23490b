//! Segments as files ([`nestor_storage::beside`]): a block for each path, and last the head, a document that names them.
//!
//! | field of the head | meaning |
//! |---|---|
//! | `names` | which names of parts it goes by ([`nestor_storage::Engine::keep_names`]) |
//! | `applied` | [`nestor_storage::Engine::applied`] when it was made: a base that has not come so far is another one |
//! | `form` | 2: the form of this, so that those of other versions are made anew |
//! | `tree`, `group` | of what it was made: the tree, and the node above the leaves as 12 bytes: page, checksum, born |
//! | `part` | whether it has only some of the leaves below that |
//! | `parts` | 16 bytes for each leaf: its name and the row that it begins with |
//! | `rows`, `cut` | as [`Segment`] has them |
//! | `fields` | of each field: `n` names below it and `f` which fields these are; `o` whether it has others; `s` whether all documents have those below in this order; `d` whether there are documents; `r` least and largest value; `b` place of its block: offset, length, checksum; `e` the elements of its arrays. Without `b`, and with `e`, its values are not held |
//!
//! Elements are a document with `rows`, `cut` and `fields` as the head has them, and `documents`: whether all are documents.

use crate::codec;
use crate::column::Column;
use crate::elements;
use crate::memory::Memory;
use crate::segment::{Field, Head, Layout, Rows, Segment, Source, Stored};
use nestor_model::{Binary, DocRef, Document, RawDocBuf, Value, ValueRef, doc};
use nestor_storage::base::NodeName;
use nestor_storage::beside::{NewFile, Place};
use nestor_storage::{Beside, TreeId};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const EXTENSION: &str = ".columns";

/// The form of the head.
const FORM: i32 = 2;

/// The name of the file of a group of a tree.
pub(crate) fn name(of: Of) -> String {
    let Of { tree, group, is_whole } = of;
    let part = if is_whole { "" } else { "-part" };
    format!(
        "{:08x}-{:08x}-{:08x}-{:08x}{part}{EXTENSION}",
        tree.0, group.page, group.checksum, group.born
    )
}

/// Of what a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Of {
    pub(crate) tree: TreeId,
    /// The node above its blocks.
    pub(crate) group: NodeName,
    /// It has all blocks below that.
    pub(crate) is_whole: bool,
}

/// The tree of a file; `None` for a file of others.
pub(crate) fn tree_of(name: &str) -> Option<TreeId> {
    let (tree, _) = name.strip_suffix(EXTENSION)?.split_once('-')?;
    u32::from_str_radix(tree, 16).ok().map(TreeId)
}

/// A segment that a file has.
pub(crate) struct Loaded {
    pub(crate) segment: Segment,
    pub(crate) of: Of,
    pub(crate) origin: Origin,
}

/// Of which base a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The names that it goes by.
    pub(crate) names: u64,
    /// How far the base had come.
    pub(crate) applied: u64,
}

/// Writes a segment that is in memory.
pub(crate) fn save(segment: &Segment, beside: &Beside, of: Of, origin: Origin) -> io::Result<(Stored, Layout)> {
    let name = name(of);
    let mut file = beside.create(&name)?;
    let (fields, layout) = save_fields(segment, &mut file)?;
    let head = doc! {
        "form": FORM, "names": origin.names.cast_signed(), "applied": origin.applied.cast_signed(), "tree": i64::from(of.tree.0), "group": bytes(name_bytes(of.group).to_vec()), "part": !of.is_whole,
        "parts": bytes(segment.head().blocks().iter().flat_map(|(name, begin)| [&name_bytes(*name)[..], &begin.to_le_bytes()].concat()).collect()),
        "rows": segment.rows() as i64, "cut": segment.head().is_cut, "fields": fields,
    };
    let len = file.finish(head.to_raw().as_bytes().to_vec())?;
    let stored = Stored::new(beside.clone(), name, len, segment.memory().clone());
    Ok((stored, layout))
}

/// Writes the columns of a segment and of its elements; what the head says of its fields, and where the columns stand.
fn save_fields(segment: &Segment, file: &mut NewFile) -> io::Result<(Vec<Value>, Layout)> {
    let mut layout = Layout::default();
    let mut fields = Vec::new();
    for (at, field) in segment.head().fields.iter().enumerate() {
        let place = match segment.held(at) {
            Some(column) => Some(file.append(codec::encode(column))?),
            None => None,
        };
        let mut out = field_of(field, place);
        if let Some(own) = segment.elements_of(at).map(|elements| elements.segment()) {
            let (fields, below) = save_fields(own, file)?;
            out.push(
                "e",
                doc! { "rows": own.rows() as i64, "cut": own.head().is_cut, "documents": own.has_documents_only(), "fields": fields },
            );
            layout.elements.push((own.shared_head(), Arc::new(below)));
        }
        fields.push(Value::from(out));
        layout.places.push(place.unwrap_or_default());
    }
    Ok((fields, layout))
}

fn field_of(field: &Field, place: Option<Place>) -> Document {
    let mut out = doc! {
        "n": field.below.iter().map(|(name, _)| Value::String(name.clone())).collect::<Vec<_>>(),
        "f": field.below.iter().map(|(_, at)| Value::Int32(*at as i32)).collect::<Vec<_>>(),
        "o": field.has_others, "s": field.is_ordered, "d": field.has_documents,
    };
    if let Some((least, most)) = &field.range {
        out.push("r", vec![least.clone(), most.clone()]);
    }
    if let Some(place) = place {
        let numbers = [place.offset.cast_signed(), i64::from(place.len), i64::from(place.crc)];
        out.push("b", numbers.map(Value::Int64).to_vec());
    }
    out
}

fn bytes(bytes: Vec<u8>) -> Value {
    Value::Binary(Binary {
        subtype: 0,
        bytes: bytes.into(),
    })
}

fn name_bytes(name: NodeName) -> [u8; 12] {
    let mut out = [0; 12];
    out[..4].copy_from_slice(&name.page.to_le_bytes());
    out[4..8].copy_from_slice(&name.checksum.to_le_bytes());
    out[8..].copy_from_slice(&name.born.to_le_bytes());
    out
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn name_from(bytes: &[u8]) -> Option<NodeName> {
    Some(NodeName {
        page: number(bytes)?,
        checksum: number(bytes.get(4..)?)?,
        born: number(bytes.get(8..)?)?,
    })
}

/// The segment of a file, none of whose columns is in memory.
///
/// Errors: those of reading; [`ErrorKind::InvalidData`] when it is none.
pub(crate) fn load(beside: &Beside, name: &str, memory: &Arc<Memory>) -> io::Result<Loaded> {
    let (head, len) = beside.last(name)?;
    let parsed = RawDocBuf::validate(head).ok();
    let parsed = parsed.and_then(|head| parse(&Document::from(head)));
    let (head, of, origin, layout) = parsed.ok_or(ErrorKind::InvalidData)?;
    let stored = Stored::new(beside.clone(), name.to_owned(), len, memory.clone());
    let source = Source::File(Arc::new(stored), Arc::new(layout));
    Ok(Loaded {
        segment: Segment::of(Arc::new(head), source, memory.clone()),
        of,
        origin,
    })
}

type Parsed = (Head, Of, Origin, Layout);

fn parse(doc: &Document) -> Option<Parsed> {
    let doc = doc.as_ref();
    let long = |name: &str| doc.get(name).and_then(long_of);
    let binary = |name: &str| match doc.get(name) {
        Some(ValueRef::Binary { bytes, .. }) => Some(bytes),
        _ => None,
    };
    (long("form") == Some(FORM.into())).then_some(())?;
    let parts = binary("parts")?.chunks_exact(16);
    let blocks = parts.map(|part| Some((name_from(part)?, number(&part[12..])?)));
    let (head, layout) = parse_rows(doc, Rows::Documents(blocks.collect::<Option<_>>()?))?;
    let of = Of {
        tree: TreeId(u32::try_from(long("tree")?).ok()?),
        group: name_from(binary("group")?)?,
        is_whole: !matches!(doc.get("part"), Some(ValueRef::Bool(true))),
    };
    let origin = Origin {
        names: long("names")?.cast_unsigned(),
        applied: long("applied")?.cast_unsigned(),
    };
    Some((head, of, origin, layout))
}

/// What the head says of documents, or of elements.
fn parse_rows(doc: DocRef<'_>, of: Rows) -> Option<(Head, Layout)> {
    let Some(ValueRef::Array(fields)) = doc.get("fields") else {
        return None;
    };
    let mut layout = Layout::default();
    let mut all = Vec::new();
    for field in fields.iter() {
        let ValueRef::Document(field) = field else {
            return None;
        };
        let (field, place, elements) = parse_field(field)?;
        layout.places.push(place.unwrap_or_default());
        layout.elements.extend(elements);
        all.push(field);
    }
    let is_inside = |field: &Field| field.below.iter().all(|(_, at)| *at < all.len());
    if all.is_empty() || !all.iter().all(is_inside) {
        return None;
    }
    let rows = usize::try_from(doc.get("rows").and_then(long_of)?).ok()?;
    let head = Head::new(of, rows, all, matches!(doc.get("cut"), Some(ValueRef::Bool(true))));
    head.is_sound().then_some((head, layout))
}

fn long_of(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int64(value) => Some(value),
        ValueRef::Int32(value) => Some(i64::from(value)),
        _ => None,
    }
}

type ParsedField = (Field, Option<Place>, Option<(Arc<Head>, Arc<Layout>)>);

fn parse_field(field: DocRef<'_>) -> Option<ParsedField> {
    let list = |name: &str| match field.get(name) {
        Some(ValueRef::Array(values)) => Some(values.iter().map(|value| value.to_value()).collect::<Vec<_>>()),
        _ => None,
    };
    let below = list("n")?.into_iter().zip(list("f")?).map(|two| match two {
        (Value::String(name), Value::Int32(at)) => Some((name, usize::try_from(at).ok()?)),
        _ => None,
    });
    let place = match list("b") {
        None => None,
        Some(numbers) => {
            let numbers: Vec<i64> = numbers.iter().filter_map(|number| long_of(number.as_ref())).collect();
            let [offset, len, crc] = numbers[..] else {
                return None;
            };
            Some(Place {
                offset: u64::try_from(offset).ok()?,
                len: u32::try_from(len).ok()?,
                crc: u32::try_from(crc).ok()?,
            })
        }
    };
    let range = match list("r") {
        None => None,
        Some(range) => Some(<[Value; 2]>::try_from(range).ok()?.into()),
    };
    let elements = match field.get("e") {
        Some(ValueRef::Document(own)) => {
            let are_documents = matches!(own.get("documents"), Some(ValueRef::Bool(true)));
            let (head, layout) = parse_rows(own, Rows::Elements { are_documents })?;
            Some((Arc::new(head), Arc::new(layout)))
        }
        _ => None,
    };
    let is = |name: &str| matches!(field.get(name), Some(ValueRef::Bool(true)));
    let field = Field {
        below: below.collect::<Option<_>>()?,
        has_others: is("o"),
        is_ordered: is("s"),
        has_documents: is("d"),
        has_elements: elements.is_some(),
        is_held: place.is_some() && elements.is_none(),
        range,
    };
    Some((field, place, elements))
}

impl Stored {
    /// Reads the column of a field.
    ///
    /// Errors: those of reading; [`ErrorKind::InvalidData`] when it is damaged.
    pub(crate) fn column(&self, head: &Head, (field, layout): (usize, &Layout), memory: &Memory) -> io::Result<Column> {
        let place = layout.places[field];
        let bytes = self.beside.read(&self.name, place)?;
        memory.columns_read.fetch_add(1, Relaxed);
        memory.bytes_read.fetch_add(bytes.len() as u64, Relaxed);
        let range = head.fields[field].range.clone();
        let column = codec::decode(&bytes, head.rows, range).filter(|column| {
            let at = head.arrays.iter().position(|own| *own == field);
            let elements = at.and_then(|at| layout.elements.get(at));
            elements.is_none_or(|(elements, _)| elements::are_begins(column, elements.rows))
        });
        column.ok_or_else(|| ErrorKind::InvalidData.into())
    }
}
