//! Variables of blocks, and what is assigned to them.

use super::{Results, Rows, Running};
use crate::error::{error, fail, state, unsupported};
use crate::parse;
use crate::parse::procedural::{self, Destination, Kind};
use crate::run::query::{self, Field};
use crate::types::cast::{self, Context, cast};
use crate::types::composite::{Attribute, Composite};
use crate::types::{Type, integer};
use nestor_model::{Array, Result, Value};
use sqlparser::ast::Statement as Ast;
use std::sync::Arc;

/// A variable.
#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The block that declares it, or the routine.
    pub(super) label: Option<String>,
    pub(super) ty: Type,
    pub(super) modifier: i32,
    pub(super) value: Value,
    pub(super) is_constant: bool,
    pub(super) not_null: bool,
    /// The fields of a record, which has no value of its own.
    pub(super) record: Option<Record>,
    /// It is another name of the variable of this number.
    pub(super) alias: Option<usize>,
    /// The cursor that it is declared as.
    pub(super) cursor: Option<Arc<Kind>>,
}

/// The fields of a record.
#[derive(Clone, Default)]
pub(super) struct Record {
    /// The fields; of a record that nothing was assigned to there are none.
    pub(super) fields: Vec<(Field, Value)>,
    /// They are always these.
    pub(super) is_fixed: bool,
    /// It is null as a whole.
    pub(super) is_null: bool,
}

impl Record {
    /// Its type as a value.
    pub(super) fn ty(&self, declared: &Type) -> Arc<Composite> {
        if let Type::Composite(own) = declared {
            return own.clone();
        }
        let each = self.fields.iter().map(|(field, _)| Attribute {
            name: field.name.clone(),
            ty: field.ty.clone(),
            modifier: field.modifier,
        });
        Arc::new(Composite::of_row_type(each.collect()))
    }

    /// Its value, of that type.
    pub(super) fn value(&self, declared: &Type) -> Result<(Type, Value)> {
        let ty = self.ty(declared);
        if self.is_null {
            return Ok((Type::Composite(ty), Value::Null));
        }
        let values = std::cell::RefCell::new(self.fields.iter());
        let value = ty.filled(|_| {
            Ok(values
                .borrow_mut()
                .next()
                .map_or(Value::Null, |(_, value)| value.clone()))
        })?;
        Ok((Type::Composite(ty), value))
    }
}

impl Variable {
    pub(super) fn new(name: &str, ty: Type, value: Value) -> Self {
        Self {
            name: name.to_owned(),
            label: None,
            ty,
            modifier: -1,
            value,
            is_constant: false,
            not_null: false,
            record: None,
            alias: None,
            cursor: None,
        }
    }

    /// A variable of a type, which is a record if the type has fields. Without a value it is null.
    pub(super) fn of(name: &str, ty: Type, value: Value) -> Self {
        let mut out = Self::new(name, ty, Value::Null);
        match &out.ty {
            Type::Composite(own) => {
                let values = own.values(&value);
                let each = own.attributes.iter().zip(values).map(|(own, value)| {
                    let field = Field {
                        modifier: own.modifier,
                        ..Field::new(own.name.clone(), own.ty.clone())
                    };
                    (field, value)
                });
                out.record = Some(Record {
                    fields: each.collect(),
                    is_fixed: true,
                    is_null: value.is_nullish(),
                });
            }
            Type::Record => out.record = Some(Record::default()),
            _ => out.value = value,
        }
        out
    }

    /// Its value and the type of that.
    ///
    /// Errors: 55000 for a record that nothing was assigned to.
    pub(super) fn seen(&self) -> Result<(Type, Value)> {
        match &self.record {
            None => Ok((self.ty.clone(), self.value.clone())),
            Some(record) if record.fields.is_empty() && !record.is_fixed => {
                let told = error("55000", format!("record \"{}\" is not assigned yet", self.name));
                let detail = "The tuple structure of a not-yet-assigned record is indeterminate.";
                Err(crate::error::with(told, &[(crate::error::Field::Detail, detail)]))
            }
            Some(record) => record.value(&self.ty),
        }
    }
}

fn not_null<T>(name: &str) -> Result<T> {
    fail(
        "22004",
        format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL"),
    )
}

fn unknown<T>(name: &str) -> Result<T> {
    fail("42601", format!("\"{name}\" is not a known variable"))
}

