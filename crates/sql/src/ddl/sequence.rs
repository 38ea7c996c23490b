//! CREATE, ALTER and DROP SEQUENCE.

use super::{free, made_namespace, name_of, namespace, namespace_in, note_made, roles};
use crate::bind::declared::Declared;
use crate::bind::entry::{self, Object};
use crate::bind::types::data_type;
use crate::bind::{ident, numbers};
use crate::catalog::Column;
use crate::error::{self, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::own::AlterSequence;
use crate::run::numbers::{Sequence, of_collection};
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::sequence::{Counting, Key};
use nestor_database::write::{Progress, catalog, comments, sequence};
use nestor_model::{CollectionOptions, Namespace, Result, Value, doc};
use nestor_storage::{Collection, View, WriteSet};
use sqlparser::ast::{CreateTable, Ident, ObjectName, ObjectNamePart, SequenceOptions, Statement as Ast};
use std::sync::Arc;

/// CREATE SEQUENCE: an entry that holds no documents.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ast: &Ast,
    progress: &mut Progress,
) -> Result<&'static str> {
    let Ast::CreateSequence {
        temporary,
        if_not_exists,
        name,
        data_type: ty,
        sequence_options,
        owned_by,
    } = ast
    else {
        return fail("XX000", "a sequence was to be made of another statement");
    };
    let ns = made_namespace(statement, session, (*temporary, name), progress)?;
    session.check_right(&ns, Right::CreateCollection)?;
    let ty = match ty {
        None => Type::Int8,
        Some(ty) => data_type(ty)?.0,
    };
    entry::counting(sequence_options, &ty)?;
    let mut named = ast.clone();
    if let Ast::CreateSequence {
        temporary,
        name,
        owned_by: owner,
        ..
    } = &mut named
    {
        *temporary = false;
        let read = statement.current_view();
        *name = name_of(read.view(), &ns);
        *owner = owned(read.view(), session, owned_by.as_ref())?;
    }
    let text = named.to_string();
    entry::check_text(&text)?;
    let options = options(&text)?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        Some(_) => pass_over(
            *if_not_exists,
            error::error("42P07", format!("relation \"{}\" already exists", ns.coll)),
        ),
        None => {
            note_made(statement, session, ws, &ns)?;
            catalog::create(statement, ws, &ns, uuid, &options)
        }
    })?;
    Ok("CREATE SEQUENCE")
}

/// The column that a sequence goes with, by its collection and name.
///
/// Errors: 42P01, 42703, 42809; 42601 for a name that is no column's.
fn owned(view: &dyn View, session: &SessionFacts, owner: Option<&ObjectName>) -> Result<Option<ObjectName>> {
    let Some(owner) = owner else { return Ok(None) };
    let Some((ObjectNamePart::Identifier(column), table)) = owner.0.split_last() else {
        return unsupported("an owner of this form");
    };
    if table.is_empty() {
        return match ident(column).as_str() {
            "none" => Ok(None),
            _ => fail("42601", "invalid OWNED BY option"),
        };
    }
    let ns = namespace_in(view, session, &ObjectName(table.to_vec()))?;
    let Some(collection) = view.catalog().get(&ns) else {
        return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
    };
    let Some(declared) = Declared::of_collection(collection) else {
        return fail("42809", format!("sequence cannot be owned by relation \"{}\"", ns.coll));
    };
    let column = ident(column);
    if declared.columns.iter().all(|own| own.name != column) {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", ns.coll);
        return fail("42703", message);
    }
    let parts = [ns.coll.as_str(), &column].map(|part| Ident::with_quote('"', part));
    Ok(Some(ObjectName::from(parts.to_vec())))
}

/// The text that makes a sequence as it is.
fn declared_text(name: &ObjectName, counting: &Counting, ty: &Type, owner: Option<&ObjectName>) -> String {
    let Counting {
        start,
        increment,
        min,
        max,
        cycle,
        cache,
    } = counting;
    let cycle = if *cycle { "CYCLE" } else { "NO CYCLE" };
    let owner = owner.map_or_else(String::new, |owner| format!(" OWNED BY {owner}"));
    format!(
        "CREATE SEQUENCE {name} AS {ty} INCREMENT BY {increment} MINVALUE {min} MAXVALUE {max} START WITH {start} CACHE {cache} {cycle}{owner}"
    )
}

