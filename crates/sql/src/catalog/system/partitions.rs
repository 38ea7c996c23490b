//! Partitions in the catalogs: keys, bounds, which table and which index is a part of which.

use super::deparse::{self, Place};
use super::indexes::{indexdef, is_primary, numbers};
use super::{Facts, IndexFacts, Relation, Row, classes, oid, text};
use crate::catalog::partition::{Bound, End, Keys, literal};
use crate::types::Type;
use crate::types::compare::compare;
use nestor_model::{Array, Result, Value};
use std::collections::HashMap;

/// What a partition is, as catalogs show it.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The OID of its table.
    pub parent: u32,
    /// Its bound.
    pub bound: String,
    /// It has the rows of no other partition.
    pub is_default: bool,
    /// What its bound is as a condition; `None` of one that all rows meet.
    pub condition: Option<String>,
}

/// The rows of the catalogs that are about partitions alone.
///
/// Errors: those of [`Facts::relations`].
pub(super) fn rows(name: &str, facts: &dyn Facts) -> Result<Option<Vec<Row>>> {
    Ok(Some(match name {
        "pg_partitioned_table" => {
            let relations = facts.relations()?;
            relations
                .iter()
                .filter_map(|own| partitioned(own, &relations))
                .collect()
        }
        "pg_inherits" => {
            let relations = facts.relations()?;
            let tables = relations
                .iter()
                .filter_map(|own| Some((own.oid, own.partition.as_ref()?.parent)));
            let indexes = index_parents(&relations).into_iter();
            let row = |(child, parent): (u32, u32)| {
                vec![
                    ("inhrelid", oid(child)),
                    ("inhparent", oid(parent)),
                    ("inhseqno", Value::Int32(1)),
                    ("inhdetachpending", Value::Bool(false)),
                ]
            };
            tables.chain(indexes).map(row).collect()
        }
        _ => return Ok(None),
    }))
}

fn partitioned(relation: &Relation, all: &[Relation]) -> Option<Row> {
    let division = relation.table.division.as_ref()?;
    let part = |of: fn(&Relation, &str) -> Value| {
        let each = division.parts.iter().map(|part| match &part.column {
            Some(column) => of(relation, column),
            None => Value::Int64(0),
        });
        Value::Array(Array::new(each.collect()))
    };
    let default = all.iter().find(|other| {
        let of = other.partition.as_ref();
        of.is_some_and(|of| of.parent == relation.oid && of.is_default)
    });
    let columns = division.parts.iter().map(|part| {
        let column = part.column.as_deref();
        let at = column.and_then(|column| relation.table.columns.iter().position(|own| own.name == *column));
        at.map_or(0, |at| i32::try_from(at + 1).unwrap_or(0))
    });
    let expressions: Vec<&str> = division
        .parts
        .iter()
        .filter(|part| part.column.is_none())
        .map(|part| part.text.as_str())
        .collect();
    Some(vec![
        ("partrelid", oid(relation.oid)),
        ("partstrat", text(division.strategy.letter())),
        (
            "partnatts",
            Value::Int32(i32::try_from(division.parts.len()).unwrap_or(0)),
        ),
        ("partdefid", oid(default.map_or(0, |own| own.oid))),
        ("partattrs", numbers(columns)),
        (
            "partclass",
            part(|relation, name| {
                let ty = relation.table.column(name).map_or(Type::Unknown, |own| own.ty.clone());
                oid(classes::of(classes::BTREE, &ty))
            }),
        ),
        (
            "partcollation",
            part(|relation, name| oid(relation.table.column(name).map_or(0, |own| own.collation()))),
        ),
        (
            "partexprs",
            match expressions.is_empty() {
                true => Value::Null,
                false => text(expressions.join(", ")),
            },
        ),
    ])
}

/// What an index is on, whatever it and its table are called.
fn shape(relation: &Relation, index: &IndexFacts) -> (bool, String) {
    let text = indexdef(relation, index);
    let what = text.split_once(" USING ").map_or("", |(_, what)| what);
    let unique = if index.unique { "unique " } else { "" };
    (is_primary(relation, index), format!("{unique}{what}"))
}

