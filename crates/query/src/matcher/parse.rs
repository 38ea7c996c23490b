//! Parsing filter documents: logical and other top-level operators. Fields are `parse_field`'s.

use super::{ExprTest, InSet, MatchExpr, Predicate};
use crate::env::Scope;
use crate::expr::{Expr, script};
use crate::geo::Near;
use crate::json_schema::Schema;
use crate::text::{TextQuery, TextTest};
use nestor_model::number::Num;
use nestor_model::{DocRef, Error, Path, Result, ValueRef, bail};
use std::sync::Arc;

/// The context in which a filter is parsed.
pub(super) struct Parser<'s> {
    pub(super) scope: &'s mut Scope,
    pub(super) context: Context,
    /// False inside `$elemMatch`, where operators on the whole document are refused.
    pub(super) at_top: bool,
    /// How many `$near` and `$nearSphere` there are so far.
    pub(super) nears: usize,
    /// How many `$text` there are so far.
    texts: usize,
}

/// Where a filter stands: which operators it may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// find, count, delete, update, findAndModify.
    Find,
    /// `$match` and other places inside pipelines: no `$near` (5626500).
    Pipeline,
    /// A collection's validator, the filter of a partial index, and filters of what is in no collection (databases, profiled
    /// operations): no `$near` (5626500), `$text`, `$where` (2).
    Validator,
    /// Conditions on an element (`$pull`, `arrayFilters`): nothing on the whole document.
    Element,
}

impl MatchExpr {
    /// Parses a filter, whose strings compare by the scope's collator.
    ///
    /// # Errors
    /// 2 (BadValue) for most faults; 9, 14, 51074, 51075, 51091, 51108 as MongoDB for some operands.
    pub fn parse(filter: DocRef<'_>, scope: &mut Scope) -> Result<Self> {
        Self::parse_in(filter, scope, Context::Find)
    }

    /// Parses a filter with the operators that `context` allows.
    pub fn parse_in(filter: DocRef<'_>, scope: &mut Scope, context: Context) -> Result<Self> {
        scope.refuse_scripts(context == Context::Validator);
        let mut parser = Parser {
            scope,
            context,
            at_top: context != Context::Element,
            nears: 0,
            texts: 0,
        };
        let parsed = parser.document(filter)?;
        match parser.nears {
            0 => {}
            1 if parsed.near().is_some() => {}
            1 => bail!(BadValue, "geoNear must be top-level expr"),
            _ => bail!(BadValue, "Too many geoNear expressions"),
        }
        match (parser.texts, parser.nears) {
            (0, _) | (1, 0) => {}
            (1, _) => bail!(BadValue, "text and geoNear not allowed in same query"),
            _ => bail!(BadValue, "Too many text expressions"),
        }
        Ok(parsed)
    }

    /// The path and the operand of the `$near` or `$nearSphere` that all else is combined with.
    pub fn near(&self) -> Option<(&Path, &Arc<Near>)> {
        match self {
            Self::Leaf(leaf) => match &leaf.predicate {
                Predicate::Near(near) => Some((&leaf.path, near)),
                _ => None,
            },
            Self::And(all) => all.iter().find_map(Self::near),
            _ => None,
        }
    }

    /// Parses conditions on an element: [`Context::Element`].
    pub fn parse_for_element(filter: DocRef<'_>, scope: &mut Scope) -> Result<Self> {
        Self::parse_in(filter, scope, Context::Element)
    }
}

