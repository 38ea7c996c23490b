//! What filters of `$vectorSearch` may say, and which entries pass them.
//!
//! Filters are those of MQL with a few operators only, on fields that the definition has for filters, whose values are kept in columns. Other
//! than in MQL null is a value like others: it does not stand for fields that are not there.

use super::bits::Bits;
use super::column::{Column, is_seen};
use super::definition::{Definition, Level};
use super::query::parse_filter;
use super::read;
use nestor_model::statement::work;
use nestor_model::{ArrayRef, BsonType, DocRef, Error, ErrorCode, Result, ValueRef, bail};
use nestor_query::env::OpContext;
use nestor_query::matcher::{Leaf, MatchExpr, Predicate};

/// A filter, checked against the definition of the index.
pub struct Filter {
    expr: MatchExpr,
    context: OpContext,
}

impl Filter {
    /// Checks a filter.
    ///
    /// Errors: 8 for operators, values and fields that are not for filters here.
    pub fn new(filter: DocRef<'_>, definition: &Definition) -> Result<Self> {
        check(filter, definition)?;
        let expr = parse_filter(filter).map_err(|error| Error::new(ErrorCode::UnknownError, error.message()))?;
        Ok(Self {
            expr,
            context: OpContext::default(),
        })
    }

    /// Which of `count` entries of a level pass, whose values are in `columns`, by filter field of the definition.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn passing(&self, level: Level, definition: &Definition, columns: &[Column], count: usize) -> Result<Bits> {
        Evaluation {
            context: &self.context,
            level,
            definition,
            columns,
            count,
        }
        .passing(&self.expr)
    }
}

struct Evaluation<'a> {
    context: &'a OpContext,
    level: Level,
    definition: &'a Definition,
    /// By filter field of the definition.
    columns: &'a [Column],
    count: usize,
}

impl Evaluation<'_> {
    fn passing(&self, expr: &MatchExpr) -> Result<Bits> {
        work(1 + self.count / 64)?;
        Ok(match expr {
            MatchExpr::AlwaysTrue => Bits::all(self.count),
            MatchExpr::AlwaysFalse => Bits::none(self.count),
            MatchExpr::And(all) => {
                let mut passing = Bits::all(self.count);
                for expr in all {
                    passing.retain(&self.passing(expr)?);
                }
                passing
            }
            MatchExpr::Or(any) => self.any(any)?,
            MatchExpr::Nor(none) => self.any(none)?.not(),
            MatchExpr::Not(expr) => self.passing(expr)?.not(),
            MatchExpr::Leaf(leaf) => self.leaf(leaf)?,
            MatchExpr::Expr(_) | MatchExpr::JsonSchema(_) | MatchExpr::SampleRate(_) | MatchExpr::Text(_) => {
                bail!(UnknownError, "a filter has an operator that is not supported")
            }
        })
    }

    fn any(&self, any: &[MatchExpr]) -> Result<Bits> {
        let mut passing = Bits::none(self.count);
        for expr in any {
            passing.add(&self.passing(expr)?);
        }
        Ok(passing)
    }

    fn leaf(&self, leaf: &Leaf) -> Result<Bits> {
        let mut fields = self.definition.filters.iter().zip(self.columns);
        let column = fields.find(|(field, _)| field.path == leaf.path.as_str() && field.level == self.level);
        // Entries of this level do not have fields of the other one.
        let Some((_, column)) = column else {
            return Ok(Bits::none(self.count));
        };
        if let Predicate::Exists = leaf.predicate {
            return Ok(column.present().clone());
        }
        let mut passing = Bits::none(self.count);
        for entry in 0..self.count {
            let values = column.of(entry);
            work(1 + values.len())?;
            for value in values {
                if leaf.predicate.accepts(value.as_ref(), self.context)? {
                    passing.set(entry);
                    break;
                }
            }
        }
        Ok(passing)
    }
}

fn check(filter: DocRef<'_>, definition: &Definition) -> Result<()> {
    for (name, value) in filter {
        match (name, value) {
            ("$and" | "$or" | "$nor", ValueRef::Array(filters)) if !filters.is_empty() => {
                for filter in filters {
                    match filter {
                        ValueRef::Document(filter) => check(filter, definition)?,
                        other => bail!(
                            UnknownError,
                            "elements of {name} must be documents, not {}",
                            read::kind(other)
                        ),
                    }
                }
            }
            ("$and" | "$or" | "$nor", _) => bail!(UnknownError, "{name} must be an array that is not empty"),
            _ if name.starts_with('$') => bail!(UnknownError, "{name} is not supported in a filter"),
            _ => {
                if !definition.filters.iter().any(|field| field.path == name) {
                    bail!(UnknownError, "path '{name}' needs to be indexed as filter");
                }
                check_field(name, value)?;
            }
        }
    }
    Ok(())
}

fn check_field(name: &str, value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Document(operators) if operators.iter().next().is_some_and(|(name, _)| name.starts_with('$')) => {
            check_operators(name, operators)
        }
        value => check_value(name, value),
    }
}

fn check_operators(field: &str, operators: DocRef<'_>) -> Result<()> {
    for (name, value) in operators {
        match (name, value) {
            ("$eq" | "$ne", value) => check_value(field, value)?,
            ("$gt" | "$gte" | "$lt" | "$lte", ValueRef::Null) => {
                bail!(UnknownError, "{name} of '{field}' in a filter cannot be null")
            }
            ("$gt" | "$gte" | "$lt" | "$lte", value) => check_value(field, value)?,
            ("$in" | "$nin", ValueRef::Array(values)) => check_values(field, name, values)?,
            ("$in" | "$nin", _) => bail!(UnknownError, "{name} of '{field}' in a filter must be an array"),
            ("$exists", ValueRef::Bool(_)) => {}
            ("$exists", _) => bail!(UnknownError, "$exists of '{field}' in a filter must be a boolean"),
            ("$not", ValueRef::Document(operators)) if !operators.is_empty() => check_operators(field, operators)?,
            ("$not", _) => bail!(
                UnknownError,
                "$not of '{field}' in a filter must be a document of operators"
            ),
            _ => bail!(UnknownError, "{name} of '{field}' is not supported in a filter"),
        }
    }
    Ok(())
}

fn check_value(field: &str, value: ValueRef<'_>) -> Result<()> {
    match is_seen(value) {
        true => Ok(()),
        false => bail!(
            UnknownError,
            "the filter of '{field}' has a value of type {}, which is not supported",
            read::kind(value)
        ),
    }
}

/// The values of `$in`: at least one, of one type, numbers being of one.
fn check_values(field: &str, operator: &str, values: ArrayRef<'_>) -> Result<()> {
    let mut first = None;
    for value in values {
        work(1)?;
        check_value(field, value)?;
        let kind = match value.bson_type() {
            BsonType::Null => bail!(UnknownError, "{operator} of '{field}' in a filter cannot have null"),
            kind if kind.is_number() => BsonType::Double,
            kind => kind,
        };
        if *first.get_or_insert(kind) != kind {
            bail!(
                UnknownError,
                "the values of {operator} of '{field}' in a filter must be of one type"
            );
        }
    }
    match first {
        Some(_) => Ok(()),
        None => bail!(UnknownError, "{operator} of '{field}' in a filter must not be empty"),
    }
}
