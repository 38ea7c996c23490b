//! The messages of the extended protocol: Parse, Bind, Describe, Execute.

use super::{
    Flush, NAMES_MAX, Portal, Prepared, Session, Sink, WAITING_BYTES_MAX, Waiting, changes, check_told, plan_field,
    show_fields,
};
use crate::bind::write::writes;
use crate::catalog::system;
use crate::ddl;
use crate::error::{Field as ErrorField, error, fail, unsupported, with};
use crate::parse::roles::without_passwords;
use crate::protocol::backend;
use crate::run::explain;
use crate::run::query::{self, Field};
use crate::types::{Type, encoding, input};
use crate::{parse, write};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_model::{Error, Result, Value};
use sqlparser::ast::{CreateTable, Declare, FetchDirection, Query, Statement as Ast};
use std::borrow::Cow;
use std::sync::Arc;

/// The columns of a statement's rows, if it gives rows, and the types of its parameters.
type Described = (Option<Vec<Field>>, Vec<Type>);

impl Session {
    pub(super) fn parse(
        &mut self,
        database: &Database,
        name: &str,
        text: &str,
        types: &[u32],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut statements = parse::by_client(text)?;
        if statements.len() > 1 {
            return fail("42601", "cannot insert multiple commands into a prepared statement");
        }
        let built_in = types.iter().map(|oid| match oid {
            0 => Some(Type::Unknown),
            oid => Type::of_oid(*oid),
        });
        let given = match built_in.collect::<Option<Vec<Type>>>() {
            Some(given) => given,
            None => self.statement(database, text, OpKind::Read, |statement, facts| {
                query::types_of(statement, facts, types)
            })?,
        };
        self.remember(database, name, text, statements.pop().map(Arc::new), given)?;
        if !name.is_empty() {
            self.note_prepared(name, text, false);
        }
        backend::empty(out, b'1');
        Ok(())
    }

