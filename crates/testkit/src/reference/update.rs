//! Update operators on owned values.
//!
//! One recursion over the document; the operators that concern a place are carried along as a list.
//! Source: manual, "Update Operators".

use nestor_model::number::Num;
use nestor_model::{Array, Document, Value, ValueRef, compare, values_equal};
use std::cmp::Ordering;

/// An error code.
pub type Code = i32;

/// One operator with its path and operand.
#[derive(Clone, Debug)]
struct Op<'u> {
    name: &'u str,
    path: Vec<&'u str>,
    operand: ValueRef<'u>,
    /// The value that `$rename` moves, at its target.
    moved: Option<Value>,
}

/// Applies an update of operators (which must be well-formed) to a document. `position` is what `$`
/// stands for; `filters` are array filters of the form `{id: {$gte: n}}`.
///
/// # Errors
/// The error code.
pub fn apply(
    doc: &Document,
    update: &Document,
    position: Option<usize>,
    filters: &[(&str, i32)],
) -> Result<Document, Code> {
    let mut ops = Vec::new();
    for (name, operand) in update.iter() {
        for (field, operand) in operand.as_document().ok_or(9)? {
            ops.push(Op {
                name,
                path: field.split('.').collect(),
                operand,
                moved: None,
            });
            if name == "$rename" {
                ops.push(Op {
                    name: "target",
                    path: operand.as_str().ok_or(2)?.split('.').collect(),
                    operand,
                    moved: None,
                });
            }
        }
        // A later operator is only parsed once the former ones were found free of conflicts.
        check_conflicts(&ops)?;
    }
    check_conflicts(&ops)?;
    for i in 0..ops.len() {
        if ops[i].name == "$rename" {
            let moved = source(doc, &ops[i].path)?;
            if moved.is_some() {
                crossing(doc, &ops[i + 1].path)?;
            }
            ops[i + 1].moved = moved;
        }
    }
    let state = State { position, filters };
    let paths: Vec<(&[&str], &Op<'_>)> = ops.iter().map(|op| (op.path.as_slice(), op)).collect();
    let new = state.document(doc, &paths)?;
    let id = |d: &Document| d.get("_id").map(ValueRef::to_value);
    match (id(doc), id(&new)) {
        (None, None) => Ok(new),
        (Some(a), Some(b)) if values_equal(&a, &b) => Ok(new),
        _ => Err(66),
    }
}

fn check_conflicts(ops: &[Op<'_>]) -> Result<(), Code> {
    for (i, a) in ops.iter().enumerate() {
        for b in &ops[..i] {
            let common = a.path.iter().zip(&b.path).take_while(|(x, y)| x == y).count();
            if common == a.path.len() || common == b.path.len() {
                return Err(40);
            }
            // All elements, or those that a filter takes, cannot stand beside a name.
            let selects = |step: &str| step.starts_with("$[");
            if selects(a.path[common]) != selects(b.path[common]) {
                return Err(40);
            }
        }
    }
    Ok(())
}

fn source(doc: &Document, path: &[&str]) -> Result<Option<Value>, Code> {
    beneath(doc.into(), path, false)
}

/// The value that a path leads to. What is found in an array is refused with 2, and what leads nowhere with 28.
fn beneath(value: ValueRef<'_>, path: &[&str], in_array: bool) -> Result<Option<Value>, Code> {
    let (inner, in_array) = match (value, path) {
        (_, []) if in_array => return Err(2),
        (value, []) => return Ok(Some(value.to_value())),
        (ValueRef::Document(doc), [name, ..]) => (doc.get(name), in_array),
        (ValueRef::Array(items), [name, ..]) => match index(name) {
            Some(at) => (items.get(at), true),
            None => return Err(28),
        },
        _ => return Err(28),
    };
    inner.map_or(Ok(None), |inner| beneath(inner, &path[1..], in_array))
}

/// The place in an array that a part of a path says.
fn index(name: &str) -> Option<usize> {
    name.parse().ok().filter(|index: &usize| index.to_string() == name)
}

fn crossing(doc: &Document, path: &[&str]) -> Result<(), Code> {
    match doc.get(path[0]) {
        Some(ValueRef::Document(inner)) if path.len() > 1 => crossing(&inner.to_document(), &path[1..]),
        Some(ValueRef::Array(_)) if path.len() > 1 => Err(2),
        _ => Ok(()),
    }
}

struct State<'u> {
    position: Option<usize>,
    filters: &'u [(&'u str, i32)],
}