/// A value as one of another type, as assignments make it.
///
/// Errors: 42804 when there is no such cast, those of the cast.
pub(super) fn assigned(value: Value, from: &Type, (to, modifier): (&Type, i32)) -> Result<Value> {
    if value.is_nullish() && !to.is_constrained() {
        return Ok(Value::Null);
    }
    let value = if value.is_nullish() { Value::Null } else { value };
    let is_text = from.is_text() || *from == Type::Unknown;
    if from != to && !is_text && !to.is_text() && !cast::exists(from, to, Context::Explicit) {
        let message = format!("cannot cast type {from} to {to}");
        return fail("42846", message);
    }
    // What is no assignment for SQL goes over its text.
    cast(value, from, to, modifier, false)
}

impl Running<'_, '_> {
    /// Declares a variable of a block.
    pub(super) fn declare(&mut self, declared: &procedural::Variable, label: Option<&str>) -> Result<()> {
        let name = &declared.name;
        let label = label.map(str::to_owned);
        match &declared.kind {
            Kind::Alias(of) => {
                let Some(at) = self.place(of) else { return unknown(of) };
                let mut own = Variable::new(name, Type::Unknown, Value::Null);
                (own.alias, own.label) = (Some(at), label);
                self.variables.push(own);
                return Ok(());
            }
            Kind::Cursor { .. } => {
                let mut own = Variable::new(name, Type::Refcursor, Value::String(name.as_str().into()));
                (own.cursor, own.label) = (Some(Arc::new(declared.kind.clone())), label);
                self.variables.push(own);
                return Ok(());
            }
            Kind::Plain => {}
        }
        let (ty, modifier) = self.type_of(&declared.ty)?;
        let mut own = Variable::of(name, ty, Value::Null);
        (own.modifier, own.label) = (modifier, label);
        let given = match &declared.value {
            Some(value) => {
                let rows = self.rows(&format!("SELECT {value}"), &[])?;
                Some(rows.only(value)?)
            }
            // Null is to be one of the values of a domain.
            None if own.ty.is_constrained() => Some((Field::new("", Type::Unknown), Value::Null)),
            None => None,
        };
        self.variables.push(own);
        let at = self.variables.len() - 1;
        if let Some(given) = given {
            self.put(at, given)?;
        }
        let own = &mut self.variables[at];
        let is_null = match &own.record {
            Some(record) => record.is_null,
            None => own.value.is_nullish(),
        };
        if declared.not_null && is_null {
            return not_null(name);
        }
        (own.is_constant, own.not_null) = (declared.is_constant, declared.not_null);
        Ok(())
    }

