//! One operation of the log: what it did, to what, and whether a stream tells of it.
//!
//! An operation is an entry of the log, or one of those that an `applyOps` entry, a transaction, has. Of an operation that is not
//! the stream's, only the namespace is looked at.

use nestor_model::namespace::is_internal_database;
use nestor_model::{DocRef, RawDoc, RawWriter, ValueRef};
use nestor_query::stage::change_stream::{ChangeStream, Watched};

/// The kind of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Insert,
    Update,
    Replace,
    Delete,
    Create,
    CreateIndexes,
    DropIndexes,
    Modify,
    Drop,
    Rename,
    DropDatabase,
    Invalidate,
}

impl Kind {
    /// `operationType`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::CreateIndexes => "createIndexes",
            Self::DropIndexes => "dropIndexes",
            Self::Modify => "modify",
            Self::Drop => "drop",
            Self::Rename => "rename",
            Self::DropDatabase => "dropDatabase",
            Self::Invalidate => "invalidate",
        }
    }

    /// Whether only streams with `showExpandedEvents` tell of it.
    fn is_expanded(self) -> bool {
        matches!(
            self,
            Self::Create | Self::CreateIndexes | Self::DropIndexes | Self::Modify
        )
    }
}

/// An operation that a stream tells of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'e> {
    pub(super) kind: Kind,
    /// Database and collection; the collection is empty for what happened to a whole database.
    pub(super) ns: (&'e str, &'e str),
    /// Where the collection of a rename went.
    pub(super) to: Option<(&'e str, &'e str)>,
    /// The collection; zeros when the log names none.
    pub(super) uuid: [u8; 16],
    /// The document, its key, the difference or the command.
    pub(super) o: RawDoc<'e>,
    /// The key of what was changed, or what a command replaced.
    pub(super) o2: Option<RawDoc<'e>>,
    /// Whether the stream ends behind it.
    pub(super) invalidates: bool,
}

/// The change that `op` made, if `stream` tells of it.
pub(super) fn change<'e>(op: RawDoc<'e>, stream: &ChangeStream) -> Option<Change<'e>> {
    // The fields before the namespace are few, and so it costs little to find that an operation is not the stream's.
    let Some(ValueRef::String(name)) = op.get("ns") else {
        return None;
    };
    let (db, coll) = name.split_once('.')?;
    if coll == "$cmd" {
        return command(op, db, stream);
    }
    if !sees(stream, db, coll) {
        return None;
    }
    let Some(ValueRef::String(kind)) = op.get("op") else {
        return None;
    };
    let o = document(op, "o")?;
    let kind = match kind {
        "i" => Kind::Insert,
        "d" => Kind::Delete,
        // A new version has the `_id`; a difference has nothing but its version and itself.
        "u" if o.get("_id").is_some() => Kind::Replace,
        "u" => Kind::Update,
        _ => return None,
    };
    Some(Change {
        kind,
        ns: (db, coll),
        to: None,
        uuid: uuid(op),
        o,
        o2: document(op, "o2"),
        invalidates: false,
    })
}