/// The indexes of partitions that are one of their tables, each with that.
pub(super) fn index_parents(relations: &[Relation]) -> Vec<(u32, u32)> {
    let by_oid: HashMap<u32, &Relation> = relations.iter().map(|own| (own.oid, own)).collect();
    let mut shapes: HashMap<u32, HashMap<(bool, String), u32>> = HashMap::new();
    let mut out = Vec::new();
    for child in relations {
        let Some(parent) = child.partition.as_ref().and_then(|of| by_oid.get(&of.parent)) else {
            continue;
        };
        let of_parent = shapes.entry(parent.oid).or_insert_with(|| {
            let each = parent.indexes.iter().map(|index| (shape(parent, index), index.oid));
            each.collect()
        });
        let mut taken: Vec<u32> = Vec::new();
        for index in &child.indexes {
            let found = of_parent.get(&shape(child, index)).filter(|own| !taken.contains(own));
            if let Some(found) = found {
                taken.push(*found);
                out.push((index.oid, *found));
            }
        }
    }
    out
}

/// What functions tell of partitions, by OID.
///
/// Errors: those of [`Facts::relations`].
pub(super) fn texts(function: &str, facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let relations = facts.relations()?;
    Ok(match function {
        "pg_get_partkeydef" => {
            let all = relations.iter();
            let path = facts.path();
            all.filter_map(|own| {
                let mut division = (**own.table.division.as_ref()?).clone();
                for part in division.parts.iter_mut().filter(|part| part.column.is_none()) {
                    let place = Place::of(&own.table.columns, &path);
                    part.text = deparse::condition(&part.text, place).unwrap_or_else(|| part.text.clone());
                }
                Some((i64::from(own.oid), division.shown()))
            })
            .collect()
        }
        "pg_get_partition_constraintdef" => {
            let by_oid: HashMap<u32, &Relation> = relations.iter().map(|own| (own.oid, own)).collect();
            let mut out = Vec::new();
            for relation in relations.iter() {
                let mut all = Vec::new();
                let mut next = relation.partition.as_ref();
                while let Some(own) = next {
                    all.extend(own.condition.clone());
                    next = by_oid.get(&own.parent).and_then(|above| above.partition.as_ref());
                }
                all.reverse();
                match all.as_slice() {
                    [] => {}
                    [only] => out.push((i64::from(relation.oid), only.clone())),
                    // Those of several levels stand beside each other.
                    all => {
                        let inner: Vec<&str> = all.iter().map(|own| inside(own)).collect();
                        out.push((i64::from(relation.oid), format!("({})", inner.join(" AND "))));
                    }
                }
            }
            out
        }
        // The table above, and whether it has no partitions itself.
        _ => {
            let mut out = Vec::new();
            for relation in relations.iter() {
                let is_divided = relation.table.division.is_some();
                let parent = relation.partition.as_ref().map(|own| own.parent);
                if is_divided || parent.is_some() {
                    let leaf = if is_divided { "f" } else { "t" };
                    out.push((i64::from(relation.oid), format!("{} {leaf}", parent.unwrap_or(0))));
                }
            }
            let divided = |number: u32| {
                let mut all = relations.iter().filter(|own| own.table.division.is_some());
                all.any(|own| own.indexes.iter().any(|index| index.oid == number))
            };
            let parents = index_parents(&relations);
            let below: HashMap<u32, u32> = parents.iter().copied().collect();
            for relation in relations.iter() {
                for index in &relation.indexes {
                    let parent = below.get(&index.oid);
                    let is_divided = relation.table.division.is_some() && divided(index.oid);
                    if parent.is_some() || is_divided {
                        let leaf = if is_divided { "f" } else { "t" };
                        out.push((i64::from(index.oid), format!("{} {leaf}", parent.copied().unwrap_or(0))));
                    }
                }
            }
            out
        }
    })
}

/// A conjunction without the parentheses around it.
fn inside(condition: &str) -> &str {
    let inner = condition.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let is_list = |inner: &&str| inner.starts_with('(') && inner.contains(") AND (");
    inner.filter(is_list).unwrap_or(condition)
}

/// A value with its type, as conditions have it.
fn constant(ty: &Type, value: &Value) -> String {
    let text = literal(ty, value);
    let name = match ty {
        Type::Varchar => Type::Text.to_string(),
        ty => ty.to_string(),
    };
    match text.starts_with('\'') {
        true => format!("{text}::{name}"),
        false => text,
    }
}

fn compared(key: &str, sign: &str, ty: &Type, value: &Value) -> String {
    let key = match ty {
        Type::Varchar => format!("({key})::text"),
        _ => key.to_owned(),
    };
    format!("({key} {sign} {})", constant(ty, value))
}

fn joined(all: &[String], word: &str) -> String {
    match all {
        [only] => only.clone(),
        all => format!("({})", all.join(&format!(" {word} "))),
    }
}

