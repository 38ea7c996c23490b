//! Domains: types whose values are those of another type for which conditions hold.
//!
//! Expressions are never of a domain: columns, variables and arguments that are declared as one give values of the type behind it
//! ([`Type::plain`]). What makes a value one of a domain is a cast, which looks at the conditions ([`Domain::check`]).

use super::Type;
use super::enums::{MADE_ARRAYS, list, shown};
use crate::error::{Field, error, fail, with};
use nestor_model::{Result, Value};
use sqlparser::ast::DataType;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes of a domain as declarations keep it at most, with all that it is made of.
const WRITTEN_BYTES_MAX: usize = 64 << 10;
/// How many domains are over each other at most.
const DEPTH_MAX: usize = 16;

/// A condition that no row, or no value, may make false.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The name of the constraint.
    pub name: String,
    /// The condition.
    pub text: String,
    /// It is known to hold of all rows, and not of those that were written since it is there alone.
    pub is_valid: bool,
}

/// Computes the conditions of a domain.
pub trait Conditions: Send + Sync {
    /// The place of the first condition that a value makes false.
    ///
    /// Errors: those of what they compute.
    fn broken(&self, value: &Value) -> Result<Option<usize>>;
}

/// Who computes the conditions. It is the same for domains that are the same.
#[derive(Clone)]
pub struct Judge(pub Arc<dyn Conditions>);

struct Nobody;

impl Conditions for Nobody {
    fn broken(&self, _: &Value) -> Result<Option<usize>> {
        Ok(None)
    }
}

