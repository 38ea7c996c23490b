//! Printing match expressions as explain's `parsedQuery` does.

use super::{MatchExpr, Predicate};
use nestor_model::{Document, Value, doc};

impl MatchExpr {
    /// The filter this is, operators spelled out.
    pub fn serialize(&self) -> Document {
        match self {
            Self::AlwaysTrue => Document::new(),
            Self::AlwaysFalse => doc! { "$alwaysFalse": 1 },
            Self::And(children) => doc! { "$and": list(children) },
            Self::Or(children) => doc! { "$or": list(children) },
            Self::Nor(children) => doc! { "$nor": list(children) },
            Self::Not(child) => match child.on_one_path() {
                Some((path, operators)) if !matches!(**child, Self::AlwaysTrue | Self::AlwaysFalse) => {
                    let mut out = Document::new();
                    out.push(path, doc! { "$not": operators });
                    out
                }
                _ => doc! { "$nor": list(std::slice::from_ref(&**child)) },
            },
            Self::Leaf(leaf) => {
                let mut out = Document::new();
                out.push(leaf.path.as_str(), leaf.predicate.serialize());
                out
            }
            Self::Expr(test) => doc! { "$expr": test.source.clone() },
            Self::JsonSchema(schema) => doc! { "$jsonSchema": schema.source().clone() },
            Self::SampleRate(rate) => doc! { "$sampleRate": *rate },
            Self::Text(text) => text.serialize(),
        }
    }

    /// The operators of conditions that are all on one path.
    fn on_one_path(&self) -> Option<(&str, Document)> {
        match self {
            Self::Leaf(leaf) => Some((leaf.path.as_str(), leaf.predicate.serialize())),
            Self::Not(child) => {
                let (path, operators) = child.on_one_path()?;
                Some((path, doc! { "$not": operators }))
            }
            Self::And(children) => {
                let mut all: Option<(&str, Document)> = None;
                for child in children {
                    let (path, operators) = child.on_one_path()?;
                    let (common, out) = all.get_or_insert((path, Document::new()));
                    if *common != path {
                        return None;
                    }
                    // An operator may come twice; parsing reads each.
                    for (name, value) in operators.iter() {
                        out.push(name, value);
                    }
                }
                all
            }
            // Within an $elemMatch on values, where constants have no operator of their own.
            Self::AlwaysFalse => Some(("", doc! { "$in": Vec::new() })),
            Self::AlwaysTrue => Some(("", doc! { "$nin": Vec::new() })),
            _ => None,
        }
    }
}

fn list(children: &[MatchExpr]) -> Value {
    Value::Array(children.iter().map(|c| Value::Document(c.serialize())).collect())
}

impl Predicate {
    /// The operators under the path.
    pub fn serialize(&self) -> Document {
        let mut out = Document::new();
        match self {
            Self::Compare { op, value, .. } => out.push(op.name(), value.clone()),
            Self::In(set) => {
                let values = set.values().iter().cloned();
                let regexes = set.regexes().iter().map(|r| {
                    Value::Regex(Box::new(nestor_model::Regex {
                        pattern: r.pattern().into(),
                        options: r.options().into(),
                    }))
                });
                out.push("$in", Value::Array(values.chain(regexes).collect()));
            }
            Self::Regex(regex) => {
                out.push("$regex", regex.pattern());
                if !regex.options().is_empty() {
                    out.push("$options", regex.options());
                }
            }
            Self::Exists => out.push("$exists", true),
            Self::Type(types) => {
                let number = types.has_number_alias().then(|| Value::from("number"));
                let numbers = types.iter().map(|t| {
                    Value::Int32(match t {
                        nestor_model::BsonType::MinKey => -1,
                        other => i32::from(other as u8),
                    })
                });
                out.push("$type", Value::Array(number.into_iter().chain(numbers).collect()));
            }
            Self::Size(size) => out.push("$size", i32::try_from(*size).map_or(Value::Int64(*size), Value::Int32)),
            Self::Mod(test) => out.push("$mod", vec![Value::Int64(test.divisor), Value::Int64(test.remainder)]),
            Self::Bits(test) => out.push(test.op().name(), test.positions_value()),
            Self::Geo(test) => out = test.serialize(),
            Self::Near(near) => out = near.serialize(),
            Self::ElemMatchObject(inner) => out.push("$elemMatch", inner.serialize()),
            Self::ElemMatchValue(inner) => {
                // Parsing puts nothing but conditions on the element there.
                let operators = inner
                    .on_one_path()
                    .map_or_else(|| inner.serialize(), |(_, operators)| operators);
                out.push("$elemMatch", operators);
            }
        }
        out
    }
}
