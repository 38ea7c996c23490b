//! What sessions of SQL begin with: settings of roles and databases, documents of `admin.system.sqlSettings`.
//!
//! ```text
//! {_id: {role: "app", of: "admin", database: "shop"}, settings: {work_mem: "64MB", search_path: "app, public"}}
//! ```
//!
//! `of` is the database that the user belongs to. A role that is empty stands for all of them, and so does a database. They go with the user, the
//! role or the database, by whichever command that goes.

use super::{replace, writable};
use crate::statement::Statement;
use crate::users::UserName;
use nestor_exec::point;
use nestor_exec::write::Writer;
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Namespace, Result, Value, ValueRef, doc};
use nestor_query::env::OpContext;
use nestor_storage::{View, WriteSet};

/// The collection, in `admin`.
const COLLECTION: &str = "system.sqlSettings";

/// Whose sessions begin with settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whose {
    /// The user, or the role of `admin`; `None` for all.
    pub role: Option<UserName>,
    /// The database; `None` for all.
    pub database: Option<String>,
}

impl Whose {
    fn id(&self) -> Value {
        let (role, of) = self
            .role
            .as_ref()
            .map_or(("", ""), |role| (role.user.as_str(), role.db.as_str()));
        let database = self.database.as_deref().unwrap_or_default();
        doc! { "role": role, "of": of, "database": database }.into()
    }

    fn of(document: &Document) -> Option<Self> {
        let id = match document.get("_id")?.to_value() {
            Value::Document(id) => id,
            _ => return None,
        };
        let text = |field: &str| id.get(field).and_then(ValueRef::as_str).unwrap_or_default().to_owned();
        let (role, database) = (text("role"), text("database"));
        Some(Self {
            role: (!role.is_empty()).then(|| UserName::new(&role, &text("of"))),
            database: (!database.is_empty()).then_some(database),
        })
    }
}

/// Settings by their names, in the order in which they were made.
pub type Settings = Vec<(String, String)>;

fn settings(document: &Document) -> Settings {
    let own = match document.get("settings").map(|own| own.to_value()) {
        Some(Value::Document(own)) => own,
        _ => return Vec::new(),
    };
    let each = own
        .iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())));
    each.collect()
}

fn namespace() -> Namespace {
    Namespace::new(ADMIN, COLLECTION)
}

/// All that there are.
///
/// Errors: those of reading.
pub fn all(view: &dyn View) -> Result<Vec<(Whose, Settings)>> {
    let each = replace::read_all(view, &namespace())?.into_iter();
    Ok(each
        .filter_map(|own| Some((Whose::of(&own)?, settings(&own))))
        .collect())
}

/// Those that a session of a user in a database begins with; of two of a name the later one counts.
///
/// Errors: those of reading.
pub fn of_session(view: &dyn View, role: &UserName, database: &str) -> Result<Settings> {
    let mut out = Vec::new();
    let Some(collection) = view.catalog().get(&namespace()).cloned() else {
        return Ok(out);
    };
    for (has_role, has_database) in [(false, false), (false, true), (true, false), (true, true)] {
        let whose = Whose {
            role: has_role.then(|| role.clone()),
            database: has_database.then(|| database.to_owned()),
        };
        if let Some((_, bytes)) = point::by_id(view, &collection, whose.id().as_ref())? {
            out.extend(settings(&bytes.document().as_doc().to_document()));
        }
    }
    Ok(out)
}

/// Changes them. Without any they are gone.
///
/// Errors: those of writing.
pub fn change(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    whose: &Whose,
    change: impl FnOnce(&mut Settings),
) -> Result<()> {
    let ns = namespace();
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    let found = match ws.catalog().get(&ns).cloned() {
        Some(collection) => point::by_id(ws, &collection, whose.id().as_ref())?,
        None => None,
    };
    let before = found
        .as_ref()
        .map(|(_, old)| settings(&old.document().as_doc().to_document()));
    let mut now = before.clone().unwrap_or_default();
    change(&mut now);
    if now == before.unwrap_or_default() {
        return Ok(());
    }
    let mut own = Document::new();
    now.iter()
        .for_each(|(name, value)| own.push(name.as_str(), value.as_str()));
    let document = doc! { "_id": whose.id(), "settings": own };
    let collection = writable(ws, &ns, statement, &mut None)?;
    let mut writer = Writer::new(ws, collection, &op, statement.origin(ADMIN))?;
    match &found {
        Some((record, old)) if now.is_empty() => writer.delete(record, old.document(), None),
        found => replace::put(&mut writer, found.as_ref(), document.to_raw()),
    }
}

fn forget(statement: &Statement<'_>, ws: &mut WriteSet, is_gone: impl Fn(&Whose) -> bool) -> Result<()> {
    for (whose, _) in all(ws)?.iter().filter(|(whose, _)| is_gone(whose)) {
        change(statement, ws, whose, Settings::clear)?;
    }
    Ok(())
}

/// Forgets those of a user or role that has gone.
///
/// Errors: those of writing.
pub fn forget_role(statement: &Statement<'_>, ws: &mut WriteSet, role: &UserName) -> Result<()> {
    forget(statement, ws, |whose| whose.role.as_ref() == Some(role))
}

/// Forgets those of a database that has gone.
///
/// Errors: those of writing.
pub fn forget_database(statement: &Statement<'_>, ws: &mut WriteSet, database: &str) -> Result<()> {
    forget(statement, ws, |whose| whose.database.as_deref() == Some(database))
}
