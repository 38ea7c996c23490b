//! Sequences as statements use them: by name or by number, those that were made and those of columns that count.

use super::numbers::{Got, Sequence, exhausted, of_collection};
use super::procedures::{Returned, check_transaction};
use super::tables::Reading;
use crate::bind::ident;
use crate::catalog::{Column, Kind, Table, schemas};
use crate::error::{fail, unsupported};
use crate::functions::leaves;
use crate::parse;
use crate::types::Type;
use nestor_database::rights::Action;
use nestor_database::write::sequence::{self, Counting};
use nestor_model::{Namespace, Result, Value};
use nestor_planner::relation::{Effects, Tuple, Waiting};
use nestor_storage::Collection;
use sqlparser::ast::{Expr, Ident};
use std::sync::Arc;

/// The name and schema of a sequence in the text that names it.
fn named(text: &str) -> Result<(Option<String>, String)> {
    match parse::expression(text) {
        Ok(Expr::Identifier(name)) => Ok((None, ident(&name))),
        Ok(Expr::CompoundIdentifier(names)) => match names.as_slice() {
            [schema, name] => Ok((Some(ident(schema)), ident(name))),
            _ => fail("42602", format!("invalid name syntax: \"{text}\"")),
        },
        _ => fail("42602", format!("invalid name syntax: \"{text}\"")),
    }
}

impl Reading<'_, '_> {
    /// The sequences of the database that the user may look at.
    pub fn sequences(&self) -> Vec<Sequence> {
        let database = self.view.catalog().database(&self.session.database);
        let collections = database.into_iter().flat_map(|database| database.collections());
        let seen = collections.filter(|collection| self.may_find(&collection.ns));
        seen.flat_map(|collection| of_collection(collection)).collect()
    }

    /// The sequence of a name, or of an OID.
    ///
    /// Errors: 42P01, 42809, 42602.
    pub fn sequence(&self, which: &Value) -> Result<Sequence> {
        match which {
            Value::String(text) => {
                let (mut schema, name) = named(text)?;
                if schema.as_deref() == Some(schemas::TEMPORARY) {
                    schema = Some(self.session.temporary_schema());
                }
                let (catalog, own) = (self.view.catalog(), &self.session.database);
                let is_own = |schema: &str| schema == schemas::PUBLIC || schemas::exists(self.view, own, schema);
                let (db, path) = match schema {
                    Some(other) if !is_own(&other) => (other, vec![schemas::PUBLIC.to_owned()]),
                    Some(schema) => (own.clone(), vec![schema]),
                    None => (own.clone(), self.session.path_of_relations()),
                };
                let place = |schema: &String| Namespace::new(db.as_str(), schemas::collection(schema, &name));
                let direct = path.iter().find_map(|schema| catalog.get(&place(schema)));
                let mut found = direct.map(|collection| of_collection(collection)).unwrap_or_default();
                found.retain(|sequence| sequence.name == name);
                if found.is_empty() {
                    let all = catalog
                        .database(&db)
                        .into_iter()
                        .flat_map(|database| database.collections());
                    let is_it = |sequence: &Sequence| sequence.name == name && path.contains(&sequence.schema);
                    // The name of a table is the beginning of those of its sequences, unless one of them got another name.
                    let (near, others): (Vec<_>, Vec<_>) = all.partition(|collection| {
                        let own = collection
                            .ns
                            .coll
                            .split_once('.')
                            .map_or(&*collection.ns.coll, |(_, own)| own);
                        name.starts_with(own) || name.starts_with(&*collection.ns.coll)
                    });
                    found = near
                        .into_iter()
                        .flat_map(|own| of_collection(own))
                        .filter(is_it)
                        .collect();
                    if found.is_empty() {
                        let others = others.into_iter().flat_map(|own| of_collection(own));
                        found = others.filter(is_it).collect();
                    }
                    found.sort_by_key(|sequence| path.iter().rev().position(|schema| *schema == sequence.schema));
                }
                match found.pop() {
                    Some(sequence) => Ok(sequence),
                    None if direct.is_some() => fail("42809", format!("\"{name}\" is not a sequence")),
                    None => fail("42P01", format!("relation \"{name}\" does not exist")),
                }
            }
            Value::Int64(oid) => {
                let found = self
                    .sequences()
                    .into_iter()
                    .find(|sequence| i64::from(sequence.oid) == *oid);
                match found {
                    Some(sequence) => Ok(sequence),
                    None => fail("42809", format!("relation {oid} is not a sequence")),
                }
            }
            _ => fail("42809", "a sequence is wanted"),
        }
    }

    /// The last number of a sequence, and whether it was given.
    ///
    /// Errors: those of reading.
    pub fn state_of(&self, sequence: &Sequence) -> Result<Option<(i64, bool)>> {
        sequence::state(self.statement.database, &sequence.ns.db, sequence.key())
    }