    /// Keeps a statement under a name, with what is known of it without running it.
    pub(super) fn remember(
        &mut self,
        database: &Database,
        name: &str,
        text: &str,
        ast: Option<Arc<Ast>>,
        given: Vec<Type>,
    ) -> Result<()> {
        if !name.is_empty() && self.prepared.contains_key(name) {
            return fail("42P05", format!("prepared statement \"{name}\" already exists"));
        }
        if self.prepared.len() >= NAMES_MAX {
            return fail("53000", "too many prepared statements");
        }
        let text = match ast.as_deref().is_some_and(ddl::is_of_roles) {
            true => without_passwords(text),
            false => Cow::Borrowed(text),
        };
        let text = &*text;
        let said: Vec<(usize, u32)> = given
            .iter()
            .enumerate()
            .filter(|(_, ty)| ty.is_constrained())
            .map(|(at, ty)| (at, ty.oid()))
            .collect();
        let given = given.into_iter().map(Type::plain).collect();
        let mut prepared = Prepared::new(text, ast, given);
        self.check_block(prepared.ast.as_deref())?;
        let ast = prepared.ast.clone();
        if let Some(ast) = ast.as_deref()
            && let Some((fields, types)) = self.described(database, text, ast, &prepared.types)?
        {
            (prepared.fields, prepared.types) = (fields, types);
        }
        match ast.as_deref() {
            Some(Ast::Explain {
                statement: inner,
                analyze,
                format,
                options,
                ..
            }) => {
                if let Some((_, types)) = self.described(database, text, inner, &prepared.types)? {
                    prepared.types = types;
                }
                let wanted = explain::wanted(*analyze, format.as_ref(), options.as_deref().unwrap_or_default())?;
                let ty = wanted.format.ty();
                prepared.fields = Some(vec![plan_field(ty)]);
            }
            Some(Ast::Declare { stmts }) => {
                if let [
                    Declare {
                        for_query: Some(query), ..
                    },
                ] = stmts.as_slice()
                {
                    let query = Ast::Query(query.clone());
                    if let Some((_, types)) = self.described(database, text, &query, &prepared.types)? {
                        prepared.types = types;
                    }
                }
            }
            Some(Ast::ShowVariable { variable }) => prepared.fields = Some(show_fields(variable)),
            Some(Ast::Fetch { name, into: None, .. }) => prepared.fields = self.cursor_fields(name),
            Some(Ast::Execute { name: Some(name), .. }) => {
                let (_, name) = crate::bind::object_name(name)?;
                prepared.fields = self.prepared.get(&name).and_then(|executed| executed.fields.clone());
            }
            _ => {}
        }
        prepared.declared = prepared.types.iter().map(Type::oid).collect();
        for (ty, declared) in prepared.types.iter_mut().zip(&mut prepared.declared) {
            if *ty == Type::Unknown {
                (*ty, *declared) = (Type::Text, Type::Text.oid());
            }
            *ty = std::mem::replace(ty, Type::Unknown).plain();
        }
        for (at, oid) in said {
            if let Some(declared) = prepared.declared.get_mut(at) {
                *declared = oid;
            }
        }
        self.prepared.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    /// The columns of a query or of a statement that writes, and the types of its parameters; `None` of others.
    fn described(&mut self, database: &Database, text: &str, ast: &Ast, types: &[Type]) -> Result<Option<Described>> {
        let types = types.to_vec();
        match ast {
            ast if writes(ast) => self
                .statement(database, text, OpKind::Read, |statement, facts| {
                    write::describe(statement, facts, ast, types)
                })
                .map(Some),
            Ast::Query(query) => {
                let (fields, types) = self.statement(database, text, OpKind::Read, |statement, facts| {
                    query::describe(statement, facts, query, types)
                })?;
                Ok(Some((Some(fields), types)))
            }
            Ast::CreateTable(CreateTable { query: Some(query), .. }) => {
                let (_, types) = self.statement(database, text, OpKind::Read, |statement, facts| {
                    query::describe(statement, facts, query, types)
                })?;
                Ok(Some((None, types)))
            }
            Ast::Call(call) if !parse::own::is_wrapped(ast) => self
                .statement(database, text, OpKind::Read, |statement, facts| {
                    super::procedural::describe_call(statement, facts, call, types)
                })
                .map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        formats: &[i16],
        values: &[Option<&[u8]>],
        results: Vec<i16>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(prepared) = self.prepared.get(statement).cloned() else {
            return Err(unprepared(statement));
        };
        let prepared = self.of_present_cursor(prepared);
        if values.len() != prepared.types.len() {
            return fail(
                "08P01",
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                    values.len(),
                    prepared.types.len()
                ),
            );
        }
        let mut params = Vec::with_capacity(values.len());
        for (i, (value, ty)) in values.iter().zip(&prepared.types).enumerate() {
            params.push(match value {
                None => Value::Null,
                Some(bytes) if backend::format(formats, i) == 1 => input::binary(ty, bytes)?,
                Some(bytes) => parameter(ty, &encoding::text(bytes)?)?,
            });
        }
        if !portal.is_empty() && self.portals.contains_key(portal) {
            return fail("42P03", format!("cursor \"{portal}\" already exists"));
        }
        if self.portals.len() >= NAMES_MAX {
            return fail("53000", "too many portals");
        }
        let bound = Portal {
            statement: prepared,
            params,
            formats: results,
            waiting: None,
            cursor: None,
        };
        self.portals.insert(portal.to_owned(), bound);
        backend::empty(out, b'2');
        Ok(())
    }

    /// A FETCH with the columns of the cursor that has its name now, which may be another one than when it was prepared, or none then.
    fn of_present_cursor(&self, prepared: Arc<Prepared>) -> Arc<Prepared> {
        let Some(Ast::Fetch { name, into: None, .. }) = prepared.ast.as_deref() else {
            return prepared;
        };
        let mut anew = Prepared::new(prepared.text.clone(), prepared.ast.clone(), prepared.types.clone());
        anew.fields = self.cursor_fields(name);
        Arc::new(anew)
    }

    pub(super) fn describe(&mut self, portal: bool, name: &str, out: &mut Vec<u8>) -> Result<()> {
        let (prepared, formats) = match portal {
            true => match self.portals.get(name) {
                Some(portal) => (&portal.statement, portal.formats.as_slice()),
                None => return fail("34000", format!("portal \"{name}\" does not exist")),
            },
            false => match self.prepared.get(name) {
                Some(prepared) => (prepared, [].as_slice()),
                None => return Err(unprepared(name)),
            },
        };
        if !portal {
            backend::parameters(out, &prepared.declared);
        }
        match &prepared.fields {
            Some(fields) => backend::row_description(out, fields, formats),
            None => backend::empty(out, b'n'),
        }
        Ok(())
    }

    pub(super) fn execute(
        &mut self,
        database: &Database,
        name: &str,
        rows: i32,
        out: &mut Vec<u8>,
        flush: &mut Flush<'_>,
    ) -> Result<()> {
        let Some(mut portal) = self.portals.remove(name) else {
            return fail("34000", format!("portal \"{name}\" does not exist"));
        };
        let result = self.execute_portal(database, &mut portal, rows, out, flush);
        // One that has failed is there until its transaction ends.
        self.portals.insert(name.to_owned(), portal);
        result
    }

    fn execute_portal(
        &mut self,
        database: &Database,
        portal: &mut Portal,
        rows: i32,
        out: &mut Vec<u8>,
        flush: &mut Flush<'_>,
    ) -> Result<()> {
        if portal.cursor.is_some() {
            return unsupported("executing a cursor as a portal");
        }
        let text = &portal.statement.text;
        let begins = !self.sync_follows && portal.statement.ast.as_deref().is_some_and(|ast| changes(ast, text));
        if begins && self.block.is_none() {
            self.block = Some(self.new_block(true));
        }
        if portal.statement.ast.is_none() {
            backend::empty(out, b'I');
            return Ok(());
        }
        let limit = usize::try_from(rows).ok().filter(|rows| *rows > 0);
        let is_in_parts = (limit.is_some() || portal.waiting.is_some()) && portal.is_query();
        if !is_in_parts {
            let mut sink = Sink {
                out,
                flush,
                describes: false,
                formats: &portal.formats,
                fields: Cow::Borrowed(portal.statement.fields.as_deref().unwrap_or_default()),
            };
            let result = self.run(database, &portal.statement, &portal.params, &mut sink);
            self.tell(out);
            let tag = result?;
            if !self.is_copying() {
                backend::complete(out, &tag);
            }
            return Ok(());
        }
        let filled = self.fill(database, portal);
        self.tell(out);
        filled?;
        let mut given = 0;
        if let Some(waiting) = &mut portal.waiting {
            for row in waiting.rows.by_ref().take(limit.unwrap_or(usize::MAX)) {
                backend::data_row(out, &waiting.fields, &row, &portal.formats)?;
                given += 1;
            }
        }
        // That there are no more rows is found out by who asks for them.
        match limit == Some(given) {
            true => backend::empty(out, b's'),
            false => backend::complete(out, &format!("SELECT {given}")),
        }
        Ok(())
    }

    /// FETCH and MOVE on a portal, which goes forward only; how many rows there were.
    pub(super) fn fetch_portal(
        &mut self,
        database: &Database,
        name: &str,
        direction: &FetchDirection,
        mut sink: Option<&mut Sink<'_, '_>>,
    ) -> Result<u64> {
        let Some(mut portal) = self.portals.remove(name) else {
            return fail("34000", format!("cursor \"{name}\" does not exist"));
        };
        let count = match direction {
            FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
                usize::try_from(super::cursor::number(&limit.value)?).ok()
            }
            FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(1),
            FetchDirection::All | FetchDirection::ForwardAll => Some(usize::MAX),
            _ => None,
        };
        let Some(count) = count.filter(|count| *count > 0) else {
            return fail("55000", "cursor can only scan forward");
        };
        self.fill(database, &mut portal)?;
        let mut given = 0;
        if let Some(waiting) = &mut portal.waiting {
            if let Some(sink) = &mut sink {
                sink.begin_as(&waiting.fields, &portal.formats)?;
            }
            for row in waiting.rows.by_ref().take(count) {
                if let Some(sink) = &mut sink {
                    sink.row_as(&row, &portal.formats)?;
                }
                given += 1;
            }
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(given)
    }

    /// Runs the query of a portal, if that was not done.
    fn fill(&mut self, database: &Database, portal: &mut Portal) -> Result<()> {
        if portal.waiting.is_none() {
            let Some(Ast::Query(query)) = portal.statement.ast.as_deref() else {
                return Ok(());
            };
            self.check_block(portal.statement.ast.as_deref())?;
            let prepared = &portal.statement;
            let told = prepared.fields.as_deref().unwrap_or_default();
            let run = |session: &mut Self| session.rows_of(database, prepared, query, (told, &portal.params));
            portal.waiting = Some(self.with_calls(database, run)?);
        }
        Ok(())
    }

    /// All rows of a query, for a portal that gives them in parts.
    fn rows_of(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        query: &Query,
        (told, params): (&[Field], &[Value]),
    ) -> Result<Waiting> {
        let (mut all, mut bytes, mut columns) = (Vec::new(), 0usize, Vec::new());
        let (types, plan) = (&prepared.types, &prepared.plan);
        self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
            let mut to = query::Takers {
                begin: &mut |fields: &[Field]| {
                    columns = fields.to_vec();
                    check_told(told, fields)
                },
                give: &mut |row: Vec<Value>| {
                    bytes += row.iter().map(Value::weight).sum::<usize>();
                    if bytes > WAITING_BYTES_MAX {
                        return fail(
                            "53200",
                            "the rows of a portal that is fetched in parts take too much memory",
                        );
                    }
                    all.push(row);
                    Ok(())
                },
            };
            query::run(statement, facts, (query, plan), (types, params), &mut to)
        })?;
        self.do_asked(database)?;
        Ok(Waiting {
            fields: columns,
            rows: all.into_iter(),
        })
    }
}

/// The error of a name that no prepared statement has, with what drivers know it by.
pub(super) fn unprepared(name: &str) -> Error {
    let missing = error("26000", format!("prepared statement \"{name}\" does not exist"));
    with(missing, &[(ErrorField::Routine, "FetchPreparedStatement")])
}

impl Portal {
    /// Whether it may be run in parts.
    pub(super) fn is_query(&self) -> bool {
        let ast = self.statement.ast.as_deref();
        ast.is_some_and(|ast| matches!(ast, Ast::Query(_)) && !writes(ast))
    }
}

/// The value of a parameter that came as text. Tables of the catalog may be named where their OID is wanted, as SQLAlchemy does.
///
/// Errors: those of [`input::text`].
fn parameter(ty: &Type, text: &str) -> Result<Value> {
    let name = text.strip_prefix("pg_catalog.").unwrap_or(text);
    match (ty, system::oid_of(None, name)) {
        (Type::Regclass, Some(oid)) => Ok(Value::Int64(i64::from(oid))),
        _ => input::text(ty, text),
    }
}