    /// The type that a declaration says.
    fn type_of(&mut self, text: &str) -> Result<(Type, i32)> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("record") {
            return Ok((Type::Record, -1));
        }
        if let Some((of, kind)) = text.split_once('%') {
            let (kind, array) = match kind.trim().strip_suffix("[]") {
                Some(kind) => (kind.trim().to_uppercase(), true),
                None => (kind.trim().to_uppercase(), false),
            };
            let (ty, modifier) = match kind.as_str() {
                "TYPE" => self.type_like(of.trim())?,
                "ROWTYPE" => (self.type_of_rows(of.trim())?, -1),
                _ => return fail("42601", format!("syntax error at or near \"%{kind}\"")),
            };
            return Ok(if array { (ty.array(), -1) } else { (ty, modifier) });
        }
        let known = parse::data_type(text).and_then(|ty| crate::bind::types::data_type(&ty));
        match known {
            Ok(known) => return Ok(known),
            Err(error) if state(&error) != "42704" => return Err(error),
            Err(_) => {}
        }
        match query::named_type(self.statement, &self.facts, text) {
            Ok(known) => Ok(known),
            Err(told) if state(&told) == "42704" => match text.strip_suffix("[]") {
                Some(of) => self
                    .type_of_rows(of.trim())
                    .map(|ty| (ty.array(), -1))
                    .map_err(|_| told),
                None => self.type_of_rows(text).map(|ty| (ty, -1)).map_err(|_| told),
            },
            Err(told) => Err(told),
        }
    }

    /// `of%TYPE`: that of a variable, a field of a record, or a column.
    fn type_like(&mut self, of: &str) -> Result<(Type, i32)> {
        let parts: Vec<String> = parse::words(of);
        let name = parts.join(".");
        if let Some((at, field)) = self.resolve(&name) {
            let own = &self.variables[at];
            return Ok(match (&own.record, field) {
                (Some(record), Some(field)) => match record.fields.iter().find(|(own, _)| own.name == field) {
                    Some((own, _)) => (own.ty.clone(), own.modifier),
                    None => return unknown(&name),
                },
                _ => (own.ty.clone(), own.modifier),
            });
        }
        let Some((table, column)) = of.rsplit_once('.') else {
            return fail("42704", format!("type \"{of}\" does not exist"));
        };
        if let Some(domain) = query::domain_of(self.statement, &self.facts, table, column)? {
            return Ok((domain, -1));
        }
        let fields = self.described(&format!("SELECT {column} FROM {table}"))?;
        let field = fields.into_iter().next();
        field.map_or_else(|| unknown(&name), |field| Ok((field.ty, field.modifier)))
    }

    /// The type of the rows of a table, or of a type that has fields.
    fn type_of_rows(&mut self, of: &str) -> Result<Type> {
        if let Ok((ty @ Type::Composite(_), _)) = query::named_type(self.statement, &self.facts, of) {
            return Ok(ty);
        }
        let fields = self.described(&format!("SELECT * FROM {of}"))?;
        let each = fields.into_iter().map(|field| Attribute {
            name: field.name,
            ty: field.ty,
            modifier: field.modifier,
        });
        Ok(Type::Composite(Arc::new(Composite::of_row_type(each.collect()))))
    }

    /// The columns of a query that does not run.
    fn described(&mut self, text: &str) -> Result<Vec<Field>> {
        let known = self.facts.routines.kept::<Vec<Field>>(text, |_| false);
        if let Some(known) = known {
            return Ok((*known).clone());
        }
        let Some(Ast::Query(query)) = parse::parse(text)?.pop() else {
            return fail("42601", "a type is wanted");
        };
        query::describe(self.statement, &self.facts, &query, Vec::new()).map(|(fields, _)| fields)
    }

    /// The variable that a name is, through its other names.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.resolve(name)
            .filter(|(_, field)| field.is_none())
            .map(|(at, _)| at)
    }

    /// The variable and the field that a name with dots means.
    pub(super) fn resolve(&self, name: &str) -> Option<(usize, Option<String>)> {
        if let Some(number) = name.strip_prefix('$') {
            let number: usize = number.parse().ok()?;
            return self.args.get(number.checked_sub(1)?).map(|at| (*at, None));
        }
        let parts: Vec<&str> = name.split('.').collect();
        let of_name = |name: &str, label: Option<&str>| {
            let mut all = self.variables.iter().enumerate().rev();
            let is = |own: &Variable| own.name == name && label.is_none_or(|label| own.label.as_deref() == Some(label));
            let (at, own) = all.find(|(_, own)| is(own))?;
            Some(own.alias.unwrap_or(at))
        };
        match parts.as_slice() {
            [name] => of_name(name, None).map(|at| (at, None)),
            [first, second] => match of_name(first, None).filter(|at| self.variables[*at].record.is_some()) {
                Some(at) => Some((at, Some((*second).to_owned()))),
                None => of_name(second, Some(first)).map(|at| (at, None)),
            },
            [label, name, field] => of_name(name, Some(label)).map(|at| (at, Some((*field).to_owned()))),
            _ => None,
        }
    }

    pub(super) fn found(&mut self, is: bool) {
        if let Some(found) = self.variables.first_mut() {
            found.value = Value::Bool(is);
        }
    }

    pub(super) fn assign(&mut self, name: &str, value: &str) -> Result<()> {
        let rows = self.rows(&format!("SELECT {value}"), &[])?;
        self.set(name, rows.only(value)?)
    }

    /// Gives a variable, or a field of one, a value.
    pub(super) fn set(&mut self, name: &str, given: (Field, Value)) -> Result<()> {
        let Some((at, field)) = self.resolve(name) else {
            return unknown(name);
        };
        match field {
            Some(field) => self.put_field(at, &field, given),
            None => self.put(at, given),
        }
    }

    pub(super) fn put_field(&mut self, at: usize, name: &str, (field, value): (Field, Value)) -> Result<()> {
        let own = &mut self.variables[at];
        if own.is_constant {
            return fail("22005", format!("variable \"{}\" is declared CONSTANT", own.name));
        }
        let Some(record) = &mut own.record else {
            return unknown(&format!("{}.{name}", own.name));
        };
        if record.fields.is_empty() {
            return fail("55000", format!("record \"{}\" is not assigned yet", own.name));
        }
        let Some((of, held)) = record.fields.iter_mut().find(|(own, _)| own.name == name) else {
            return fail("42703", format!("record \"{}\" has no field \"{name}\"", own.name));
        };
        *held = assigned(value, &field.ty, (&of.ty, of.modifier))?;
        record.is_null = false;
        Ok(())
    }

    /// Gives a variable a value, as its type has it.
    pub(super) fn put(&mut self, at: usize, (field, value): (Field, Value)) -> Result<()> {
        let own = &mut self.variables[at];
        if own.is_constant {
            return fail("22005", format!("variable \"{}\" is declared CONSTANT", own.name));
        }
        let Some(record) = &mut own.record else {
            let value = assigned(value, &field.ty, (&own.ty, own.modifier))?;
            if own.not_null && value.is_nullish() {
                return not_null(&own.name);
            }
            own.value = value;
            return Ok(());
        };
        let parted: Vec<(Field, Value)> = match (&field.ty, &value) {
            (Type::Composite(of), value) => {
                let values = of.values(value);
                let each = of.attributes.iter().zip(values).map(|(own, value)| {
                    let field = Field {
                        modifier: own.modifier,
                        ..Field::new(own.name.clone(), own.ty.clone())
                    };
                    (field, value)
                });
                each.collect()
            }
            (Type::Record, Value::Array(items)) => {
                let each = (1..).zip(items.iter()).map(|(number, item)| {
                    let (ty, value) = crate::types::record::field(item.to_value());
                    (Field::new(format!("f{number}"), ty), value)
                });
                each.collect()
            }
            (_, value) if value.is_nullish() => Vec::new(),
            (Type::Unknown, Value::String(text)) if record.is_fixed => {
                let Type::Composite(of) = &own.ty else {
                    return fail("42804", "cannot assign non-composite value to a record variable");
                };
                let (value, ty) = (of.parse(text)?, own.ty.clone());
                return self.put(at, (Field::new("", ty), value));
            }
            _ => {
                let kind = if record.is_fixed { "row" } else { "record" };
                return fail(
                    "42804",
                    format!("cannot assign non-composite value to a {kind} variable"),
                );
            }
        };
        let is_null = value.is_nullish();
        if own.not_null && is_null {
            return not_null(&own.name);
        }
        record.take(parted, is_null)
    }

    /// Gives an element of an array a value.
    pub(super) fn set_element(&mut self, name: &str, subscripts: &[String], value: &str) -> Result<()> {
        let [subscript] = subscripts else {
            return unsupported("an assignment to an element of an array of several dimensions");
        };
        if subscript.contains(':') {
            return unsupported("an assignment to a slice of an array");
        }
        let Some((at, within)) = self.resolve(name) else {
            return unknown(name);
        };
        let own = &self.variables[at];
        let (ty, held) = match (&own.record, &within) {
            (Some(record), Some(field)) => match record.fields.iter().find(|(own, _)| own.name == *field) {
                Some((own, value)) => (own.ty.clone(), value.clone()),
                None => return unknown(name),
            },
            _ => (own.ty.clone(), own.value.clone()),
        };
        let Some(element) = ty.clone().plain().element().cloned() else {
            return match ty {
                Type::Jsonb => unsupported("an assignment to a part of a jsonb variable"),
                _ => fail(
                    "42804",
                    format!("cannot subscript type {ty} because it does not support subscripting"),
                ),
            };
        };
        let (from, number) = self.value(subscript, "integer")?;
        let number = match integer(&number) {
            Some(number) => number,
            None if from == Type::Unknown || number.is_nullish() => {
                return fail("22004", "array subscript in assignment must not be null");
            }
            None => return fail("42804", "array subscript must have type integer"),
        };
        let rows = self.rows(&format!("SELECT {value}"), &[])?;
        let (field, value) = rows.only(value)?;
        let value = assigned(value, &field.ty, (&element, -1))?;
        let mut items: Vec<Value> = match held {
            Value::Array(items) => items.iter().map(|item| item.to_value()).collect(),
            _ => Vec::new(),
        };
        let place = match usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) {
            Some(place) if place < 10_000_000 => place,
            _ => return unsupported("an array that does not begin at 1"),
        };
        if items.len() <= place {
            items.resize(place + 1, Value::Null);
        }
        items[place] = value;
        self.set(name, (Field::new("", ty), Value::Array(Array::new(items))))
    }

    pub(super) fn store(&mut self, into: &Destination, rows: Rows) -> Result<()> {
        if into.is_strict && rows.rows.is_empty() {
            return fail("P0002", "query returned no rows");
        }
        if into.is_strict && rows.rows.len() > 1 {
            let told = error("P0003", "query returned more than one row");
            let hint = "Make sure the query returns a single row, or use LIMIT 1.";
            return Err(crate::error::with(told, &[(crate::error::Field::Hint, hint)]));
        }
        self.set_row(&into.names, rows.fields, rows.rows.into_iter().next())
    }

    /// A row goes to variables; they become null where there is none.
    pub(super) fn set_row(&mut self, names: &[String], fields: Vec<Field>, row: Option<Vec<Value>>) -> Result<()> {
        let is_null = row.is_none();
        let row = row.unwrap_or_else(|| vec![Value::Null; fields.len()]);
        if let [name] = names
            && let Some((at, None)) = self.resolve(name)
            && let Some(record) = &mut self.variables[at].record
        {
            // One value that has the fields is the row itself.
            if let ([field], [value]) = (fields.as_slice(), row.as_slice())
                && matches!(field.ty, Type::Composite(_))
                && !(record.is_fixed && record.fields.len() == 1)
            {
                let given = (field.clone(), value.clone());
                return self.put(at, given);
            }
            return record.take(fields.into_iter().zip(row).collect(), is_null);
        }
        let mut all = fields.into_iter().zip(row);
        for name in names {
            let value = all.next().unwrap_or((Field::new("", Type::Unknown), Value::Null));
            self.set(name, value)?;
        }
        Ok(())
    }

    /// The value of an expression, and its type; as one of the type of this name.
    pub(super) fn value(&mut self, text: &str, ty: &str) -> Result<(Type, Value)> {
        let rows = self.rows(&format!("SELECT CAST(({text}) AS {ty})"), &[])?;
        let (field, value) = rows.only(text)?;
        Ok((field.ty, value))
    }

    pub(super) fn values(&mut self, texts: &[String]) -> Result<Vec<(Type, Value)>> {
        let mut out = Vec::new();
        for text in texts {
            let rows = self.rows(&format!("SELECT {text}"), &[])?;
            let (field, value) = rows.only(text)?;
            out.push((field.ty, value));
        }
        Ok(out)
    }

    pub(super) fn holds(&mut self, text: &str) -> Result<bool> {
        Ok(matches!(self.value(text, "boolean")?.1, Value::Bool(true)))
    }

    pub(super) fn number(&mut self, text: &str, what: &str) -> Result<i64> {
        match self.value(text, "integer")?.1 {
            Value::Int32(n) => Ok(i64::from(n)),
            _ => fail("22004", format!("{what} cannot be null")),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> Result<String> {
        match self.value(text, "text")?.1 {
            Value::String(text) => Ok(text.to_string()),
            _ => fail("22004", "query string argument of EXECUTE is null"),
        }
    }
}

impl Record {
    /// Takes values: those that have always the same fields by their places, others all that come.
    fn take(&mut self, given: Vec<(Field, Value)>, is_null: bool) -> Result<()> {
        self.is_null = is_null;
        if !self.is_fixed {
            if !given.is_empty() {
                self.fields = given;
            } else {
                self.fields.iter_mut().for_each(|(_, value)| *value = Value::Null);
            }
            return Ok(());
        }
        let mut given = given.into_iter();
        for (field, value) in &mut self.fields {
            *value = match given.next() {
                Some((from, value)) => assigned(value, &from.ty, (&field.ty, field.modifier))?,
                None => Value::Null,
            };
        }
        Ok(())
    }
}

impl Rows {
    /// The only value.
    ///
    /// Errors: 42601 for several columns; 21000 for several rows.
    pub(super) fn only(self, text: &str) -> Result<(Field, Value)> {
        if self.rows.len() > 1 {
            return fail("21000", format!("query \"{text}\" returned more than one row"));
        }
        let columns = self.fields.len();
        if columns != 1 {
            return fail("42601", format!("query \"{text}\" returned {columns} columns"));
        }
        let field = self.fields.into_iter().next();
        let value = self.rows.into_iter().flatten().next().unwrap_or(Value::Null);
        Ok((field.unwrap_or(Field::new("", Type::Unknown)), value))
    }
}

impl Results {
    /// Adds a row.
    ///
    /// Errors: 53200.
    pub(super) fn add(&mut self, row: Vec<Value>) -> Result<()> {
        self.bytes += size_of::<Vec<Value>>() + row.iter().map(Value::weight).sum::<usize>();
        if self.bytes > super::ROWS_BYTES_MAX {
            return fail("53200", "the rows that a function returns take too much memory");
        }
        self.rows.push(row);
        Ok(())
    }
}