/// How a sequence counts that counted so before, and the type of its numbers.
fn recounted(old: &Counting, old_ty: &Type, alter: &AlterSequence) -> Result<(Counting, Type)> {
    let ty = match &alter.ty {
        Some(ty) => data_type(ty)?.0,
        None => old_ty.clone(),
    };
    let (before, now) = (entry::limits(old_ty)?, entry::limits(&ty)?);
    let mut new = *old;
    // What was the end of the type is that of the other one.
    if new.min == before.0 {
        new.min = now.0;
    }
    if new.max == before.1 {
        new.max = now.1;
    }
    for option in &alter.options {
        if let SequenceOptions::IncrementBy(by, _) = option {
            new.increment = entry::number(by)?;
        }
    }
    let (low, high) = if new.increment > 0 { (1, now.1) } else { (now.0, -1) };
    for option in &alter.options {
        match option {
            SequenceOptions::MinValue(value) => new.min = value.as_ref().map_or(Ok(low), entry::number)?,
            SequenceOptions::MaxValue(value) => new.max = value.as_ref().map_or(Ok(high), entry::number)?,
            SequenceOptions::StartWith(value, _) => new.start = entry::number(value)?,
            SequenceOptions::Cycle(no) => new.cycle = !no,
            SequenceOptions::Cache(size) => new.cache = entry::cached(size)?,
            SequenceOptions::IncrementBy(..) => {}
        }
    }
    Ok((new, ty))
}

/// Declares the column of a sequence anew, with how it counts.
pub(super) type Recount<'r> = dyn Fn(&mut WriteSet, &Sequence, Counting) -> Result<()> + 'r;

/// Has a serial column ask its sequence, which stands for itself from then on.
pub(super) type Stand<'r> = dyn Fn(&mut WriteSet, &Sequence) -> Result<()> + 'r;

/// Takes the defaults that ask a sequence which goes, or refuses.
pub(super) type Unasked<'r> = dyn Fn(&mut WriteSet, &Namespace) -> Result<()> + 'r;

/// ALTER SEQUENCE. RESTART takes effect at once, as `setval` does, also in a transaction.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    alter: &AlterSequence,
    (recount, stand): (&Recount<'_>, &Stand<'_>),
    progress: &mut Progress,
) -> Result<&'static str> {
    statement.atomically(progress, |ws| {
        let (op, _) = statement.operation(None)?;
        let name = Value::String(alter.name.to_string().into());
        let found = Reading::new(statement, &*ws, &op, session).sequence(&name);
        let found = match found {
            Err(missing) if error::state(&missing) == "42P01" => return pass_over(alter.if_exists, missing),
            found => found?,
        };
        session.check_right(&found.ns, Right::CollMod)?;
        let is_of_serial = found.owner.is_some() && !found.is_identity;
        let found = match is_of_serial && (alter.owned_by.is_some() || alter.ty.is_some() || !alter.options.is_empty())
        {
            true => {
                stand(ws, &found)?;
                Reading::new(statement, &*ws, &op, session).sequence(&name)?
            }
            false => found,
        };
        let db = &found.ns.db;
        let counting = match found.owner {
            Some(_) => {
                let ty = alter.ty.as_ref().map(data_type).transpose()?;
                if alter.owned_by.is_some() || ty.is_some_and(|(ty, _)| ty != found.ty) {
                    return unsupported("to change what the sequence of a column belongs to, or its type alone");
                }
                match alter.options.is_empty() {
                    true => found.counting,
                    false => {
                        let (counting, _) = recounted(&found.counting, &found.ty, alter)?;
                        recount(ws, &found, counting)?;
                        counting
                    }
                }
            }
            None => {
                let (counting, ty) = recounted(&found.counting, &found.ty, alter)?;
                let owner = match &alter.owned_by {
                    Some(_) => owned(&*ws, session, alter.owned_by.as_ref())?,
                    None => found.owned_by.as_ref().map(owner_name),
                };
                let text = declared_text(&name_of(&*ws, &found.ns), &counting, &ty, owner.as_ref());
                declare(statement, ws, &found.ns, &text)?;
                counting
            }
        };
        let last = match alter.restart {
            Some(restart) => Some((restart.unwrap_or(counting.start), false)),
            None => sequence::state(statement.database, db, found.key())?,
        };
        if let Some((last, is_called)) = last {
            let Counting { min, max, .. } = counting;
            if last < min {
                return fail(
                    "22023",
                    format!("RESTART value ({last}) cannot be less than MINVALUE ({min})"),
                );
            }
            if last > max {
                return fail(
                    "22023",
                    format!("RESTART value ({last}) cannot be greater than MAXVALUE ({max})"),
                );
            }
            if alter.restart.is_some() {
                sequence::set(statement, db, found.key(), (last, is_called))?;
            }
        }
        Ok(())
    })?;
    Ok("ALTER SEQUENCE")
}

