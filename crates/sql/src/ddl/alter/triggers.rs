//! CREATE, ALTER and DROP TRIGGER: triggers are a part of the declaration of their table.

use super::{Edit, Found, found};
use crate::bind::declared::Declared;
use crate::bind::entry;
use crate::bind::{ident, storage};
use crate::catalog::routines::Returns;
use crate::catalog::{Catalog as _, schemas};
use crate::ddl::{namespace, partition};
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::trigger::{Event, Trigger};
use crate::run::built_in;
use crate::run::partitions::descendants;
use crate::run::references::references;
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{Namespace, Result};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{AlterTableOperation, Ident, ObjectName};

/// Which trigger of a table is called from now on, or no more with `true`; `None` for other changes.
///
/// Errors: 0A000.
pub(super) fn switched(operation: &AlterTableOperation) -> Result<Option<(String, bool)>> {
    match operation {
        AlterTableOperation::DisableTrigger { name } => Ok(Some((word(name), true))),
        AlterTableOperation::EnableTrigger { name } => Ok(Some((word(name), false))),
        AlterTableOperation::EnableAlwaysTrigger { .. } | AlterTableOperation::EnableReplicaTrigger { .. } => {
            unsupported("ENABLE ALWAYS and ENABLE REPLICA TRIGGER")
        }
        _ => Ok(None),
    }
}

/// All triggers that somebody has made.
const OF_USERS: &str = "*";
/// Those and what keeps foreign keys.
const ALL: &str = "**";

/// The name of a trigger; `ALL` and `USER` are words.
fn word(name: &Ident) -> String {
    let is = |word: &str| name.quote_style.is_none() && name.value.eq_ignore_ascii_case(word);
    match (is("ALL"), is("USER")) {
        (true, _) => ALL.to_owned(),
        (_, true) => OF_USERS.to_owned(),
        _ => ident(name),
    }
}

/// Has the foreign keys of a table looked at from now on, or no more.
///
/// Errors: 42501 for who is no superuser.
fn switch_keys(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ns, are_off): (&Namespace, bool),
) -> Result<()> {
    if ws.catalog().get(ns).is_none_or(|own| own.is_view()) {
        return Ok(());
    }
    let Some(mut found) = found(&*ws, ns)? else {
        return Ok(());
    };
    let has_none = || found.declared.foreign.is_empty() && references(&*ws, ns).is_empty();
    if found.declared.keys_are_off == are_off || are_off && has_none() {
        return Ok(());
    }
    if !session.is_superuser() {
        let name = format!("RI_ConstraintTrigger_a_{}", found.collection.id.0);
        return fail("42501", format!("permission denied: \"{name}\" is a system trigger"));
    }
    let options = &mut found.create.table_options;
    *options = storage::with_keys(options, are_off)?;
    let declared = Declared {
        keys_are_off: are_off,
        ..(*found.declared).clone()
    };
    let text = declared.named(&found.create).to_string();
    catalog::set_validator(statement, ws, &found.collection, &declared.validator(&text))
}

/// The triggers of a table that is declared anew: columns keep theirs under other names.
///
/// Errors: 2BP01 for a column that goes and that one names.
pub(super) fn kept(found: &Found, declared: &Declared, edit: &Edit) -> Result<std::sync::Arc<[Trigger]>> {
    let now = |before: usize| edit.sources.iter().position(|source| source.before() == Some(before));
    let mut out = Vec::new();
    for trigger in found.declared.triggers.iter() {
        let mut trigger = trigger.clone();
        let mut goes = false;
        for (before, own) in found.declared.columns.iter().enumerate() {
            let text = trigger.condition.as_ref().map(ToString::to_string).unwrap_or_default();
            let at = trigger.columns.iter().position(|name| *name == own.name);
            let is_named = at.is_some() || renamed(&text, &own.name, "\u{1}") != text;
            match now(before) {
                _ if !is_named => {}
                None if edit.cascades => goes = true,
                None => return Err(depends(&trigger.name, &own.name, &found.name)),
                Some(now) => {
                    let name = &declared.columns[now].name;
                    if let Some(at) = at {
                        trigger.columns[at].clone_from(name);
                    }
                    if let Some(condition) = trigger.condition.as_mut().filter(|_| *name != own.name) {
                        **condition = crate::parse::expression(&renamed(&text, &own.name, name))?;
                    }
                }
            }
        }
        if !goes {
            out.push(trigger);
        }
    }
    Ok(out.into())
}

