//! Inverted indexes: those of the kind `expression` that have what is within values, of one part or several, as GIN and GiST have it in PostgreSQL.
//!
//! ```text
//! (data jsonb_path_ops, tags)     {data: {a: [1, "x"]}, tags: ["p", "q"]}    →   hash(0, a, 1), hash(0, a, "x"), hash(1, "p"), hash(1, "q")
//! (body gin_trgm_ops)             {body: "a cat"}                            →   "  a", " a ", "  c", " ca", "cat", "at " as numbers
//! (tsv)                           {tsv: "'cat':2"}                           →   "cat"
//! ```
//!
//! All keys are in the first part of an entry. What a condition asks for becomes a tree of keys that a row must have, of which those are read that the
//! fewest rows have ([`bounds`]); each row that is found is looked at, so two values may share a key.

use super::indexed::{self, Indexed};
use super::probe::entries;
use super::tables::{COSTED_MIN, FETCH_COST};
use crate::catalog::Table;
use crate::catalog::system::classes;
use crate::expr::like::Kind;
use crate::expr::{Comparison, Expr, Node};
use crate::plan::pushdown::is_search;
use crate::search::parts::{self, Parts};
use crate::search::trigrams::{self, Trigram};
use crate::types::tsquery::{Node as Query, Operand, TsQuery};
use crate::types::tsvector::TsVector;
use crate::types::{Type, arrays, style};
use nestor_exec::estimate::least_entries;
use nestor_model::fnv::Fnv;
use nestor_model::{Array, Result, Value, ValueRef, hash_value};
use nestor_planner::access::IndexBounds;
use nestor_planner::catalog::IndexInfo;
use nestor_planner::interval::{Interval, IntervalList};
use nestor_planner::relation::{Env, Scalar};
use nestor_storage::{Collection, View};
use std::hash::Hasher as _;
use std::sync::Arc;

/// What an index has of the values of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// The lexemes of vectors.
    Lexemes,
    /// The elements of arrays.
    Elements,
    /// The scalars of JSON, each with the names that lead to it.
    Paths,
    /// The same, and the names and texts at the top.
    Json,
    /// The trigrams of texts.
    Trigrams,
    /// The value.
    Values,
}

/// A row with more keys is in the index as [`TOO_MANY`] alone.
const KEYS_MAX: usize = 20_000;
/// The key of rows with too many.
const TOO_MANY: Value = Value::Int32(0);
/// Of longer lexemes the index has the beginning.
const LEXEME_BYTES_MAX: usize = 256;
/// Keys of which one has to be there, at most, to be looked for one by one.
const INTERVALS_MAX: usize = 1000;
/// Keys that are counted to take those that the fewest rows have.
const COUNTED_MAX: usize = 64;

impl Items {
    /// What an index of an access method has of values of a type, by the class of operators, which is empty for the type's own; `None` where it has
    /// nothing of them.
    pub fn of(method: i64, class: &str, ty: &Type) -> Option<Self> {
        let class = match class {
            "" => classes::default_of(method, ty)?,
            class => class,
        };
        Some(match (method, class) {
            (_, "tsvector_ops") => Self::Lexemes,
            (classes::GIN, "gin_trgm_ops") | (classes::GIST, "gist_trgm_ops") => Self::Trigrams,
            (classes::GIN, "array_ops") => Self::Elements,
            (classes::GIN, "jsonb_path_ops") => Self::Paths,
            (classes::GIN, "jsonb_ops") => Self::Json,
            (classes::GIN, _) => Self::Values,
            _ => return None,
        })
    }

    /// Adds the keys of a value of the part `at`.
    ///
    /// Errors: those of the statement's limits.
    pub fn keys(self, at: usize, part: &Expr, value: Value, out: &mut Vec<Value>) -> Result<()> {
        match (self, value) {
            (_, Value::Null) => {}
            (Self::Lexemes, value) => {
                let vector = TsVector::of(&value)?;
                out.extend(vector.entries.iter().map(|entry| lexeme(at, &entry.lexeme)));
            }
            (Self::Trigrams, Value::String(text)) => {
                out.extend(
                    trigrams::keys(&text, KEYS_MAX)?
                        .into_iter()
                        .map(|own| of_trigram(at, own)),
                );
            }
            (Self::Elements, Value::Array(items)) => out.extend(elements(at, &part.ty(), items)),
            (Self::Paths | Self::Json, value) => {
                if self == Self::Json {
                    out.extend(names(value.as_ref()).into_iter().map(|name| of_name(at, name)));
                }
                scalars(value.as_ref(), &path(at), &mut |hash| out.push(hash));
            }
            (Self::Values, value) => out.push(of_value(at, &part.ty(), value)),
            _ => {}
        }
        Ok(())
    }
}