fn owner_name((table, column): &(String, String)) -> ObjectName {
    ObjectName::from(
        [table, column]
            .map(|part| Ident::with_quote('"', part.as_str()))
            .to_vec(),
    )
}

/// Gives the sequences of a table's columns names that nothing has, but for those of columns that counted `before`.
pub(super) fn name_new(
    reading: &Reading<'_, '_>,
    create: &mut CreateTable,
    (ns, table): (&Namespace, &str),
    columns: &[Column],
    before: &[Column],
) {
    let counts = |column: &&Column| column.identity.is_some() && column.sequence.is_none();
    let is_known = |column: &&Column| {
        before
            .iter()
            .any(|own| own.name == column.name && own.identity.is_some())
    };
    let mut taken = Vec::new();
    for column in columns.iter().filter(counts).filter(|column| !is_known(column)) {
        let free = free::beside(reading, ns, (table, &column.name, "seq"), &taken);
        if free != column.sequence_of(table) {
            numbers::name(create, &column.name, &free);
        }
        taken.push(free);
    }
}

/// The sequence of a serial column stands for itself, with its name and its numbers, and goes with the column still: what gives the column its
/// values is something else now.
///
/// Errors: those of the catalog and of writing.
pub(super) fn release(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    sequence: &Sequence,
    owner: &(String, String),
) -> Result<()> {
    let ns = Namespace::new(&*sequence.ns.db, sequence.full_name());
    let text = declared_text(
        &name_of(&*ws, &ns),
        &sequence.counting,
        &sequence.ty,
        Some(&owner_name(owner)),
    );
    entry::check_text(&text)?;
    let uuid = statement.database.new_uuid();
    catalog::create(statement, ws, &ns, uuid, &options(&text)?)?;
    let key = Key {
        collection: uuid,
        column: "",
    };
    match sequence::state(statement.database, &ns.db, sequence.key())? {
        Some(state) => sequence::set(statement, &ns.db, key, state),
        None => Ok(()),
    }
}

/// The options of the entry that a sequence is.
fn options(text: &str) -> Result<CollectionOptions> {
    let validator = entry::validator(entry::SEQUENCE, text);
    CollectionOptions::parse(doc! { "validator": validator, "validationLevel": "strict", "validationAction": "error" })
}

/// Declares a sequence anew, by a text that is one.
fn declare(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace, text: &str) -> Result<()> {
    let parsed = crate::parse::parse(text)?.pop();
    let Some(Ast::CreateSequence {
        data_type: Some(ty),
        sequence_options,
        ..
    }) = parsed
    else {
        return fail("XX000", "a sequence is declared by no CREATE SEQUENCE");
    };
    entry::counting(&sequence_options, &data_type(&ty)?.0)?;
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
    };
    catalog::set_validator(statement, ws, &collection, &entry::validator(entry::SEQUENCE, text))
}

/// The sequences of a table's columns begin again, at once, which is on disk then: TRUNCATE … RESTART IDENTITY.
///
/// Errors: those of names and of writing.
pub fn restart(statement: &Statement<'_>, session: &SessionFacts, ns: &Namespace) -> Result<()> {
    let sequences: Vec<Sequence> = {
        let read = statement.current_view();
        let database = read.view().catalog().database(&ns.db);
        let all = database.into_iter().flat_map(|database| database.collections());
        let all = all.flat_map(|collection| of_collection(collection));
        let goes_with = |sequence: &Sequence| {
            let owner = sequence.owned_by.as_ref();
            sequence.owner.is_some() && sequence.ns == *ns || owner.is_some_and(|(table, _)| *table == *ns.coll)
        };
        all.filter(goes_with).collect()
    };
    for found in sequences {
        session.check_right(&found.ns, Right::Update)?;
        sequence::set(statement, &ns.db, found.key(), (found.counting.start, false))?;
    }
    statement.settle_numbers()
}