impl Judge {
    /// Of a domain that is only written down.
    pub fn none() -> Self {
        Self(Arc::new(Nobody))
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

impl PartialEq for Judge {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Judge {}

impl Hash for Judge {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Domain {
    /// Its OID.
    pub oid: u32,
    /// Its name, with its schema if that is not `public`.
    pub name: String,
    /// The type that it is over, which may be another domain.
    pub base: Type,
    /// The modifier of that type; -1 for none.
    pub modifier: i32,
    /// It has no nulls.
    pub not_null: bool,
    /// The text of what columns hold that nobody gives.
    pub default: Option<String>,
    /// Its conditions, by name.
    pub checks: Vec<Check>,
    /// Who computes them.
    pub judge: Judge,
}

impl Domain {
    /// The OID of its arrays.
    pub fn array_oid(&self) -> u32 {
        MADE_ARRAYS.saturating_add(self.oid)
    }

    /// Its name as statements have it.
    pub fn shown(&self) -> String {
        shown(&self.name)
    }

    /// The type that is no domain at the end of those that it is over, and its modifier.
    pub fn bottom(&self) -> (&Type, i32) {
        match &self.base {
            Type::Domain(inner) => inner.bottom(),
            base => (base, self.modifier),
        }
    }

    /// The text of what columns hold that nobody gives, which may be that of a domain below.
    pub fn default(&self) -> Option<&str> {
        match (&self.default, &self.base) {
            (Some(own), _) => Some(own),
            (None, Type::Domain(inner)) => inner.default(),
            _ => None,
        }
    }

    /// Whether it, or one below, has no nulls.
    pub fn has_no_nulls(&self) -> bool {
        self.not_null || matches!(&self.base, Type::Domain(inner) if inner.has_no_nulls())
    }

    /// Whether a value of the type behind it is one of its own.
    ///
    /// Errors: 23502, 23514.
    pub fn check(&self, value: &Value) -> Result<()> {
        if matches!(value, Value::Null) && self.has_no_nulls() {
            let told = error("23502", format!("domain {} does not allow null values", self.shown()));
            return Err(with(told, &self.fields(None)));
        }
        self.check_all(value, self)
    }

    /// The conditions of those below come first, and the outermost is told of.
    fn check_all(&self, value: &Value, told: &Self) -> Result<()> {
        if let Type::Domain(inner) = &self.base {
            inner.check_all(value, told)?;
        }
        if self.checks.is_empty() {
            return Ok(());
        }
        let Some(broken) = self.judge.0.broken(value)?.and_then(|at| self.checks.get(at)) else {
            return Ok(());
        };
        let message = format!(
            "value for domain {} violates check constraint \"{}\"",
            told.shown(),
            broken.name
        );
        Err(with(error("23514", message), &told.fields(Some(&broken.name))))
    }

    /// What errors tell of it beside their message.
    fn fields<'d>(&'d self, constraint: Option<&'d str>) -> Vec<(Field, &'d str)> {
        let (schema, name) = self.name.split_once('.').unwrap_or(("public", &self.name));
        let constraint = constraint.map(|name| (Field::Constraint, name));
        [(Field::Schema, schema), (Field::DataType, name)]
            .into_iter()
            .chain(constraint)
            .collect()
    }

    fn depth(&self) -> usize {
        match self.base.element().unwrap_or(&self.base) {
            Type::Domain(inner) => 1 + inner.depth(),
            _ => 1,
        }
    }

    /// Refuses a domain that declarations could not keep.
    ///
    /// Errors: 54000, 54001.
    pub fn check_size(&self) -> Result<()> {
        if self.depth() > DEPTH_MAX {
            return fail(
                "54001",
                format!("domains are over each other {DEPTH_MAX} times at most"),
            );
        }
        match self.written().to_string().len() > WRITTEN_BYTES_MAX {
            true => fail(
                "54000",
                format!("a domain takes {WRITTEN_BYTES_MAX} bytes at most with all that it is made of"),
            ),
            false => Ok(()),
        }
    }

    /// The domain as declarations keep it, which are read without the rest of the catalog: `ENUM('[OID', 'name', the type, nulls, the default,
    /// names and texts of conditions)`. Texts have no quotes there, whose doubling does not nest: `~1` stands for one and `~0` for `~`.
    pub fn written(&self) -> DataType {
        let kept = |text: &str| text.replace('~', "~0").replace('\'', "~1");
        let first = [
            format!("[{}", self.oid),
            self.name.clone(),
            kept(&self.base.written(self.modifier)),
            if self.not_null { "not null" } else { "null" }.to_owned(),
            self.default
                .as_ref()
                .map_or_else(|| "-".to_owned(), |text| format!("={}", kept(text))),
        ];
        let each = self.checks.iter().flat_map(|own| {
            let valid = if own.is_valid { '+' } else { '-' };
            [own.name.clone(), format!("{valid}{}", kept(&own.text))]
        });
        list(first.into_iter().chain(each))
    }

    /// The domain that a declaration keeps, whose texts are these; `types` reads the type that it is over, `judge` makes who computes the
    /// conditions of values of a type.
    pub fn declared(
        texts: &[String],
        types: impl Fn(&str) -> Result<(Type, i32)>,
        judge: impl Fn(&Type, &[Check]) -> Judge,
    ) -> Option<Type> {
        let [oid, name, base, nulls, default, checks @ ..] = texts else {
            return None;
        };
        let read = |text: &str| text.replace("~1", "'").replace("~0", "~");
        let (base, modifier) = types(&read(base)).ok()?;
        let each = checks.chunks_exact(2).map(|pair| {
            let valid = pair[1].chars().next()?;
            Some(Check {
                name: pair[0].clone(),
                text: read(pair[1].get(valid.len_utf8()..)?),
                is_valid: valid == '+',
            })
        });
        let checks: Vec<Check> = each.collect::<Option<_>>()?;
        Some(Type::Domain(Arc::new(Self {
            oid: oid.strip_prefix('[')?.parse().ok()?,
            name: name.clone(),
            judge: judge(&base.clone().plain(), &checks),
            base,
            modifier,
            not_null: nulls == "not null",
            default: default.strip_prefix('=').map(read),
            checks,
        })))
    }
}
