//! CREATE VIEW: a view of MQL whose pipeline is the query ([`entry::query_of`]).

use super::{made_namespace, note_made};
use crate::bind::duality::with_etag;
use crate::bind::{Binder, entry, ident, storage};
use crate::catalog::{Kind, Table, schemas};
use crate::error::{Field as ErrorField, error, fail, unsupported, with};
use crate::notices::pass_over;
use crate::parse::own::CheckOption;
use crate::parse::trigger::Trigger;
use crate::run::query::Field;
use crate::run::tables::{Reading, SessionFacts};
use crate::settings;
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{CollectionOptions, Namespace, Result, Value, doc};
use nestor_storage::{Collection, View as _};
use sqlparser::ast::{CreateTableOptions, CreateView, Ident, Query, SetExpr, TableFactor, TableWithJoins};
use std::sync::Arc;

/// What is kept of a view beside its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Nothing.
    Plain,
    /// CHECK OPTION.
    Checked(CheckOption),
    /// It is a duality view.
    Duality,
}

impl Kept {
    fn text(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Checked(option) => option.text(),
            Self::Duality => entry::DUALITY,
        }
    }
}

/// CREATE VIEW.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (create, kept): (&CreateView, Kept),
    progress: &mut Progress,
) -> Result<&'static str> {
    let (said, given) = (options_of(&create.options)?, kept);
    let kept = match (kept, said.check) {
        (Kept::Plain, Some(check)) => Kept::Checked(check),
        (Kept::Checked(_), Some(_)) => {
            return fail("22023", "parameter \"check_option\" specified more than once");
        }
        (kept, _) => kept,
    };
    let mut plain = create.clone();
    if given != Kept::Duality {
        plain.options = CreateTableOptions::None;
    }
    check(&plain)?;
    if create.materialized {
        return fail("42601", "syntax error: a materialized view is not replaced");
    }
    if create.if_not_exists {
        return unsupported("a clause of this CREATE VIEW");
    }
    let is_temporary = create.temporary || reads_temporary(statement, session, create)?;
    let ns = made_namespace(statement, session, (is_temporary, &create.name), progress)?;
    if *ns.db != *session.database {
        return unsupported("a view in another database");
    }
    session.check_right(&ns, Right::CreateCollection)?;
    let text = query_text(create)?;
    let whole = format!("{text}{}{}", said.text(), kept.text());
    let options = options(&ns.coll, &whole, &[])?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| {
        let found = ws.catalog().get(&ns).cloned();
        if let Some(found) = &found {
            let is_own = entry::query_of(found).is_some();
            match create.or_replace {
                false => return fail("42P07", format!("relation \"{}\" already exists", ns.coll)),
                true if !is_own => return fail("42809", format!("\"{}\" is not a view", ns.coll)),
                true => session.check_right(&ns, Right::CollMod)?,
            }
        }
        let (op, _) = statement.operation(None)?;
        let reading = Reading::new(statement, &*ws, &op, session);
        let schema = schemas::split(reading.view, &ns).0;
        let new = match kept {
            Kept::Duality => {
                let Some(query) = entry::parsed(&text) else {
                    return unsupported("a view of what is no query");
                };
                Binder::new(&reading, Vec::new()).shape(schema, &query)?;
                columns_of(&reading, schema, &with_etag(&text))?
            }
            _ => columns_of(&reading, schema, &text)?,
        };
        if matches!(kept, Kept::Checked(_)) {
            check_writable(&reading, (schema, &ns.coll), &text)?;
        }
        if let Some(found) = found {
            let before = reading.table_at(&ns)?;
            let before = before.iter().flat_map(|table| &table.columns);
            let mut after = new.iter();
            for column in before {
                let Some(Field { name, ty, modifier, .. }) = after.next() else {
                    return fail("42P16", "cannot drop columns from view");
                };
                if *name != column.name {
                    return fail(
                        "42P16",
                        format!("cannot change name of view column \"{}\" to \"{name}\"", column.name),
                    );
                }
                if *ty != column.ty || *modifier != column.modifier {
                    return fail(
                        "42P16",
                        format!(
                            "cannot change data type of view column \"{name}\" from {} to {}",
                            column.ty.format(column.modifier),
                            ty.format(*modifier)
                        ),
                    );
                }
            }
            // Its triggers stay.
            let triggers = entry::view_triggers(&found)?;
            ws.set_options(found.id, self::options(&ns.coll, &whole, &triggers)?)?;
            return Ok(());
        }
        note_made(statement, session, ws, &ns)?;
        catalog::create(statement, ws, &ns, uuid, &options)
    })?;
    Ok("CREATE VIEW")
}