/// Sequences follow the columns that they go with: `now` gives the collection and the column of each, if it is there still.
///
/// Errors: those of the catalog.
pub(super) fn follow(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    table: &Namespace,
    now: &dyn Fn(&str) -> Option<(String, String)>,
) -> Result<()> {
    let database = ws.catalog().database(&table.db).cloned();
    let collections = database.iter().flat_map(|database| database.collections());
    let owned: Vec<Arc<Collection>> = collections
        .filter(|collection| match entry::of(collection) {
            Some(Object::Sequence(.., Some((owner, _)))) => *owner == *table.coll,
            _ => false,
        })
        .cloned()
        .collect();
    for collection in owned {
        let Some(Object::Sequence(counting, ty, _, Some(owner))) = entry::of(&collection) else {
            continue;
        };
        match now(&owner.1) {
            None => let_go(statement, ws, &collection)?,
            Some(new) if new == *owner => {}
            Some(new) => {
                let name = name_of(&*ws, &collection.ns);
                let text = declared_text(&name, counting, ty, Some(&owner_name(&new)));
                declare(statement, ws, &collection.ns, &text)?;
            }
        }
    }
    Ok(())
}

/// DROP SEQUENCE. `unasked` lets go of the defaults of columns that ask a sequence, or refuses that.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists): (&[ObjectName], bool),
    (unasked, stand): (&Unasked<'_>, &Stand<'_>),
    progress: &mut Progress,
) -> Result<&'static str> {
    let all: Vec<Namespace> = names
        .iter()
        .map(|name| namespace(statement, session, name))
        .collect::<Result<_>>()?;
    all.iter()
        .try_for_each(|ns| session.check_right(ns, Right::DropCollection))?;
    statement.atomically(progress, |ws| {
        for (name, ns) in names.iter().zip(&all) {
            let found = match ws.catalog().get(ns).cloned() {
                None => stood(statement, session, ws, name, stand)?,
                found => found,
            };
            let Some(found) = found else {
                pass_over(
                    if_exists,
                    error::error("42P01", format!("sequence \"{}\" does not exist", ns.coll)),
                )?;
                continue;
            };
            if !matches!(entry::of(&found), Some(Object::Sequence(..))) {
                return fail("42809", format!("\"{}\" is not a sequence", ns.coll));
            }
            unasked(ws, &found.ns)?;
            let_go(statement, ws, &found)?;
        }
        Ok(())
    })?;
    Ok("DROP SEQUENCE")
}

/// The sequence of a serial column, which stands for itself from then on; `None` where there is none of the name.
///
/// Errors: 2BP01 for that of an IDENTITY column.
fn stood(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    name: &ObjectName,
    stand: &Stand<'_>,
) -> Result<Option<Arc<Collection>>> {
    let (op, _) = statement.operation(None)?;
    let asked = Value::String(name.to_string().into());
    let found = Reading::new(statement, &*ws, &op, session).sequence(&asked);
    let Some(own) = found.ok().filter(|own| own.owner.is_some()) else {
        return Ok(None);
    };
    if own.is_identity {
        let (name, column, table) = (&own.name, own.column(), &own.ns.coll);
        let message = format!("cannot drop sequence {name} because column {column} of table {table} requires it");
        let hint = format!("You can drop column {column} of table {table} instead.");
        return Err(error::with(
            error::error("2BP01", message),
            &[(error::Field::Hint, &hint)],
        ));
    }
    session.check_right(&own.ns, Right::CollMod)?;
    stand(ws, &own)?;
    Ok(ws.catalog().get(&Namespace::new(&*own.ns.db, own.full_name())).cloned())
}

/// Drops a sequence with what was said of it and its numbers.
///
/// Errors: those of the catalog.
pub(super) fn let_go(statement: &Statement<'_>, ws: &mut WriteSet, found: &Collection) -> Result<()> {
    let ns = &found.ns;
    catalog::drop(statement, ws, ns)?;
    roles::follow(statement, ws, ns, None)?;
    comments::forget(statement, ws, &ns.db, found.uuid)?;
    let key = Key {
        collection: found.uuid,
        column: "",
    };
    sequence::forget(statement, ws, &ns.db, &[key])
}