/// The keys of a row: those of all parts, in order.
///
/// Errors: those of the statement's limits.
pub fn keys(items: &[Items], values: Vec<(&Expr, Value)>) -> Result<Value> {
    let mut out = Vec::new();
    for ((at, items), (part, value)) in items.iter().enumerate().zip(values) {
        items.keys(at, part, value, &mut out)?;
    }
    if out.len() > KEYS_MAX {
        out = vec![TOO_MANY];
    }
    out.sort_by(|a, b| nestor_model::compare(a, b));
    out.dedup_by(|a, b| nestor_model::compare(&*a, &*b).is_eq());
    Ok(Value::Array(Array::new(out)))
}

/// A lexeme as an index has it: behind the number of its part, but of the first one.
fn lexeme(at: usize, lexeme: &str) -> Value {
    let end = (0..=lexeme.len().min(LEXEME_BYTES_MAX)).rev();
    let end = end.into_iter().find(|at| lexeme.is_char_boundary(*at)).unwrap_or(0);
    let part = u32::try_from(at).ok().filter(|at| *at > 0).and_then(char::from_u32);
    let key: String = part.into_iter().chain(lexeme[..end].chars()).collect();
    Value::from(key.as_str())
}

fn of_trigram(at: usize, [a, b, c]: Trigram) -> Value {
    let number = u32::from_be_bytes([0, a, b, c]);
    Value::Int64((at as i64) << 24 | i64::from(number))
}

/// A hash of what comes from the part `at`. Entries on disk depend on it.
fn path(at: usize) -> Fnv {
    let mut hash = Fnv::default();
    hash.number(at as u64);
    hash
}

fn of_value(at: usize, ty: &Type, value: Value) -> Value {
    let mut hash = path(at);
    hash_value(&crate::types::compare::key(ty, value), &mut hash);
    Value::Int64(hash.finish().cast_signed())
}

/// The keys of the elements of an array, at any depth; nulls are no elements that anybody asks for.
fn elements(at: usize, ty: &Type, items: Array) -> Vec<Value> {
    let element = ty.element().cloned().unwrap_or(Type::Unknown);
    let leaves = match arrays::nests(&element) {
        true => arrays::leaves(items),
        false => items,
    };
    let all = leaves.iter().map(|item| item.to_value());
    let all = all.filter(|item| !matches!(item, Value::Null));
    all.map(|item| of_value(at, &element, item)).collect()
}