/// What is said of a view beside its query.
#[derive(Debug, Default)]
struct Options {
    /// As they are shown, in the order in which they were said.
    shown: Vec<String>,
    /// The one that is no other than CHECK OPTION.
    check: Option<CheckOption>,
}

impl Options {
    /// Those of a view, but for CHECK OPTION.
    fn of(view: &Collection) -> Self {
        Self {
            shown: entry::view_options(view),
            check: None,
        }
    }

    fn text(&self) -> String {
        self.shown.iter().map(|own| entry::view_option(own)).collect()
    }

    /// Takes one, which may be there already.
    ///
    /// Errors: 22023 for what is none; 0A000 for a view that reads its tables with the rights of its owner.
    fn take(&mut self, name: &str, value: &str) -> Result<()> {
        if name == "check_option" {
            self.check = Some(match value.to_lowercase().as_str() {
                "local" => CheckOption::Local,
                "cascaded" => CheckOption::Cascaded,
                _ => {
                    let told = error(
                        "22023",
                        format!("invalid value for enum option \"check_option\": {value}"),
                    );
                    let detail = "Valid values are \"local\" and \"cascaded\".";
                    return Err(with(told, &[(ErrorField::Detail, detail)]));
                }
            });
            return Ok(());
        }
        if !matches!(name, "security_barrier" | "security_invoker") {
            return fail("22023", format!("unrecognized parameter \"{name}\""));
        }
        let Some(is_on) = settings::switch(&value.to_lowercase()) else {
            return fail("22023", format!("invalid value for boolean option \"{name}\": {value}"));
        };
        if name == "security_invoker" && !is_on {
            return unsupported("a view that reads its tables with the rights of its owner (security_invoker = false)");
        }
        self.shown.retain(|own| !own.starts_with(name));
        self.shown.push(format!("{name}={is_on}"));
        Ok(())
    }
}

/// The options of `WITH (…)`.
///
/// Errors: those of [`Options::take`], 22023 for one that is said twice.
fn options_of(given: &CreateTableOptions) -> Result<Options> {
    let mut out = Options::default();
    let mut names: Vec<String> = Vec::new();
    let all = match given {
        CreateTableOptions::With(all) => all.as_slice(),
        _ => &[],
    };
    for option in all {
        let (name, value) = storage::pair(option)?;
        if names.contains(&name) {
            return fail("22023", format!("parameter \"{name}\" specified more than once"));
        }
        out.take(&name, &value)?;
        names.push(name);
    }
    Ok(out)
}

/// ALTER VIEW … SET (…) and RESET (…), where options have no values.
///
/// Errors: 42P01, 42809, those of [`Options::take`]; 0A000 for duality views, and for CHECK OPTION of what nobody writes through.
pub(super) fn set_options(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (ns, given): (&Namespace, &[(String, Option<String>)]),
    if_exists: bool,
    progress: &mut Progress,
) -> Result<&'static str> {
    session.check_right(ns, Right::CollMod)?;
    statement.atomically(progress, |ws| {
        let Some(found) = ws.catalog().get(ns).cloned() else {
            let missing = error("42P01", format!("relation \"{}\" does not exist", ns.coll));
            return pass_over(if_exists, missing);
        };
        let Some(text) = entry::query_of(&found) else {
            return fail("42809", format!("\"{}\" is not a view", ns.coll));
        };
        if entry::is_duality(&found) {
            return unsupported("options of a duality view");
        }
        let mut own = Options::of(&found);
        own.check = entry::check_option_of(&found);
        for (name, value) in given {
            match value {
                Some(value) => own.take(name, value)?,
                None if name == "check_option" => own.check = None,
                None if matches!(name.as_str(), "security_barrier" | "security_invoker") => {
                    own.shown.retain(|shown| !shown.starts_with(name.as_str()));
                }
                None => return fail("22023", format!("unrecognized parameter \"{name}\"")),
            }
        }
        if own.check.is_some() {
            let (op, _) = statement.operation(None)?;
            let reading = Reading::new(statement, &*ws, &op, session);
            let schema = schemas::split(reading.view, ns).0;
            check_writable(&reading, (schema, &ns.coll), text)?;
        }
        let check = own.check.map_or("", CheckOption::text);
        let triggers = entry::view_triggers(&found)?;
        let whole = format!("{text}{}{check}", own.text());
        ws.set_options(found.id, options(&ns.coll, &whole, &triggers)?)?;
        Ok(())
    })?;
    Ok("ALTER VIEW")
}