impl Parser<'_> {
    /// An `$and` of the document's fields; a single condition stands for itself.
    pub(super) fn document(&mut self, doc: DocRef<'_>) -> Result<MatchExpr> {
        let mut children = Vec::new();
        for (name, value) in doc {
            match name.strip_prefix('$') {
                // Fields of a DBRef are fields.
                None | Some("ref" | "id" | "db") => self.field(&Path::new(name), value, &mut children)?,
                Some(operator) => children.extend(self.top_level(operator, value)?),
            }
        }
        Ok(and(children))
    }

    fn top_level(&mut self, operator: &str, value: ValueRef<'_>) -> Result<Option<MatchExpr>> {
        Ok(Some(match operator {
            "and" => match self.list("$and", value)? {
                mut one if one.len() == 1 => one.remove(0),
                many => MatchExpr::And(many),
            },
            "or" => MatchExpr::Or(self.list("$or", value)?),
            "nor" => {
                let texts = self.texts;
                let children = self.list("$nor", value)?;
                if self.texts > texts {
                    bail!(BadValue, "text expression not allowed in nor");
                }
                MatchExpr::Nor(children)
            }
            "comment" => return Ok(None),
            "alwaysTrue" => {
                one(operator, value)?;
                MatchExpr::AlwaysTrue
            }
            "alwaysFalse" => {
                one(operator, value)?;
                MatchExpr::AlwaysFalse
            }
            "sampleRate" => sample_rate(value)?,
            "where" | "expr" | "text" => self.whole_document(operator, value)?,
            "jsonSchema" => match value {
                ValueRef::Document(schema) => MatchExpr::JsonSchema(Arc::new(Schema::parse(schema)?)),
                _ => bail!(TypeMismatch, "$jsonSchema must be an object"),
            },
            _ => return Err(unknown_top_level(operator)),
        }))
    }

    /// Operators that read the whole document.
    fn whole_document(&mut self, operator: &str, value: ValueRef<'_>) -> Result<MatchExpr> {
        if !self.at_top {
            bail!(BadValue, "${operator} can only be applied to the top-level document");
        }
        match operator {
            "where" | "text" if self.context == Context::Validator => {
                bail!(BadValue, "${operator} is not allowed in this context")
            }
            "where" if self.context == Context::Pipeline => {
                bail!(BadValue, "$where is not allowed in this context")
            }
            "where" => {
                let (expr, source) = script::of_where(value, self.scope)?;
                Ok(MatchExpr::Expr(Arc::new(ExprTest { expr, source })))
            }
            "expr" => {
                let test = ExprTest {
                    expr: Expr::parse(value, self.scope)?,
                    source: value.to_value(),
                };
                // A condition that needs no document is decided now, unless it may differ from call to call.
                Ok(match test.expr.constant().map(|v| v.truthy()) {
                    Some(true) => MatchExpr::AlwaysTrue,
                    Some(false) => MatchExpr::AlwaysFalse,
                    None => match self.uncollated_in(&test.expr) {
                        Some(also) => MatchExpr::And(vec![also, MatchExpr::Expr(Arc::new(test))]),
                        None => MatchExpr::Expr(Arc::new(test)),
                    },
                })
            }
            "text" => {
                self.texts += 1;
                Ok(MatchExpr::Text(TextTest::new(TextQuery::parse(value)?)))
            }
            _ => Err(unknown_top_level(operator)),
        }
    }

    /// MongoDB narrows `$expr: {$in: ["$path", [..]]}` by `{path: {$in: [..]}}`, and forgets the collation there. So a
    /// document has to match under both.
    fn uncollated_in(&self, expr: &Expr) -> Option<MatchExpr> {
        self.scope.collator()?;
        let ("$in", [item, list]) = expr.call()? else {
            return None;
        };
        let values = list.constant()?.as_array()?.iter().map(ValueRef::to_value).collect();
        let set = InSet::new(values, Vec::new(), None);
        Some(MatchExpr::leaf(item.field_path()?.clone(), Predicate::In(set)))
    }

    fn list(&mut self, operator: &str, value: ValueRef<'_>) -> Result<Vec<MatchExpr>> {
        let ValueRef::Array(items) = value else {
            bail!(
                BadValue,
                "{operator} argument must be an array, but got {}",
                value.bson_type().alias()
            );
        };
        let mut children = Vec::new();
        for item in items {
            let ValueRef::Document(doc) = item else {
                bail!(
                    BadValue,
                    "{operator} argument's entries must be objects, but got {}",
                    item.bson_type().alias()
                );
            };
            children.push(self.document(doc)?);
        }
        if children.is_empty() {
            bail!(BadValue, "{operator} argument must be a non-empty array");
        }
        Ok(children)
    }
}

/// An `$and`, or what stands for one of none or one.
pub(super) fn and(mut children: Vec<MatchExpr>) -> MatchExpr {
    match children.len() {
        0 => MatchExpr::AlwaysTrue,
        1 => children.remove(0),
        _ => MatchExpr::And(children),
    }
}

fn one(operator: &str, value: ValueRef<'_>) -> Result<()> {
    if nestor_model::number::whole_number(value) != Some(1) {
        bail!(FailedToParse, "${operator} must be 1");
    }
    Ok(())
}

fn sample_rate(value: ValueRef<'_>) -> Result<MatchExpr> {
    let Some(rate) = Num::from_ref(value).map(Num::to_f64) else {
        bail!(BadValue, "argument to $sampleRate must be a numeric type");
    };
    if !(0.0..=1.0).contains(&rate) {
        bail!(BadValue, "numeric argument to $sampleRate must be in [0, 1]");
    }
    Ok(MatchExpr::SampleRate(rate))
}

/// The error of an operator that stands where no field is named, and is none of those that may.
fn unknown_top_level(operator: &str) -> Error {
    Error::bad_value(format!(
        "unknown top level operator: ${operator}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
    ))
}