fn command<'e>(op: RawDoc<'e>, db: &'e str, stream: &ChangeStream) -> Option<Change<'e>> {
    let o = document(op, "o")?;
    let (name, target) = o.iter().next()?;
    let kind = match name {
        "create" => Kind::Create,
        "createIndexes" => Kind::CreateIndexes,
        "dropIndexes" => Kind::DropIndexes,
        "collMod" => Kind::Modify,
        "drop" => Kind::Drop,
        "renameCollection" => Kind::Rename,
        "dropDatabase" => Kind::DropDatabase,
        _ => return None,
    };
    if kind.is_expanded() && !stream.expanded {
        return None;
    }
    let o2 = document(op, "o2");
    // A view is no collection: only a stream that asks for more, on more than one collection, tells of it.
    let of_view = [Some(o), o2]
        .into_iter()
        .flatten()
        .any(|doc| doc.get("viewOn").is_some());
    if of_view && (!stream.expanded || matches!(stream.watched, Watched::Collection(_))) {
        return None;
    }
    let (ns, to) = match (kind, target) {
        (Kind::DropDatabase, _) => ((db, ""), None),
        (Kind::Rename, ValueRef::String(from)) => {
            let Some(ValueRef::String(to)) = o.get("to") else {
                return None;
            };
            (from.split_once('.')?, Some(to.split_once('.')?))
        }
        (_, ValueRef::String(coll)) => ((db, coll), None),
        _ => return None,
    };
    let seen = match kind {
        Kind::DropDatabase => match &stream.watched {
            // The log tells of its collections before.
            Watched::Collection(_) => false,
            Watched::Database(watched) => watched.db == db,
            Watched::Cluster => !is_internal_database(db),
        },
        _ => sees(stream, ns.0, ns.1) || to.is_some_and(|to| sees(stream, to.0, to.1)),
    };
    if !seen {
        return None;
    }
    Some(Change {
        kind,
        ns,
        to,
        uuid: if of_view { [0; 16] } else { uuid(op) },
        o,
        o2,
        invalidates: match &stream.watched {
            Watched::Collection(_) => matches!(kind, Kind::Drop | Kind::Rename),
            Watched::Database(_) => kind == Kind::DropDatabase,
            Watched::Cluster => false,
        },
    })
}

/// Whether a stream watches a collection.
fn sees(stream: &ChangeStream, db: &str, coll: &str) -> bool {
    let is_hidden = coll.starts_with("system.") && !stream.system;
    match &stream.watched {
        Watched::Collection(watched) => watched.db == db && watched.coll == coll,
        Watched::Database(watched) => watched.db == db && !is_hidden,
        Watched::Cluster => !is_hidden && !is_internal_database(db),
    }
}

fn document<'e>(op: RawDoc<'e>, name: &str) -> Option<RawDoc<'e>> {
    match op.get(name) {
        Some(ValueRef::Document(DocRef::Raw(doc))) => Some(doc),
        _ => None,
    }
}

fn uuid(op: RawDoc<'_>) -> [u8; 16] {
    match op.get("ui") {
        Some(ValueRef::Binary { bytes, .. }) => bytes.try_into().unwrap_or_default(),
        _ => [0; 16],
    }
}

impl<'e> Change<'e> {
    /// The `invalidate` that follows this change.
    pub(super) fn invalidate(self) -> Self {
        Self {
            kind: Kind::Invalidate,
            invalidates: false,
            ..self
        }
    }

    /// The `_id` of the document that changed, in a document.
    pub(super) fn document_key(&self) -> Option<RawDoc<'e>> {
        match self.kind {
            Kind::Insert | Kind::Update | Kind::Replace => self.o2,
            Kind::Delete => Some(self.o),
            _ => None,
        }
    }

    /// Appends `ns`.
    pub(super) fn append_ns(&self, out: &mut RawWriter) {
        if self.kind != Kind::Invalidate {
            append_namespace(out, "ns", self.ns);
        }
    }
}

