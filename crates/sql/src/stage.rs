//! `$sql`: queries as the source of a pipeline.

use crate::catalog::documents::type_of;
use crate::error::{error, fail, placed, unsupported};
use crate::parse;
use crate::plan::switches::Switches;
use crate::run::explain::{self, Wanted};
use crate::run::planned::PlanCell;
use crate::run::query::{self, Field};
use crate::run::tables::SessionFacts;
use crate::settings;
use crate::types::{Type, stored};
use crate::write::assertions;
use nestor_database::statement::Statement;
use nestor_database::statement::relational::{Asserted, GiveRow, Relational};
use nestor_database::users::UserName;
use nestor_model::{Document, Result, Value, bail};
use nestor_query::stage::SqlQuery;
use nestor_storage::{View, WriteSet};
use sqlparser::ast::{Query, Statement as Ast};

/// Answers `$sql`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqlStage;

impl Asserted for SqlStage {
    fn check(&self, statement: &Statement<'_>, ws: &mut WriteSet, db: &str) -> Result<()> {
        assertions::check(statement, ws, db)
    }
}

impl Relational for SqlStage {
    fn rows(
        &self,
        statement: &Statement<'_>,
        view: &dyn View,
        db: &str,
        query: &SqlQuery,
        give: &mut GiveRow<'_>,
    ) -> Result<()> {
        let facts = facts(statement, db)?;
        let text = &query.text;
        let ast = the_query(text)?;
        let (types, params) = parameters(&query.parameters)?;
        let mut columns: Vec<Field> = Vec::new();
        let columns = std::cell::RefCell::new(&mut columns);
        let mut begin = |fields: &[Field]| {
            let mut seen = std::collections::HashSet::new();
            if let Some(twice) = fields.iter().find(|field| !seen.insert(&field.name)) {
                return fail(
                    "42701",
                    format!(
                        "column \"{}\" is there twice: a document has each field once",
                        twice.name
                    ),
                );
            }
            **columns.borrow_mut() = fields.to_vec();
            Ok(())
        };
        let mut give = |row: Vec<Value>| {
            let mut doc = Document::new();
            for (field, value) in columns.borrow().iter().zip(row) {
                doc.push(field.name.as_str(), stored::write(&field.ty, value));
            }
            give(doc)
        };
        let query = (&*ast, &PlanCell::default());
        let mut to = query::Takers {
            begin: &mut begin,
            give: &mut give,
        };
        query::run_over(statement, view, &facts, query, (&types, &params), &mut to)
            .map(drop)
            .map_err(|e| placed(e, text))
    }

    fn plan(&self, statement: &Statement<'_>, view: &dyn View, db: &str, query: &SqlQuery) -> Result<Value> {
        let facts = facts(statement, db)?;
        let ast = the_query(&query.text)?;
        let (types, params) = parameters(&query.parameters)?;
        let explained = query::explain_over(statement, view, &facts, &ast, (&types, &params), None)
            .map_err(|e| placed(e, &query.text))?;
        let lines = explain::text(&explained, Wanted::default());
        Ok(Value::Array(lines.into_iter().map(Value::from).collect()))
    }
}

/// Who asks, as connections of SQL know it.
fn facts(statement: &Statement<'_>, db: &str) -> Result<SessionFacts> {
    let database = statement.database;
    let account = match &statement.caller {
        Some(caller) => {
            let name = UserName::new(&caller.user, &caller.db);
            let Some(account) = database.users.account(&name)?.0 else {
                bail!(Unauthorized, "user {name} is not there any more");
            };
            Some(account)
        }
        None if database.options.authorization => bail!(Unauthorized, "$sql requires authentication"),
        None => None,
    };
    let user = statement
        .caller
        .as_ref()
        .map_or_else(String::new, |caller| caller.user.to_string());
    Ok(SessionFacts {
        session_user: user.clone(),
        user,
        database: db.to_owned(),
        pid: i32::try_from(statement.slot.id).unwrap_or(0),
        account,
        settings: settings::initial(),
        since: None,
        begun: Default::default(),
        switches: Switches::default(),
        got: Default::default(),
        temporary: Default::default(),
        deferred: Default::default(),
        procedures: None,
        routines: std::sync::Arc::default(),
        named: std::sync::Arc::default(),
        transition: std::sync::Arc::default(),
        commits: None,
    })
}

/// The one query that a text has to be.
fn the_query(text: &str) -> Result<Box<Query>> {
    let mut statements = parse::parse(text)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Ast::Query(query)), true) if !crate::bind::write::writes(&Ast::Query(query.clone())) => Ok(query),
        (None, _) => Err(error("42601", "$sql has no statement")),
        (Some(_), false) => fail("42601", "$sql has several statements"),
        (Some(_), true) => unsupported("$sql of what is no query"),
    }
}

/// The values of parameters and their types, as documents have them.
fn parameters(values: &[Value]) -> Result<(Vec<Type>, Vec<Value>)> {
    let typed = values.iter().enumerate().map(|(i, value)| {
        let ty = type_of(value.as_ref()).unwrap_or(Type::Unknown);
        let value = stored::read(&ty, value.as_ref(), &format!("${}", i + 1))?;
        Ok((ty, value))
    });
    Ok(typed.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}