/// Whether there is a view of SQL at a namespace.
pub(super) fn is_view(statement: &Statement<'_>, ns: &Namespace) -> bool {
    let read = statement.current_view();
    let found = read.view().catalog().get(ns);
    found.is_some_and(|collection| entry::query_of(collection).is_some())
}

/// `ALTER VIEW … RENAME COLUMN`: its query is what it was, under other names.
///
/// Errors: 42P01, 42809, 42703, 42701; 0A000 for duality views.
pub(super) fn rename_column(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (ns, from, to): (&Namespace, &Ident, &Ident),
    if_exists: bool,
    progress: &mut Progress,
) -> Result<()> {
    session.check_right(ns, Right::CollMod)?;
    let (from, to) = (ident(from), ident(to));
    statement.atomically(progress, |ws| {
        let Some(found) = ws.catalog().get(ns).cloned() else {
            let missing = error("42P01", format!("relation \"{}\" does not exist", ns.coll));
            return pass_over(if_exists, missing);
        };
        let Some(text) = entry::query_of(&found) else {
            return fail("42809", format!("\"{}\" is not a view", ns.coll));
        };
        if entry::is_duality(&found) {
            return unsupported("RENAME COLUMN of a duality view");
        }
        let (op, _) = statement.operation(None)?;
        let reading = Reading::new(statement, &*ws, &op, session);
        let schema = schemas::split(reading.view, ns).0;
        let mut names: Vec<String> = columns_of(&reading, schema, text)?
            .into_iter()
            .map(|own| own.name)
            .collect();
        if names.contains(&to) {
            let (to, on) = (&to, &ns.coll);
            return fail("42701", format!("column \"{to}\" of relation \"{on}\" already exists"));
        }
        match names.iter_mut().find(|name| **name == from) {
            Some(name) => name.clone_from(&to),
            None => return fail("42703", format!("column \"{from}\" does not exist")),
        }
        let text = renamed(text, &names)?;
        let said = Options::of(&found).text();
        let check = entry::check_option_of(&found).map_or("", CheckOption::text);
        let triggers = entry::view_triggers(&found)?;
        ws.set_options(found.id, options(&ns.coll, &format!("{text}{said}{check}"), &triggers)?)?;
        Ok(())
    })
}

/// The text of a query whose columns have these names.
fn renamed(text: &str, names: &[String]) -> Result<String> {
    // Names that were given before are given anew.
    let inner = entry::parsed(text).and_then(|query| inner_of(&query));
    let of = inner.unwrap_or_else(|| text.to_owned());
    let text = named(&of, names);
    entry::check_text(&text)?;
    Ok(text)
}

/// A query whose columns have these names.
fn named(query: &str, names: &[String]) -> String {
    let quoted = names
        .iter()
        .map(|name| Ident::with_quote('"', name.as_str()).to_string());
    format!(
        "SELECT * FROM ({query}) AS v ({})",
        quoted.collect::<Vec<_>>().join(", ")
    )
}

/// The query whose columns another one does nothing but name.
fn inner_of(query: &Query) -> Option<String> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let [TableWithJoins { relation, joins }] = select.from.as_slice() else {
        return None;
    };
    let TableFactor::Derived {
        subquery,
        alias: Some(alias),
        ..
    } = relation
    else {
        return None;
    };
    let whole = format!("SELECT * FROM ({subquery}) AS {alias}");
    let is_plain = joins.is_empty() && !alias.columns.is_empty() && query.to_string() == whole;
    is_plain.then(|| subquery.to_string())
}