    /// A sequence as a table: what SELECT FROM it gives.
    pub(super) fn sequence_rows(&self, collection: &Collection) -> Result<Option<Arc<Table>>> {
        let Some(sequence) = of_collection(collection).pop() else {
            return Ok(None);
        };
        self.state_as_table(&sequence)
    }

    /// The same of a sequence that has no entry of its own, by its name.
    pub(super) fn sequence_of_column(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        let quoted = |name: &str| Ident::with_quote('"', name).to_string();
        let text = match schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(name)),
            None => quoted(name),
        };
        match self.sequence(&Value::String(text.into())) {
            Ok(sequence) if sequence.owner.is_some() && self.may_find(&sequence.ns) => self.state_as_table(&sequence),
            _ => Ok(None),
        }
    }

    fn state_as_table(&self, sequence: &Sequence) -> Result<Option<Arc<Table>>> {
        let state = self.state_of(sequence)?;
        let (last, is_called) = state.unwrap_or((sequence.counting.start, false));
        let columns = vec![
            Column::new("last_value", Type::Int8),
            Column::new("log_cnt", Type::Int8),
            Column::new("is_called", Type::Bool),
        ];
        let row = vec![Value::Int64(last), Value::Int64(0), Value::Bool(is_called)];
        let table = Table::new(&sequence.name, columns, Kind::Rows(Arc::new(vec![row])));
        Ok(Some(Arc::new(table)))
    }

    fn got(&self) -> std::sync::MutexGuard<'_, Got> {
        self.session
            .got
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Effects for Reading<'_, '_> {
    fn transaction(&self, gives: bool) -> Result<Option<i64>> {
        if gives {
            check_transaction(self.statement)?;
        }
        Ok(self.statement.transaction_number(gives))
    }

    fn next(&self, which: &Value) -> Result<i64> {
        let sequence = self.sequence(which)?;
        let right = match sequence.owner {
            Some(_) => Action::Insert,
            None => Action::Update,
        };
        self.check_right(&sequence.ns, right)?;
        let taken = sequence::take(self.statement, &sequence.ns.db, sequence.key(), &sequence.counting, 1)?;
        let Some((number, _)) = taken else {
            return Err(exhausted(&sequence.name, &sequence.counting));
        };
        self.got().note(&sequence.full_name(), number);
        Ok(number)
    }

    fn current(&self, which: Option<&Value>) -> Result<i64> {
        let got = self.got();
        let name = match which {
            None => match &got.last {
                Some(name) => name.clone(),
                None => return fail("55000", "lastval is not yet defined in this session"),
            },
            Some(which) => {
                let sequence = self.sequence(which)?;
                self.check_right(&sequence.ns, Action::Find)?;
                sequence.full_name()
            }
        };
        match got.of.get(&name) {
            Some(number) => Ok(*number),
            None => fail(
                "55000",
                format!("currval of sequence \"{name}\" is not yet defined in this session"),
            ),
        }
    }

    fn set(&self, which: &Value, number: i64, is_called: bool) -> Result<()> {
        let sequence = self.sequence(which)?;
        self.check_right(&sequence.ns, Action::Update)?;
        let Counting { min, max, .. } = sequence.counting;
        if !(min..=max).contains(&number) {
            let name = &sequence.name;
            return fail(
                "22003",
                format!("setval: value {number} is out of bounds for sequence \"{name}\" ({min}..{max})"),
            );
        }
        sequence::set(self.statement, &sequence.ns.db, sequence.key(), (number, is_called))?;
        if is_called {
            self.got().of.insert(sequence.full_name(), number);
        }
        Ok(())
    }

    fn call(&self, routine: u32, args: &[Value]) -> Result<Value> {
        Ok(match self.call_routine(routine, args)? {
            Returned::Value(value) => value,
            Returned::Rows(_) => Value::Null,
        })
    }

    fn rows(&self, routine: u32, args: &[Value]) -> Result<Vec<Tuple>> {
        Ok(match self.call_routine(routine, args)? {
            Returned::Rows(rows) => rows,
            Returned::Value(value) => vec![vec![value]],
        })
    }

    fn hold(&self, (db, coll): (&str, &str), record: &[u8], in_common: bool, waiting: Waiting) -> Result<bool> {
        let Some(holding) = self.holding else {
            return unsupported("FOR UPDATE in this place");
        };
        if !coll.is_empty() {
            return holding.note(self.statement, &Namespace::new(db, coll), (record, in_common), waiting);
        }
        let Some((oid, record)) = leaves::split(record) else {
            return unsupported("FOR UPDATE in this place");
        };
        match self.collection_numbered(oid) {
            Some(leaf) => holding.note(self.statement, &leaf.ns, (record, in_common), waiting),
            None => fail("XX000", "a partition is gone while its rows are read"),
        }
    }
}
