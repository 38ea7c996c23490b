//! From documents to a segment.

use super::column::{Atom, Column};
use super::geo::GeoField;
use super::key::{FieldKey, Kind, RowId};
use super::segment::Segment;
use super::terms::TextBuilder;
use crate::text::definition::{Definition, ROOT, ScopeId};
use crate::text::mapping::{Autocomplete, GeoType, Holds, Level, NumberType, StringType, Types};
use nestor_model::statement::work;
use nestor_model::{DocRef, ErrorCode, RawDoc, Result, Str, ValueRef};
use std::collections::BTreeMap;

/// Characters of the longest token of a `token` field.
const TOKEN_CHARS_MAX: usize = 8181;

/// A segment while it is built.
#[derive(Default)]
pub(in crate::text) struct Builder {
    segment: Segment,
    texts: BTreeMap<FieldKey, TextBuilder>,
    columns: BTreeMap<FieldKey, Vec<(Atom, RowId)>>,
    bytes: usize,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    scope: ScopeId,
    row: RowId,
    path: &'a str,
}

impl Place<'_> {
    fn key(self, kind: Kind) -> FieldKey {
        FieldKey::new(self.scope, kind, self.path)
    }
}

impl Builder {
    /// About how many bytes it takes.
    pub(in crate::text) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::text) fn is_empty(&self) -> bool {
        self.segment.keys.is_empty()
    }

    /// Adds a record.
    ///
    /// Errors: those of the statement's interrupt.
    pub(in crate::text) fn add(&mut self, definition: &Definition, key: &[u8], doc: RawDoc<'_>) -> Result<()> {
        self.segment.keys.push(key.into());
        self.bytes += key.len() + 64;
        let row = self.segment.records.len() as RowId;
        self.segment.roots.push(row);
        let doc = DocRef::from(doc);
        self.row(definition, ROOT, row, "", doc)
    }

    /// Adds a document as a row.
    fn row(
        &mut self,
        definition: &Definition,
        scope: ScopeId,
        parent: RowId,
        path: &str,
        doc: DocRef<'_>,
    ) -> Result<()> {
        let row = self.segment.records.len() as RowId;
        self.segment.records.push(self.segment.keys.len() as u32 - 1);
        self.segment.parents.push(parent);
        self.segment.scopes.push(scope);
        let source = &definition.scope(scope).source;
        if let Some(stored) = source.of(doc, scope == ROOT) {
            self.bytes += stored.weight();
            self.segment.sources.push((row, stored));
        }
        self.fields(definition, definition.level(scope), Place { scope, row, path }, doc)
    }

    fn fields(&mut self, definition: &Definition, level: Level<'_>, place: Place<'_>, doc: DocRef<'_>) -> Result<()> {
        let mut path = String::from(place.path);
        if !path.is_empty() {
            path.push('.');
        }
        let prefix = path.len();
        for (name, value) in doc {
            work(1)?;
            if let Some(types) = level.types(name) {
                path.truncate(prefix);
                path.push_str(name);
                self.value(definition, types, Place { path: &path, ..place }, value)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, definition: &Definition, types: &Types, place: Place<'_>, value: ValueRef<'_>) -> Result<()> {
        work(1)?;
        let is_indexed = match value {
            ValueRef::Array(items) => {
                for item in items {
                    self.value(definition, types, place, item)?;
                }
                return Ok(());
            }
            ValueRef::Document(doc) => self.document(definition, types, place, doc)?,
            ValueRef::String(text) => self.string(types, place, text)?,
            ValueRef::Int32(number) => self.number(types, place, f64::from(number), true),
            ValueRef::Int64(number) => self.number(types, place, number as f64, true),
            ValueRef::Double(number) => self.number(types, place, number, false),
            ValueRef::DateTime(at) => {
                let plain = self.atom(types.date, place, Kind::Date, Atom::Date(at));
                self.atom(types.date_facet, place, Kind::DateFacet, Atom::Date(at)) || plain
            }
            ValueRef::Bool(truth) => self.atom(types.boolean, place, Kind::Boolean, Atom::Bool(truth)),
            ValueRef::ObjectId(id) => self.atom(types.object_id, place, Kind::ObjectId, Atom::ObjectId(id.0)),
            ValueRef::Binary { subtype: 4, bytes } => match <[u8; 16]>::try_from(bytes) {
                Ok(bytes) => self.atom(types.uuid, place, Kind::Uuid, Atom::Uuid(bytes)),
                Err(_) => false,
            },
            ValueRef::Null => self.atom(true, place, Kind::Null, Atom::Null),
            _ => false,
        };
        if is_indexed {
            self.mark(place);
        }
        Ok(())
    }

    /// There is something at a place.
    fn mark(&mut self, place: Place<'_>) {
        let rows = self.segment.present.entry(place.key(Kind::Exists)).or_default();
        if rows.last() != Some(&place.row) {
            rows.push(place.row);
            self.bytes += 4;
        }
    }

    fn document(&mut self, definition: &Definition, types: &Types, place: Place<'_>, doc: DocRef<'_>) -> Result<bool> {
        let mut is_indexed = false;
        if let Some(geo) = types.geo {
            is_indexed |= self.geometry(geo, place, doc)?;
        }
        if let Some(level) = types.document_level() {
            self.fields(definition, level, place, doc)?;
            is_indexed = true;
        }
        if types.embedded.is_some()
            && let Some(inner) = definition.inner(place.scope, place.path)
        {
            self.row(definition, inner, place.row, place.path, doc)?;
            is_indexed = true;
        }
        Ok(is_indexed)
    }

    fn geometry(&mut self, geo: GeoType, place: Place<'_>, doc: DocRef<'_>) -> Result<bool> {
        let is_point = matches!(doc.get("type"), Some(ValueRef::String("Point")));
        let is_geojson = matches!(doc.get("type"), Some(ValueRef::String(_)));
        if !(is_point || geo.shapes && is_geojson) {
            return Ok(false);
        }
        let value = ValueRef::Document(doc);
        let cells = match nestor_query::geo::sphere_keys(value) {
            Ok(cells) => cells,
            // What is no geometry is not indexed.
            Err(error) if error.code() == ErrorCode::BadValue => return Ok(false),
            Err(error) => return Err(error),
        };
        let value = value.to_value();
        self.bytes += value.weight() + cells.len() * 16;
        let field: &mut GeoField = self.segment.geometries.entry(place.key(Kind::Geo)).or_default();
        field.push(place.row, value, cells);
        Ok(true)
    }

    fn string(&mut self, types: &Types, place: Place<'_>, text: &str) -> Result<bool> {
        let mut is_indexed = false;
        if let Some(string) = &types.string {
            is_indexed |= self.text(string, place, Kind::Text, text)?;
            for (name, other) in &string.multi {
                is_indexed |= self.text(other, place, Kind::Multi(name.as_str().into()), text)?;
            }
        }
        if let Some(autocomplete) = &types.autocomplete {
            self.pieces(autocomplete, place, text)?;
            is_indexed = true;
        }
        let short = cut(text);
        if let Some(token) = types.token {
            let token: Str = match token.lowercase {
                true => short.to_lowercase().into(),
                false => short.into(),
            };
            is_indexed |= self.atom(true, place, Kind::Token, Atom::Token(token));
        }
        Ok(self.atom(types.string_facet, place, Kind::StringFacet, Atom::Token(short.into())) || is_indexed)
    }

    fn text(&mut self, string: &StringType, place: Place<'_>, kind: Kind, text: &str) -> Result<bool> {
        if string.longest.is_some_and(|longest| text.chars().count() > longest) {
            return Ok(false);
        }
        let tokens = string.analyzer.tokens(text)?;
        work(1 + tokens.len() / 4)?;
        let field = self.texts.entry(place.key(kind)).or_default();
        let first = field.begin(place.row);
        let mut last = None;
        for token in &tokens {
            let is_known = string.holds == Holds::Documents && field.has(place.row, &token.text);
            // Several tokens of one word make a text no longer.
            let counts = last != Some(token.position);
            last = Some(token.position);
            if !is_known {
                self.bytes += field.add(place.row, &token.text, first + token.position, counts);
            }
        }
        if string.is_stored {
            field.keep(place.row, text);
            self.bytes += text.len() + 24;
        }
        Ok(true)
    }

    fn pieces(&mut self, autocomplete: &Autocomplete, place: Place<'_>, text: &str) -> Result<()> {
        let words = autocomplete.grams.words(&autocomplete.analyzer, text)?;
        let field = self.texts.entry(place.key(Kind::Autocomplete)).or_default();
        let first = field.begin(place.row);
        let bytes = &mut self.bytes;
        for word in &words {
            let mut is_first = true;
            autocomplete.grams.for_each(&word.text, |piece| {
                work(1)?;
                *bytes += field.add(place.row, piece, first + word.position, is_first);
                is_first = false;
                Ok(())
            })?;
        }
        field.keep(place.row, text);
        self.bytes += text.len() + 24;
        Ok(())
    }

    fn number(&mut self, types: &Types, place: Place<'_>, number: f64, is_integer: bool) -> bool {
        let wants = |types: Option<NumberType>| {
            types.is_some_and(|types| if is_integer { types.integers } else { types.doubles })
        };
        let plain = self.atom(wants(types.number), place, Kind::Number, Atom::number(number));
        self.atom(
            wants(types.number_facet),
            place,
            Kind::NumberFacet,
            Atom::number(number),
        ) || plain
    }

    fn atom(&mut self, is_wanted: bool, place: Place<'_>, kind: Kind, atom: Atom) -> bool {
        if is_wanted {
            self.columns.entry(place.key(kind)).or_default().push((atom, place.row));
            self.bytes += 48;
        }
        is_wanted
    }

    /// The segment.
    ///
    /// Errors: those of the statement's interrupt.
    pub(in crate::text) fn finish(self) -> Result<Segment> {
        let mut segment = self.segment;
        for (key, field) in self.texts {
            segment.texts.insert(key, field.finish()?);
        }
        for (key, pairs) in self.columns {
            work(1 + pairs.len() / 4)?;
            segment.columns.insert(key, Column::of(pairs));
        }
        for field in segment.geometries.values_mut() {
            field.close();
        }
        segment.close();
        Ok(segment)
    }
}

/// A text as far as tokens are kept.
fn cut(text: &str) -> &str {
    match text.char_indices().nth(TOKEN_CHARS_MAX) {
        Some((at, _)) if text.len() > TOKEN_CHARS_MAX => &text[..at],
        _ => text,
    }
}