type Paths<'p, 'u> = [(&'p [&'u str], &'p Op<'u>)];

/// What happens to a place.
enum Outcome {
    Value(Value),
    Gone,
}

/// First steps, each with the rest of the paths that begin with it and their operations.
type Groups<'p, 'u> = Vec<(String, Vec<(&'p [&'u str], &'p Op<'u>)>)>;

impl State<'_> {
    /// The distinct first steps of `paths`, in order, each with what follows it.
    fn grouped<'p, 'u>(&self, paths: &Paths<'p, 'u>) -> Result<Groups<'p, 'u>, Code> {
        let mut groups: Vec<(String, Vec<_>)> = Vec::new();
        for (path, op) in paths {
            let name = match path[0] {
                "$" => self.position.ok_or(2)?.to_string(),
                name => name.to_owned(),
            };
            match groups.iter_mut().find(|(n, _)| *n == name) {
                Some((_, rest)) => rest.push((&path[1..], *op)),
                None => groups.push((name, vec![(&path[1..], *op)])),
            }
        }
        groups.sort_by(|(a, _), (b, _)| match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(x), Ok(y)) => x.cmp(&y),
            _ => a.cmp(b),
        });
        Ok(groups)
    }

    fn document(&self, doc: &Document, paths: &Paths<'_, '_>) -> Result<Document, Code> {
        let mut new = doc.clone();
        for (name, rest) in self.grouped(paths)? {
            let old = doc.get(&name).map(ValueRef::to_value);
            match self.place(old, &rest)? {
                Outcome::Value(value) => new.set(&name, value),
                Outcome::Gone => drop(new.remove(&name)),
            }
        }
        Ok(new)
    }

    fn array(&self, items: &Array, paths: &Paths<'_, '_>) -> Result<Array, Code> {
        let mut new: Vec<Value> = items.iter().map(ValueRef::to_value).collect();
        let selecting = paths.iter().filter(|(p, _)| p[0].starts_with("$[")).count();
        if selecting == paths.len() {
            for item in &mut new {
                let mut chosen = Vec::new();
                for (path, op) in paths {
                    let id = path[0].trim_start_matches("$[").trim_end_matches(']');
                    let selected = match self.filters.iter().find(|(name, _)| *name == id) {
                        Some((_, least)) => {
                            let reaches = |v: ValueRef<'_>| v.is_number() && at_least(v, *least);
                            reaches(item.as_ref()) || item.as_array().is_some_and(|inner| inner.iter().any(reaches))
                        }
                        None => true,
                    };
                    if selected {
                        chosen.push((&path[1..], *op));
                    }
                }
                if !chosen.is_empty() {
                    *item = match self.place(Some(item.clone()), &chosen)? {
                        Outcome::Value(value) => value,
                        Outcome::Gone => Value::Null,
                    };
                }
            }
            return Ok(new.into_iter().collect());
        }
        if selecting > 0 {
            return Err(40);
        }
        for (name, rest) in self.grouped(paths)? {
            let Some(index) = index(&name) else {
                not_viable(&rest)?;
                continue;
            };
            let old = items.as_ref().get(index).map(ValueRef::to_value);
            match self.place(old, &rest)? {
                Outcome::Value(value) => {
                    while new.len() <= index {
                        new.push(Value::Null);
                    }
                    new[index] = value;
                }
                Outcome::Gone if index < items.len() => new[index] = Value::Null,
                Outcome::Gone => {}
            }
        }
        Ok(new.into_iter().collect())
    }

    /// Applies `paths` to one place, `None` when nothing is there.
    fn place(&self, old: Option<Value>, paths: &Paths<'_, '_>) -> Result<Outcome, Code> {
        if paths.iter().any(|(path, _)| path.is_empty()) {
            if paths.len() > 1 {
                return Err(40);
            }
            return operate(old, paths[0].1);
        }
        let selecting = paths.iter().filter(|(p, _)| p[0].starts_with("$[")).count();
        if selecting > 0 && selecting < paths.len() {
            return Err(40);
        }
        Ok(match old {
            Some(Value::Array(items)) => Outcome::Value(self.array(&items, paths)?.into()),
            _ if selecting > 0 => return Err(2),
            Some(Value::Document(doc)) => Outcome::Value(self.document(&doc, paths)?.into()),
            Some(scalar) => {
                for (_, rest) in self.grouped(paths)? {
                    not_viable(&rest)?;
                }
                Outcome::Value(scalar)
            }
            None => {
                let made = self.document(&Document::new(), paths)?;
                if made.is_empty() {
                    Outcome::Gone
                } else {
                    Outcome::Value(made.into())
                }
            }
        })
    }
}