/// What is beyond one end of a range.
fn beyond(names: &[String], types: &[Type], ends: &[End], is_first: bool) -> Option<String> {
    let (inner, last) = if is_first { (">", ">=") } else { ("<", "<") };
    let (name, ty, End::At(value)) = (names.first()?, types.first()?, ends.first()?) else {
        return None;
    };
    if names.len() == 1 {
        return Some(compared(name, last, ty, value));
    }
    let mut equal = vec![compared(name, "=", ty, value)];
    match (ends.get(1), is_first) {
        (Some(End::Max), false) => return Some(joined(&[compared(name, "<=", ty, value)], "OR")),
        (Some(End::Min), true) => return Some(joined(&[compared(name, ">=", ty, value)], "OR")),
        (Some(End::Min), false) => return Some(compared(name, "<", ty, value)),
        (Some(End::Max), true) => return Some(compared(name, ">", ty, value)),
        _ => {}
    }
    equal.extend(beyond(&names[1..], &types[1..], &ends[1..], is_first));
    Some(joined(&[compared(name, inner, ty, value), joined(&equal, "AND")], "OR"))
}

/// A bound as a condition.
pub fn condition((parent, names): (u32, &[String]), keys: &Keys, bound: &Bound, others: &[Bound]) -> Option<String> {
    let there = || -> Vec<String> { names.iter().map(|name| format!("({name} IS NOT NULL)")).collect() };
    match bound {
        Bound::Default => {
            let all: Vec<Bound> = others
                .iter()
                .filter(|own| !matches!(own, Bound::Default))
                .cloned()
                .collect();
            if all.is_empty() {
                return None;
            }
            if let [Bound::List { .. }, ..] = all.as_slice() {
                let mut merged = (Vec::new(), false);
                for own in &all {
                    if let Bound::List { values, null } = own {
                        merged.0.extend(values.iter().cloned());
                        merged.1 |= null;
                    }
                }
                let whole = Bound::List {
                    values: merged.0,
                    null: merged.1,
                };
                return Some(format!("(NOT {})", condition((parent, names), keys, &whole, &[])?));
            }
            let each: Vec<String> = all.iter().filter_map(|own| ranged(names, keys, own)).collect();
            let mut parts = there();
            parts.push(joined(&each, "OR"));
            Some(format!("(NOT {})", joined(&parts, "AND")))
        }
        Bound::List { values, null } => {
            let (name, ty) = (names.first()?, keys.types.first()?);
            let equal = match values.as_slice() {
                [] => None,
                [only] => Some(compared(name, "=", ty, only)),
                all => {
                    let items: Vec<String> = all.iter().map(|own| constant(ty, own)).collect();
                    let key = match ty {
                        Type::Varchar => format!("({name})::text"),
                        _ => name.clone(),
                    };
                    Some(format!("({key} = ANY (ARRAY[{}]))", items.join(", ")))
                }
            };
            Some(match (equal, null) {
                (Some(equal), false) => format!("(({name} IS NOT NULL) AND {equal})"),
                (Some(equal), true) => format!("(({name} IS NULL) OR {equal})"),
                (None, _) => format!("({name} IS NULL)"),
            })
        }
        Bound::Range { .. } => {
            let mut parts = there();
            parts.extend(ends(names, keys, bound));
            Some(joined(&parts, "AND"))
        }
        Bound::Hash { modulus, remainder } => Some(format!(
            "satisfies_hash_partition('{parent}'::oid, {modulus}, {remainder}, {})",
            names.join(", ")
        )),
    }
}

fn ends(names: &[String], keys: &Keys, bound: &Bound) -> Vec<String> {
    let Bound::Range { from, to } = bound else {
        return Vec::new();
    };
    // What both ends have in common.
    let mut out = Vec::new();
    for (at, ty) in keys.types.iter().enumerate() {
        if let (Some(End::At(a)), Some(End::At(b))) = (from.get(at), to.get(at))
            && at + 1 < names.len()
            && compare(ty, a, b).is_eq()
        {
            out.push(compared(&names[at], "=", ty, a));
            continue;
        }
        out.extend(beyond(&names[at..], &keys.types[at..], &from[at..], true));
        out.extend(beyond(&names[at..], &keys.types[at..], &to[at..], false));
        break;
    }
    out
}

fn ranged(names: &[String], keys: &Keys, bound: &Bound) -> Option<String> {
    let all = ends(names, keys, bound);
    (!all.is_empty()).then(|| joined(&all, "AND"))
}