pub(super) fn append_namespace(out: &mut RawWriter, name: &str, (db, coll): (&str, &str)) {
    out.begin_document(name);
    out.append("db", db);
    if !coll.is_empty() {
        out.append("coll", coll);
    }
    out.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Namespace;
    use nestor_model::extjson;
    use nestor_query::stage::change_stream::{BeforeChange, FullDocument, Start};

    pub(in crate::changes) fn stream(watched: Watched) -> ChangeStream {
        ChangeStream {
            watched,
            start: Start::Now,
            full_document: FullDocument::Default,
            before_change: BeforeChange::Off,
            expanded: false,
            system: false,
            raw_updates: false,
            lookup_by_uuid: false,
        }
    }

    /// What streams on `db.c`, on `db` and on the cluster make of an operation: its kind, with `!` where the stream ends.
    fn seen(op: &str, expanded: bool) -> String {
        let op = extjson::parse_document(op).expect("valid JSON").to_raw();
        let watched = [
            Watched::Collection(Namespace::parse("db.c")),
            Watched::Database(Namespace::parse("db")),
            Watched::Cluster,
        ];
        let each = watched.map(|watched| {
            let stream = ChangeStream {
                expanded,
                ..stream(watched)
            };
            change(op.as_raw(), &stream).map_or("-".to_owned(), |change| {
                format!("{}{}", change.kind.name(), if change.invalidates { "!" } else { "" })
            })
        });
        each.join(" ")
    }

    /// Source: manual, "Change Events", "Watch a Collection, Database, or Deployment", "invalidate Event".
    #[test]
    fn who_sees_what() {
        for (op, expected) in [
            (
                r#"{"op":"i","ns":"db.c","o":{"_id":1},"o2":{"_id":1}}"#,
                "insert insert insert",
            ),
            (
                r#"{"op":"i","ns":"db.other","o":{"_id":1},"o2":{"_id":1}}"#,
                "- insert insert",
            ),
            (
                r#"{"op":"i","ns":"other.c","o":{"_id":1},"o2":{"_id":1}}"#,
                "- - insert",
            ),
            (r#"{"op":"i","ns":"db.system.views","o":{"_id":1}}"#, "- - -"),
            (r#"{"op":"i","ns":"config.c","o":{"_id":1}}"#, "- - -"),
            (
                r#"{"op":"u","ns":"db.c","o":{"$v":2,"diff":{}},"o2":{"_id":1}}"#,
                "update update update",
            ),
            (
                r#"{"op":"u","ns":"db.c","o":{"_id":1,"$v":2},"o2":{"_id":1}}"#,
                "replace replace replace",
            ),
            (r#"{"op":"d","ns":"db.c","o":{"_id":1}}"#, "delete delete delete"),
            (r#"{"op":"n","ns":"db.c","o":{"msg":"x"}}"#, "- - -"),
            (r#"{"op":"n","ns":"","o":{"msg":"x"}}"#, "- - -"),
            (r#"{"op":"c","ns":"db.$cmd","o":{"drop":"c"}}"#, "drop! drop drop"),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"drop":"v"},"o2":{"viewOn":"c"}}"#,
                "- - -",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"renameCollection":"db.c","to":"db.d"}}"#,
                "rename! rename rename",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"renameCollection":"db.b","to":"db.c"}}"#,
                "rename! rename rename",
            ),
            (
                r#"{"op":"c","ns":"other.$cmd","o":{"renameCollection":"other.b","to":"db.d"}}"#,
                "- rename rename",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"dropDatabase":1}}"#,
                "- dropDatabase! dropDatabase",
            ),
            (r#"{"op":"c","ns":"db.$cmd","o":{"create":"c"}}"#, "- - -"),
        ] {
            assert_eq!(seen(op, false), expected, "{op}");
        }
        for (op, expected) in [
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"create":"c"}}"#,
                "create create create",
            ),
            // Source of what becomes of views: specification "Change Streams", "when showExpandedEvents is true, create events on views
            // are reported".
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"create":"c","viewOn":"b"}}"#,
                "- create create",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"collMod":"c","pipeline":[]},"o2":{"viewOn":"b"}}"#,
                "- modify modify",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"drop":"c"},"o2":{"viewOn":"b"}}"#,
                "- drop drop",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"createIndexes":"c"}}"#,
                "createIndexes createIndexes createIndexes",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"dropIndexes":"c"}}"#,
                "dropIndexes dropIndexes dropIndexes",
            ),
            (
                r#"{"op":"c","ns":"db.$cmd","o":{"collMod":"c"}}"#,
                "modify modify modify",
            ),
        ] {
            assert_eq!(seen(op, true), expected, "{op}");
        }
    }
}