/// 2BP01: a column goes that a trigger names.
fn depends(trigger: &str, column: &str, table: &str) -> nestor_model::Error {
    let message = format!("cannot drop column {column} of table {table} because other objects depend on it");
    let detail = format!("trigger {trigger} on table {table} depends on column {column} of table {table}");
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    let fields = [
        (crate::error::Field::Detail, detail.as_str()),
        (crate::error::Field::Hint, hint),
    ];
    crate::error::with(error("2BP01", message), &fields)
}

/// A condition in which a field of OLD and NEW has another name.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let tokens = crate::parse::own::tokens(text);
    let mut out = String::new();
    let mut before = None;
    for token in &tokens {
        let is_it = matches!(token, sqlparser::tokenizer::Token::Word(word) if before == Some(&sqlparser::tokenizer::Token::Period) && word.value == from);
        match is_it {
            true => out.push_str(&crate::parse::trigger::quoted(to)),
            false => out.push_str(&crate::parse::own::shown(token)),
        }
        before = Some(token);
    }
    out
}

/// Changes the triggers of a table.
fn change(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    ns: &Namespace,
    change: impl FnOnce(&mut Vec<Trigger>) -> Result<()>,
) -> Result<()> {
    let view = ws.catalog().get(ns).filter(|own| own.is_view()).cloned();
    if let Some(view) = view {
        let text = entry::view_text(&view).unwrap_or_default();
        let mut triggers = entry::view_triggers(&view)?.to_vec();
        change(&mut triggers)?;
        triggers.sort_by(|a, b| a.name.cmp(&b.name));
        for trigger in &triggers {
            entry::check_text(&trigger.kept())?;
        }
        ws.set_options(view.id, crate::ddl::view::options(&ns.coll, text, &triggers)?)?;
        let before = entry::view_triggers(&view)?;
        return said_of(statement, ws, &view, (&before, &triggers));
    }
    let Some(found) = found(&*ws, ns)? else {
        return Err(no_table(ns));
    };
    let mut triggers = found.declared.triggers.to_vec();
    change(&mut triggers)?;
    triggers.sort_by(|a, b| a.name.cmp(&b.name));
    // Scripts switch the triggers of all tables off and on, most of which have none.
    if *triggers == *found.declared.triggers {
        return Ok(());
    }
    said_of(statement, ws, &found.collection, (&found.declared.triggers, &triggers))?;
    let declared = Declared {
        triggers: triggers.into(),
        ..(*found.declared).clone()
    };
    let text = declared.named(&found.create).to_string();
    for trigger in declared.triggers.iter() {
        entry::check_text(&trigger.kept())?;
    }
    catalog::set_validator(statement, ws, &found.collection, &declared.validator(&text))
}

/// What is said of triggers goes with them.
fn said_of(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    collection: &Collection,
    (before, now): (&[Trigger], &[Trigger]),
) -> Result<()> {
    let names = |all: &[Trigger]| all.iter().map(|own| own.name.clone()).collect::<Vec<_>>();
    let of = (&*collection.ns.db, collection.uuid);
    comments::follow(statement, ws, of, "triggers", (&names(before), &names(now)))
}

/// Has a trigger call a function that has another name or schema now.
///
/// Errors: those of the catalog.
pub(in crate::ddl) fn call(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    (ns, name): (&Namespace, &str),
    (schema, function): (Option<String>, String),
) -> Result<()> {
    change(statement, ws, ns, |triggers| {
        for trigger in triggers.iter_mut().filter(|own| own.name == name) {
            trigger.schema.clone_from(&schema);
            trigger.function.clone_from(&function);
        }
        Ok(())
    })
}

/// Gives a table triggers; those that are there already go where one `replaces` them.
///
/// Errors: 42710.
pub(in crate::ddl) fn add(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    ns: &Namespace,
    all: &[Trigger],
    replaces: bool,
) -> Result<()> {
    change(statement, ws, ns, |triggers| {
        for own in all {
            if triggers.iter().any(|before| before.name == own.name) {
                if !replaces {
                    let message = format!("trigger \"{}\" for relation \"{}\" already exists", own.name, ns.coll);
                    return fail("42710", message);
                }
                triggers.retain(|before| before.name != own.name);
            }
            triggers.push(own.clone());
        }
        Ok(())
    })
}