/// An error unless all operators below can do without the path.
fn not_viable(paths: &Paths<'_, '_>) -> Result<(), Code> {
    let lenient = |op: &Op<'_>| match op.name {
        "$unset" | "$pull" | "$pullAll" | "$setOnInsert" => true,
        "target" => op.moved.is_none(),
        _ => false,
    };
    if paths.iter().all(|(_, op)| lenient(op)) {
        Ok(())
    } else {
        Err(28)
    }
}

fn at_least(v: ValueRef<'_>, least: i32) -> bool {
    compare(v, least) != Ordering::Less && compare(v, f64::NAN) != Ordering::Equal
}

fn operate(old: Option<Value>, op: &Op<'_>) -> Result<Outcome, Code> {
    let operand = op.operand;
    let keep = |old: Option<Value>| match old {
        Some(value) => Ok(Outcome::Value(value)),
        None => Ok(Outcome::Gone),
    };
    let set = |value: ValueRef<'_>| Ok(Outcome::Value(value.to_value()));
    match (op.name, old) {
        ("$set", _) => set(operand),
        ("$setOnInsert", old) => keep(old),
        ("$unset" | "$rename", _) => Ok(Outcome::Gone),
        ("target", old) => match &op.moved {
            Some(value) => Ok(Outcome::Value(value.clone())),
            None => keep(old),
        },
        ("$min" | "$max", None) => set(operand),
        ("$min", Some(old)) if compare(operand, &old).is_lt() => set(operand),
        ("$max", Some(old)) if compare(operand, &old).is_gt() => set(operand),
        ("$min" | "$max", old) => keep(old),
        ("$inc", None) => set(operand),
        ("$inc", Some(old)) => number(old, operand, Num::checked_add),
        ("$mul", None) => number(Value::Int32(0), operand, Num::checked_mul),
        ("$mul", Some(old)) => number(old, operand, Num::checked_mul),
        ("$pop", None) | ("$pull", None) | ("$pullAll", None) => Ok(Outcome::Gone),
        ("$pop", Some(Value::Array(items))) => {
            let mut items: Vec<Value> = items.iter().map(ValueRef::to_value).collect();
            if values_equal(operand, 1) {
                items.pop();
            } else if !items.is_empty() {
                items.remove(0);
            }
            Ok(Outcome::Value(items.into()))
        }
        ("$pop", Some(_)) => Err(14),
        ("$push", None) => Ok(Outcome::Value(vec![operand.to_value()].into())),
        ("$push", Some(Value::Array(mut items))) => {
            items.items_mut().push(operand.to_value());
            Ok(Outcome::Value(items.into()))
        }
        ("$addToSet", None) => Ok(Outcome::Value(vec![operand.to_value()].into())),
        ("$addToSet", Some(Value::Array(mut items))) => {
            if !items.iter().any(|item| values_equal(item, operand)) {
                items.items_mut().push(operand.to_value());
            }
            Ok(Outcome::Value(items.into()))
        }
        ("$pull", Some(Value::Array(items))) => {
            let items: Array = items
                .iter()
                .filter(|item| !values_equal(*item, operand))
                .map(ValueRef::to_value)
                .collect();
            Ok(Outcome::Value(items.into()))
        }
        ("$pullAll", Some(Value::Array(items))) => {
            let gone = operand.as_array().ok_or(2)?;
            let items: Array = items
                .iter()
                .filter(|item| !gone.iter().any(|g| values_equal(*item, g)))
                .map(ValueRef::to_value)
                .collect();
            Ok(Outcome::Value(items.into()))
        }
        _ => Err(2),
    }
}

fn number(old: Value, operand: ValueRef<'_>, combine: fn(Num, Num) -> Option<Num>) -> Result<Outcome, Code> {
    let a = Num::from_ref(old.as_ref()).ok_or(14)?;
    let b = Num::from_ref(operand).ok_or(14)?;
    let new = Value::from(combine(a, b).ok_or(2)?);
    // A result that is the same number of the same type leaves the old bytes.
    if new.bson_type() == old.bson_type() && values_equal(&new, &old) {
        return Ok(Outcome::Value(old));
    }
    Ok(Outcome::Value(new))
}