/// The names and the texts that JSON has at its top, which are what `?` asks for.
fn names(value: ValueRef<'_>) -> Vec<&str> {
    match value {
        ValueRef::Document(doc) => doc.iter().map(|(name, _)| name).collect(),
        ValueRef::Array(items) => items.iter().filter_map(ValueRef::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

fn of_name(at: usize, name: &str) -> Value {
    let mut hash = path(at);
    hash.bytes(&[1]);
    hash.bytes(name.as_bytes());
    Value::Int64(hash.finish().cast_signed())
}

/// Gives the scalars of JSON, each behind the names that lead to it, through arrays or not.
fn scalars(value: ValueRef<'_>, path: &Fnv, give: &mut dyn FnMut(Value)) {
    match value {
        ValueRef::Document(doc) => {
            for (name, value) in doc.iter() {
                let mut path = *path;
                path.bytes(&[2]);
                path.bytes(name.as_bytes());
                scalars(value, &path, give);
            }
        }
        ValueRef::Array(items) => items.iter().for_each(|item| scalars(item, path, give)),
        value => {
            let mut hash = *path;
            hash.bytes(&[3]);
            // JSON's null has two forms.
            if !value.is_nullish() {
                hash_value(&value.to_value(), &mut hash);
            }
            give(Value::Int64(hash.finish().cast_signed()));
        }
    }
}

/// Keys that a row has of which a condition holds.
enum Wanted {
    /// Nothing is known.
    Unknown,
    /// One of these keys.
    Keys(Interval),
    /// So many of these.
    AtLeast(usize, Vec<Wanted>),
}

impl Wanted {
    fn all(parts: Vec<Self>) -> Self {
        Self::AtLeast(parts.len(), parts)
    }

    fn key(key: Value) -> Self {
        Self::Keys(Interval::point(key))
    }

    fn any_key(keys: Vec<Value>) -> Self {
        Self::AtLeast(1, keys.into_iter().map(Self::key).collect())
    }

    /// All of these keys; nothing is known of a row that has none.
    fn all_keys(keys: Vec<Value>) -> Self {
        match keys.is_empty() {
            true => Self::Unknown,
            false => Self::all(keys.into_iter().map(Self::key).collect()),
        }
    }

    fn of_parts(at: usize, found: &Parts) -> Self {
        match found {
            Parts::Trigrams(all) => Self::all_keys(all.iter().map(|own| of_trigram(at, *own)).collect()),
            Parts::All(all) => Self::all(all.iter().map(|own| Self::of_parts(at, own)).collect()),
            Parts::Any(all) => Self::AtLeast(1, all.iter().map(|own| Self::of_parts(at, own)).collect()),
        }
    }

    fn of_query(at: usize, query: &Query) -> Self {
        let all = || query.parts().iter().map(|part| Self::of_query(at, part)).collect();
        match query {
            Query::Operand(operand) => Self::Keys(interval_of(at, operand)),
            Query::Nothing | Query::Not(_) => Self::Unknown,
            Query::Or(_) => Self::AtLeast(1, all()),
            Query::And(_) | Query::Phrase(..) => Self::all(all()),
        }
    }
}

/// The keys of a lexeme, or of those that begin so.
fn interval_of(at: usize, operand: &Operand) -> Interval {
    let from = lexeme(at, &operand.lexeme);
    if !operand.is_prefix {
        return Interval::point(from);
    }
    // No key that begins so comes behind this one, as none is longer.
    let most = char::MAX.to_string().repeat(LEXEME_BYTES_MAX / 4 + 1);
    let to = format!("{}{most}", from.as_str().unwrap_or_default());
    Interval::new(from, true, Value::from(to.as_str()), true)
}

/// An expression without casts from a type of texts to another, which change nothing.
fn bare(expr: &Expr) -> &Expr {
    let is_plain = |ty: &Type| matches!(ty, Type::Text | Type::Varchar | Type::Citext);
    match expr.node() {
        Node::Cast {
            arg, to, modifier: -1, ..
        } if is_plain(to) && is_plain(&arg.ty()) => bare(arg),
        _ => expr,
    }
}

/// An index and the scan of a table that it may serve.
struct Asking<'a> {
    own: &'a Indexed,
    table: &'a Table,
    env: &'a Env<'a>,
}

impl Asking<'_> {
    /// The part of the index that an expression is, of those that have such items.
    fn part(&self, expr: &Expr, is_one: impl Fn(Items) -> bool) -> Option<usize> {
        let asked = indexed::normal(bare(expr), &self.table.columns);
        let mut parts = self.own.parts.iter().zip(&self.own.items);
        parts.position(|(part, items)| is_one(*items) && indexed::normal(bare(part), &self.own.table.columns) == asked)
    }

    fn value(&self, expr: &Expr) -> Result<Value> {
        expr.value(&[], self.env)
    }

    /// Keys that rows have of which a condition holds.
    ///
    /// Errors: those of the values.
    fn wanted(&self, condition: &Expr) -> Result<Wanted> {
        let all = |parts: &[Expr]| parts.iter().map(|part| self.wanted(part)).collect::<Result<Vec<_>>>();
        Ok(match condition.node() {
            Node::And(parts) => Wanted::all(all(parts)?),
            Node::Or(parts) => Wanted::AtLeast(1, all(parts)?),
            Node::Match(like) if !like.negated && like.pattern.is_constant() => {
                let Some(at) = self.part(&like.text, |items| items == Items::Trigrams) else {
                    return Ok(Wanted::Unknown);
                };
                let pattern = self.value(&like.pattern)?;
                match (like.kind, pattern.as_str()) {
                    (Kind::Like, Some(pattern)) => Wanted::of_parts(at, &parts::of_like(pattern, like.escape)),
                    (Kind::Regex, Some(pattern)) => Wanted::of_parts(at, &parts::of_regex(pattern)),
                    _ => Wanted::Unknown,
                }
            }
            Node::Compare(Comparison::Equal, a, b) if b.is_constant() => self.equal(a, vec![self.value(b)?])?,
            Node::Compare(Comparison::Equal, a, b) if a.is_constant() => self.equal(b, vec![self.value(a)?])?,
            Node::InList(a, items, false) if items.iter().all(Expr::is_constant) => {
                let items = items.iter().map(|item| self.value(item));
                self.equal(a, items.collect::<Result<_>>()?)?
            }
            Node::Quantified {
                op: Comparison::Equal,
                arg,
                array,
                all: false,
            } => self.quantified(arg, array)?,
            Node::Call { function, args, .. } => match args.as_slice() {
                [a, b] => self.called(function.name, (a, b), condition)?,
                _ => Wanted::Unknown,
            },
            _ => Wanted::Unknown,
        })
    }

    /// Where an expression is equal to one of some values.
    fn equal(&self, of: &Expr, values: Vec<Value>) -> Result<Wanted> {
        let is_one = |items| matches!(items, Items::Values | Items::Elements | Items::Trigrams);
        let Some(at) = self.part(of, is_one) else {
            return Ok(Wanted::Unknown);
        };
        let each = values.into_iter().filter(|value| !matches!(value, Value::Null));
        let each = each.map(|value| {
            Ok(match (self.own.items[at], value) {
                (Items::Trigrams, Value::String(text)) => {
                    let keys = trigrams::keys(&text, KEYS_MAX)?;
                    Wanted::all_keys(keys.into_iter().map(|own| of_trigram(at, own)).collect())
                }
                (Items::Elements, Value::Array(items)) => Wanted::all_keys(elements(at, &of.ty(), items)),
                (Items::Values, value) => Wanted::key(of_value(at, &of.ty(), value)),
                _ => Wanted::Unknown,
            })
        });
        Ok(Wanted::AtLeast(1, each.collect::<Result<_>>()?))
    }

    /// Where something is an element of an array: one of the row in one that is known, or the other way round.
    fn quantified(&self, arg: &Expr, array: &Expr) -> Result<Wanted> {
        if arg.is_constant() {
            let Some(at) = self.part(array, |items| items == Items::Elements) else {
                return Ok(Wanted::Unknown);
            };
            let element = array.ty().element().cloned().unwrap_or(Type::Unknown);
            return Ok(match self.value(arg)? {
                Value::Null => Wanted::any_key(Vec::new()),
                value => Wanted::key(of_value(at, &element, value)),
            });
        }
        if !array.is_constant() {
            return Ok(Wanted::Unknown);
        }
        match self.value(array)? {
            Value::Array(items) => self.equal(arg, items.iter().map(|item| item.to_value()).collect()),
            _ => Ok(Wanted::any_key(Vec::new())),
        }
    }

    /// What an operator asks for.
    fn called(&self, operator: &str, (a, b): (&Expr, &Expr), condition: &Expr) -> Result<Wanted> {
        if let Some((vector, query)) = is_search(condition) {
            let at = self.part(vector, |items| items == Items::Lexemes);
            return Ok(match at.filter(|_| query.is_constant()) {
                None => Wanted::Unknown,
                Some(at) => match self.value(query)? {
                    Value::Null => Wanted::any_key(Vec::new()),
                    query => match TsQuery::of(&query)?.root {
                        None => Wanted::any_key(Vec::new()),
                        Some(root) => Wanted::of_query(at, &root),
                    },
                },
            });
        }
        // The operand that the index has, what it is compared with, and the operator that has it on its left.
        let (own, asked, operator) = match (b.is_constant(), operator) {
            (true, "@>" | "&&" | "?" | "?|" | "?&" | "%" | "%>" | "%>>") => (a, b, operator),
            (false, "&&" | "%") if a.is_constant() => (b, a, operator),
            (false, "<@") if a.is_constant() => (b, a, "@>"),
            (false, "<%") if a.is_constant() => (b, a, "%>"),
            (false, "<<%") if a.is_constant() => (b, a, "%>>"),
            _ => return Ok(Wanted::Unknown),
        };
        let is_one = |items: Items| match operator {
            "@>" => matches!(items, Items::Elements | Items::Paths | Items::Json),
            "&&" => items == Items::Elements,
            "?" | "?|" | "?&" => items == Items::Json,
            _ => items == Items::Trigrams,
        };
        let Some(at) = self.part(own, is_one) else {
            return Ok(Wanted::Unknown);
        };
        Ok(match (operator, self.value(asked)?) {
            (_, Value::Null) => Wanted::any_key(Vec::new()),
            ("@>", value) if matches!(own.ty(), Type::Jsonb) => {
                let mut keys = Vec::new();
                scalars(value.as_ref(), &path(at), &mut |key| keys.push(key));
                Wanted::all_keys(keys)
            }
            ("@>", Value::Array(items)) => Wanted::all_keys(elements(at, &own.ty(), items)),
            ("&&", Value::Array(items)) => Wanted::any_key(elements(at, &own.ty(), items)),
            ("?", Value::String(name)) => Wanted::key(of_name(at, &name)),
            ("?|" | "?&", Value::Array(items)) => {
                let all = items.iter().filter_map(ValueRef::as_str).map(|name| of_name(at, name));
                match operator {
                    "?|" => Wanted::any_key(all.collect()),
                    _ => Wanted::all_keys(all.collect()),
                }
            }
            (_, Value::String(text)) => {
                let thresholds = style::thresholds();
                let least = match operator {
                    "%" => thresholds.similar(),
                    "%>" => thresholds.word(),
                    _ => thresholds.strict(),
                };
                let (all, keys) = (trigrams::of(&text)?.len(), trigrams::keys(&text, KEYS_MAX)?);
                // Those in common are so many of all that both have, which are no fewer than these; numbers are rounded.
                let common = (least * all as f64 * (1.0 - 1e-6)).ceil() as usize;
                // Several may have one key.
                let common = common.saturating_sub(all - keys.len()).max(1);
                let keys = keys.into_iter().map(|own| Wanted::key(of_trigram(at, own)));
                match least > 0.0 {
                    true => Wanted::AtLeast(common, keys.collect()),
                    // Texts that have nothing in common are similar, too.
                    false => Wanted::Unknown,
                }
            }
            _ => Wanted::Unknown,
        })
    }
}

/// The fewest keys of which a row has one that has what is wanted; `None` where it may have none of those that are asked for.
fn fewest(wanted: Wanted, count: &dyn Fn(&[Interval]) -> Result<u64>) -> Result<Option<Vec<Interval>>> {
    let (least, parts) = match wanted {
        Wanted::Unknown => return Ok(None),
        Wanted::Keys(interval) => return Ok(Some(vec![interval])),
        Wanted::AtLeast(least, parts) => (least, parts),
    };
    let (mut known, mut unknown) = (Vec::new(), 0);
    for part in parts {
        match fewest(part, count)? {
            Some(own) => known.push(own),
            None => unknown += 1,
        }
    }
    let Some(least) = least.checked_sub(unknown).filter(|least| *least > 0) else {
        return Ok(None);
    };
    // Who has so many of them has one of these.
    let taken = (known.len() + 1).saturating_sub(least);
    if taken < known.len() {
        known.sort_by_key(Vec::len);
        let mut counted = Vec::new();
        for (at, own) in known.into_iter().enumerate() {
            let entries = match own.len() {
                ..=COUNTED_MAX if at < COUNTED_MAX => count(&own)?,
                _ => u64::MAX,
            };
            counted.push((entries, own));
        }
        counted.sort_by_key(|(entries, _)| *entries);
        known = counted.into_iter().map(|(_, own)| own).take(taken).collect();
    }
    Ok(Some(known.into_iter().flatten().collect()))
}

/// The entries of an inverted index of which the rows have one of which conditions hold, and how many these are, if that was counted; `None` when no
/// condition is about what the index has, or when it costs less to read all.
///
/// Errors: those of the values.
pub fn bounds(
    (index, own): (&Arc<IndexInfo>, &Indexed),
    conditions: &[Expr],
    table: &Table,
    (env, view): (&Env<'_>, &dyn View),
    collection: &Arc<Collection>,
) -> Result<Option<(IndexBounds, Option<u64>)>> {
    let asking = Asking { own, table, env };
    let wanted = conditions.iter().map(|condition| asking.wanted(condition));
    let wanted = Wanted::all(wanted.collect::<Result<_>>()?);
    let bounds = |intervals: Vec<Interval>| {
        let mut bounds = IndexBounds::all(index);
        if let Some(part) = bounds.parts.first_mut() {
            *part = IntervalList::union_of(intervals);
        }
        bounds
    };
    let count = |intervals: &[Interval]| -> Result<u64> {
        let mut sum: u64 = 0;
        for interval in intervals {
            let plan = entries(index, bounds(vec![interval.clone()]), false, true);
            let own = least_entries(&[plan], collection, view)?;
            sum = sum.saturating_add(own.map_or(u64::MAX, |own| own.count));
        }
        Ok(sum)
    };
    let Some(mut found) = fewest(wanted, &count)? else {
        return Ok(None);
    };
    if found.is_empty() {
        let mut none = IndexBounds::all(index);
        none.parts.iter_mut().for_each(|part| *part = IntervalList::none());
        return Ok(Some((none, Some(0))));
    }
    if found.len() > INTERVALS_MAX {
        return Ok(None);
    }
    let documents = collection.state.documents();
    let mut counted = None;
    if documents >= COSTED_MIN {
        let entries = count(&found)?;
        // Where much is found it costs less to read all.
        if entries as f64 * FETCH_COST > documents as f64 {
            return Ok(None);
        }
        counted = Some(entries);
    }
    found.push(Interval::point(TOO_MANY));
    Ok(Some((bounds(found), counted)))
}