/// The partitions below a table, which have its triggers for each row.
fn below(ws: &WriteSet, ns: &Namespace) -> Vec<Namespace> {
    let all = descendants(ws, ns).into_iter();
    all.map(|(collection, _)| collection.ns.clone()).collect()
}

/// CREATE TRIGGER.
///
/// Errors: 42710 for a name that is taken, 42883 for a function that there is not, 42P17 for one of no trigger, 42703; 0A000.
pub(in crate::ddl) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (table, trigger, replaces): (&ObjectName, &Trigger, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, table)?;
    session.check_right(&ns, Right::CollMod)?;
    session.deferred.check_none_of(&ns, "CREATE TRIGGER")?;
    if trigger.is_off {
        return fail("42601", "syntax error at or near \"DISABLED\"");
    }
    check_kind(trigger)?;
    if replaces && trigger.constraint.is_some() {
        return unsupported("CREATE OR REPLACE CONSTRAINT TRIGGER");
    }
    if trigger.is_row && trigger.events.contains(&Event::Truncate) {
        return fail("0A000", "TRUNCATE FOR EACH ROW triggers are not supported");
    }
    statement.atomically(progress, |ws| {
        let (op, _) = statement.operation(None)?;
        let collection = ws.catalog().get(&ns).cloned();
        if let Some(collection) = &collection {
            if collection.is_view() && trigger.is_instead && entry::query_of(collection).is_some() {
                if !trigger.is_row {
                    return fail("0A000", "INSTEAD OF triggers must be FOR EACH ROW");
                }
                if trigger.condition.is_some() {
                    return fail("0A000", "INSTEAD OF triggers cannot have WHEN conditions");
                }
                if !trigger.columns.is_empty() {
                    return fail("0A000", "INSTEAD OF triggers cannot have column lists");
                }
            } else if collection.is_view() {
                let message = format!("\"{}\" is a view", ns.coll);
                let detail = match trigger.is_row {
                    true => "Views cannot have row-level BEFORE or AFTER triggers.",
                    false => return unsupported("a trigger of a view"),
                };
                return Err(crate::error::with(
                    error("42809", message),
                    &[(crate::error::Field::Detail, detail)],
                ));
            }
            if trigger.is_instead && !collection.is_view() {
                let told = error("42809", format!("\"{}\" is a table", ns.coll));
                let detail = "Tables cannot have INSTEAD OF triggers.";
                return Err(crate::error::with(told, &[(crate::error::Field::Detail, detail)]));
            }
            if entry::of(collection).is_none() && !collection.is_view() {
                return unsupported("a trigger of a collection that was not declared as a table");
            }
        }
        let is_built_in = built_in::is_function(trigger.schema.as_deref(), &trigger.function);
        let function = if is_built_in {
            None
        } else {
            let reading = Reading::new(statement, &*ws, &op, session);
            let all = reading.routines(trigger.schema.as_deref(), &trigger.function);
            all.into_iter().find(|own| own.args.is_empty())
        };
        let schema = match function {
            _ if is_built_in => built_in::SCHEMA.to_owned(),
            None => return fail("42883", format!("function {}() does not exist", trigger.function)),
            Some(function) if !matches!(function.returns, Returns::Trigger) => {
                let message = format!("function {} must return type trigger", trigger.function);
                return fail("42P17", message);
            }
            Some(function) => function.schema.clone().unwrap_or_else(|| schemas::PUBLIC.to_owned()),
        };
        let mut made = trigger.clone();
        // It stays the one that is found now.
        made.schema = Some(schema);
        change(statement, ws, &ns, |triggers| {
            if let Some(at) = triggers.iter().position(|own| own.name == made.name) {
                if !replaces {
                    let message = format!("trigger \"{}\" for relation \"{}\" already exists", made.name, ns.coll);
                    return fail("42710", message);
                }
                if triggers[at].constraint.is_some() || made.constraint.is_some() {
                    let message = format!(
                        "trigger \"{}\" for relation \"{}\" is a constraint trigger",
                        made.name, ns.coll
                    );
                    return fail("42710", message);
                }
                triggers.remove(at);
            }
            triggers.push(made.clone());
            Ok(())
        })?;
        if trigger.is_instead {
            return Ok(());
        }
        let Some(found) = found(&*ws, &ns)? else { return Ok(()) };
        for own in &trigger.columns {
            if found.declared.columns.iter().all(|column| column.name != *own) {
                let message = format!("column \"{own}\" of relation \"{}\" does not exist", ns.coll);
                return fail("42703", message);
            }
        }
        check_condition(trigger, &found)?;
        if found.declared.division.is_some() {
            if trigger.has_tables() {
                return unsupported("a trigger of a partitioned table that reads the statement's rows as tables");
            }
            for own in below(&*ws, &ns).iter().filter(|_| trigger.is_row) {
                add(statement, ws, own, std::slice::from_ref(&made), replaces)?;
            }
        }
        Ok(())
    })?;
    Ok("CREATE TRIGGER")
}