/// The options of the collection that a view is.
///
/// Errors: those of storage.
pub(super) fn options(on: &str, text: &str, triggers: &[Trigger]) -> Result<CollectionOptions> {
    CollectionOptions::parse(doc! {
        "viewOn": on,
        "pipeline": vec![Value::from(entry::view_stage(text, triggers))],
    })
}

/// Whether a view's query reads temporary tables: then it is temporary itself.
///
/// Errors: those of binding it.
fn reads_temporary(statement: &Statement<'_>, session: &SessionFacts, create: &CreateView) -> Result<bool> {
    if !session.temporary.is_used() {
        return Ok(false);
    }
    let (op, _) = statement.operation(None)?;
    let read = statement.current_view();
    let reading = Reading::new(statement, read.view(), &op, session);
    let mut binder = Binder::new(&reading, Vec::new());
    binder.query(&create.query)?;
    Ok(binder.tables.iter().any(|table| schemas::is_temporary(&table.schema)))
}

/// One can write through the query that a text is.
///
/// Errors: 0A000.
fn check_writable(reading: &Reading<'_, '_>, (schema, name): (&str, &str), text: &str) -> Result<()> {
    let Some(query) = entry::parsed(text) else {
        return Ok(());
    };
    let table = Arc::new(Table {
        schema: schema.to_owned(),
        check_option: Some(CheckOption::Cascaded),
        ..Table::new(name, Vec::new(), Kind::Query(query))
    });
    let mut binder = Binder::new(reading, Vec::new());
    match binder.why_not_updatable(&table)? {
        None => Ok(()),
        Some(reason) => {
            let told = error(
                "0A000",
                "WITH CHECK OPTION is supported only on automatically updatable views",
            );
            Err(with(told, &[(ErrorField::Hint, &reason)]))
        }
    }
}

/// Refuses what is not supported.
///
/// Errors: 0A000.
pub(super) fn check(create: &CreateView) -> Result<()> {
    let refused = create.or_alter
        || create.secure
        || create.options != CreateTableOptions::None
        || !create.cluster_by.is_empty()
        || create.comment.is_some()
        || create.with_no_schema_binding
        || create.copy_grants
        || create.to.is_some()
        || create.params.is_some();
    match refused {
        true => unsupported("a clause of this CREATE VIEW"),
        false => Ok(()),
    }
}

/// The text of a view's query, whose columns have the names that the view gives them.
///
/// Errors: 0A000.
pub(super) fn query_text(create: &CreateView) -> Result<String> {
    let text = match create.columns.is_empty() {
        true => create.query.to_string(),
        false => {
            let names = create.columns.iter().map(|column| {
                let plain = column.data_type.is_none() && column.options.is_none();
                match plain {
                    true => Ok(ident(&column.name)),
                    false => unsupported("a column of this form"),
                }
            });
            let names: Vec<String> = names.collect::<Result<_>>()?;
            named(&create.query.to_string(), &names)
        }
    };
    entry::check_text(&text)?;
    Ok(text)
}

/// The columns of the query that a text is.
///
/// Errors: those of binding it; 42701 for two columns of a name, 42P02 for parameters.
pub(super) fn columns_of(reading: &Reading<'_, '_>, schema: &str, text: &str) -> Result<Vec<Field>> {
    let Some(query) = entry::parsed(text) else {
        return unsupported("a view of what is no query");
    };
    let mut binder = Binder::new(reading, Vec::new()).of_view(schema);
    let bound = binder.query(&query)?;
    if !binder.params.is_empty() {
        return fail("42P02", "there is no parameter $1");
    }
    let mut out: Vec<Field> = Vec::new();
    for column in bound.columns.iter().filter(|column| !column.hidden) {
        if out.iter().any(|own| own.name == column.name) {
            return fail("42701", format!("column \"{}\" specified more than once", column.name));
        }
        if column.ty.is_row() {
            let message = format!("column \"{}\" has pseudo-type {}", column.name, column.ty);
            return fail("42P16", message);
        }
        let ty = match &column.ty {
            Type::Unknown => Type::Text,
            ty => ty.clone(),
        };
        out.push(Field {
            ty,
            ..Field::of(column)
        });
    }
    Ok(out)
}