/// Refuses a constraint, or tables of rows, where there can be none.
///
/// Errors: 42601, 42P17, 0A000.
fn check_kind(trigger: &Trigger) -> Result<()> {
    if trigger.constraint.is_some() {
        if trigger.is_before {
            return fail("42601", "syntax error at or near \"BEFORE\"");
        }
        if !trigger.is_row || trigger.has_tables() {
            return fail("42601", "a constraint trigger is called for each row");
        }
    }
    if !trigger.has_tables() {
        return Ok(());
    }
    let (old, new) = &trigger.tables;
    if trigger.is_before {
        return fail(
            "42P17",
            "transition table name can only be specified for an AFTER trigger",
        );
    }
    if trigger.events.contains(&Event::Truncate) {
        return fail("0A000", "TRUNCATE triggers with transition tables are not supported");
    }
    if trigger.events.len() > 1 {
        return fail(
            "0A000",
            "transition tables cannot be specified for triggers with more than one event",
        );
    }
    if !trigger.columns.is_empty() {
        return fail(
            "0A000",
            "transition tables cannot be specified for triggers with column lists",
        );
    }
    if old.is_some() && trigger.events.contains(&Event::Insert) {
        return fail(
            "42P17",
            "OLD TABLE can only be specified for a DELETE or UPDATE trigger",
        );
    }
    if new.is_some() && trigger.events.contains(&Event::Delete) {
        return fail(
            "42P17",
            "NEW TABLE can only be specified for an INSERT or UPDATE trigger",
        );
    }
    match old == new {
        true => fail("42P17", "OLD TABLE name and NEW TABLE name cannot be the same"),
        false => Ok(()),
    }
}

/// Refuses a condition that names what there is not.
fn check_condition(trigger: &Trigger, found: &Found) -> Result<()> {
    let Some(condition) = &trigger.condition else {
        return Ok(());
    };
    let text = condition.to_string();
    let tokens = crate::parse::own::tokens(&text);
    for (at, token) in tokens.iter().enumerate() {
        let sqlparser::tokenizer::Token::Word(word) = token else {
            continue;
        };
        let which = word.value.to_lowercase();
        let is_row = word.quote_style.is_none() && matches!(which.as_str(), "new" | "old");
        if !is_row || tokens.get(at + 1) != Some(&sqlparser::tokenizer::Token::Period) {
            continue;
        }
        if !trigger.is_row {
            return fail(
                "42P17",
                "statement trigger's WHEN condition cannot reference column values",
            );
        }
        if which == "old" && trigger.events.contains(&Event::Insert) {
            return fail("42P17", "INSERT trigger's WHEN condition cannot reference OLD values");
        }
        if which == "new" && trigger.events.contains(&Event::Delete) {
            return fail("42P17", "DELETE trigger's WHEN condition cannot reference NEW values");
        }
        if let Some(sqlparser::tokenizer::Token::Word(field)) = tokens.get(at + 2) {
            let field = ident(&Ident {
                value: field.value.clone(),
                quote_style: field.quote_style,
                span: sqlparser::tokenizer::Span::empty(),
            });
            if found.declared.columns.iter().all(|column| column.name != field) {
                return fail("42703", format!("column {which}.{field} does not exist"));
            }
        }
    }
    Ok(())
}

/// ALTER TRIGGER … RENAME TO.
///
/// Errors: 42704, 42710.
pub(in crate::ddl) fn rename(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, table, to): (&Ident, &ObjectName, &Ident),
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, table)?;
    session.check_right(&ns, Right::CollMod)?;
    let (name, to) = (ident(name), ident(to));
    statement.atomically(progress, |ws| {
        partition::check_trigger(&*ws, &ns, &name)?;
        change(statement, ws, &ns, |triggers| {
            if triggers.iter().any(|own| own.name == to) {
                let message = format!("trigger \"{to}\" for relation \"{}\" already exists", ns.coll);
                return fail("42710", message);
            }
            match triggers.iter_mut().find(|own| own.name == name) {
                Some(own) => own.name.clone_from(&to),
                None => return Err(none(&name, &ns)),
            }
            Ok(())
        })?;
        for own in below(&*ws, &ns) {
            change(statement, ws, &own, |triggers| {
                for own in triggers.iter_mut().filter(|own| own.name == name) {
                    own.name.clone_from(&to);
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok("ALTER TRIGGER")
}

fn no_table(ns: &Namespace) -> nestor_model::Error {
    error("42P01", format!("relation \"{}\" does not exist", ns.coll))
}

fn none(name: &str, ns: &Namespace) -> nestor_model::Error {
    error(
        "42704",
        format!("trigger \"{name}\" for table \"{}\" does not exist", ns.coll),
    )
}

/// DROP TRIGGER.
///
/// Errors: 42704.
pub(in crate::ddl) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, table, if_exists): (&Ident, &ObjectName, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, table)?;
    session.check_right(&ns, Right::CollMod)?;
    session.deferred.check_none_of(&ns, "DROP TRIGGER")?;
    let name = ident(name);
    statement.atomically(progress, |ws| {
        let Some(collection) = ws.catalog().get(&ns) else {
            return pass_over(if_exists, no_table(&ns));
        };
        let triggers = match Declared::of_collection(collection) {
            Some(declared) => declared.triggers.clone(),
            None => entry::view_triggers(collection)?,
        };
        let is_there = triggers.iter().any(|own| own.name == name);
        if !is_there {
            let missing = error(
                "42704",
                format!("trigger \"{name}\" for relation \"{}\" does not exist", ns.coll),
            );
            return pass_over(if_exists, if if_exists { missing } else { none(&name, &ns) });
        }
        partition::check_trigger(&*ws, &ns, &name)?;
        for own in below(&*ws, &ns) {
            remove(statement, ws, &own, &name)?;
        }
        remove(statement, ws, &ns, &name)
    })?;
    Ok("DROP TRIGGER")
}

/// Takes a trigger from a table.
///
/// Errors: those of the catalog.
pub(in crate::ddl) fn remove(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace, name: &str) -> Result<()> {
    change(statement, ws, ns, |triggers| {
        triggers.retain(|own| own.name != name);
        Ok(())
    })
}

/// ALTER TABLE … ENABLE and DISABLE TRIGGER.
///
/// Errors: 42704.
pub(super) fn switch(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (ns, name, is_off): (&Namespace, &str, bool),
    if_exists: bool,
    progress: &mut Progress,
) -> Result<()> {
    statement.atomically(progress, |ws| {
        if ws.catalog().get(ns).is_none() {
            return pass_over(if_exists, no_table(ns));
        }
        let is_any = matches!(name, ALL | OF_USERS);
        change(statement, ws, ns, |triggers| {
            let mut any = is_any;
            for own in triggers.iter_mut().filter(|own| is_any || own.name == name) {
                own.is_off = is_off;
                any = true;
            }
            match any {
                true => Ok(()),
                false => Err(none(name, ns)),
            }
        })?;
        if name == ALL {
            switch_keys(statement, session, ws, (ns, is_off))?;
        }
        for below in below(&*ws, ns) {
            change(statement, ws, &below, |triggers| {
                for own in triggers.iter_mut().filter(|own| is_any || own.name == name) {
                    own.is_off = is_off;
                }
                Ok(())
            })?;
            if name == ALL {
                switch_keys(statement, session, ws, (&below, is_off))?;
            }
        }
        Ok(())
    })
}
