//! What is known of a command without looking at its arguments: one row of the table of commands.
//!
//! Everybody who treats commands differently (dispatch, latencies, `top`, counters, profiler, API versions, explain, the
//! threads of the server) reads it here. A file of [`crate::commands`] declares its row so:
//!
//! ```ignore
//! pub const SPEC: CommandSpec = Facts::collection("count", "Counts the documents that match a filter.")
//!     .flags(Flags::API_V1.and(Flags::LONG).and(Flags::EXPLAINABLE))
//!     .op(OpKind::Read)
//!     .needs(Needs::Usually(needs::find))
//!     .runs(run);
//! ```
//!
//! A test at the end of this file says which columns go together.

use crate::audited::Audited;
use crate::collection_at::CollectionAt;
use crate::needs::Needs;
use nestor_database::observe::op_kind::OpKind;
use nestor_model::{RawDoc, RawDocBuf, RawWriter};
use std::collections::HashMap;

/// A set of properties of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// No property.
    pub const NONE: Flags = Flags(0);
    /// Only in database `admin`.
    pub const ADMIN: Flags = Flags(1);
    /// Changes documents or the catalog whatever its arguments are.
    pub const WRITE: Flags = Flags(1 << 1);
    /// May take long or wait for the disk: not to be run where it keeps others waiting.
    pub const LONG: Flags = Flags(1 << 2);
    /// Part of API version 1.
    pub const API_V1: Flags = Flags(1 << 3);
    /// Allowed within a multi-document transaction.
    pub const TXN: Flags = Flags(1 << 4);
    /// Takes a writeConcern.
    pub const WRITE_CONCERN: Flags = Flags(1 << 5);
    /// Takes any readConcern level; without it only local.
    pub const READ_CONCERN: Flags = Flags(1 << 6);
    /// May be retried under a transaction number.
    pub const RETRYABLE: Flags = Flags(1 << 7);
    /// Commits or aborts a transaction.
    pub const ENDS_TXN: Flags = Flags(1 << 8);
    /// Sent by drivers on its own; not counted or logged as a client's operation.
    pub const QUIET: Flags = Flags(1 << 9);
    /// May be sent as OP_QUERY.
    pub const LEGACY: Flags = Flags(1 << 10);
    /// `maxTimeMS` means something of the command's own, not a limit on its work.
    pub const OWN_TIME: Flags = Flags(1 << 11);
    /// Takes a readConcern other than local as the first command of a transaction only.
    pub const TXN_READ_CONCERN: Flags = Flags(1 << 12);
    /// Takes a readConcern other than local only as sessions with snapshot reads send it with each command: with a time.
    pub const SESSION_READ_CONCERN: Flags = Flags(1 << 20);
    /// Has no effect besides its reply: stops when the client is gone that wants it.
    pub const FOR_REPLY: Flags = Flags(1 << 13);
    /// May be long and mostly is not: it starts where its connection is served.
    pub const USUALLY_SHORT: Flags = Flags(1 << 14);
    /// Drivers connect by it before they can know that an API version is required: it may come without.
    pub const BEFORE_API: Flags = Flags(1 << 15);
    /// Neither the profiler nor the slow-query log records it.
    pub const UNRECORDED: Flags = Flags(1 << 16);
    /// Explain can take it.
    pub const EXPLAINABLE: Flags = Flags(1 << 17);
    /// The collection that it names, or its database if it names none, is gone when it has succeeded.
    pub const DROPS: Flags = Flags(1 << 18);
    /// Commits a transaction.
    pub const COMMITS: Flags = Flags(1 << 19);
    /// Says who this node is: the handshake of drivers.
    pub const HELLO: Flags = Flags(1 << 21);
    /// Ends sessions, and is not ended with them.
    pub const ENDS_SESSIONS: Flags = Flags(1 << 22);
    /// Reads documents or the catalog: on a secondary only for whoever is content with one.
    pub const PRIMARY_READ: Flags = Flags(1 << 24);
    /// Makes a user or a role: while there is neither, somebody on this machine may run it without logging in.
    pub const FIRST_USER: Flags = Flags(1 << 23);

    /// Both sets.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True when all of `other` are in this set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What a command's words become when they are prepared as an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// An aggregation.
    Aggregate,
    /// Writes to several collections.
    BulkWrite,
    /// A count.
    Count,
    /// Deletions.
    Delete,
    /// The different values of a field.
    Distinct,
    /// The operation of the command that is explained.
    Explain,
    /// A find.
    Find,
    /// A change of one document that is returned.
    FindAndModify,
    /// The next batch of a cursor.
    GetMore,
    /// Insertions.
    Insert,
    /// An aggregation with scripts.
    MapReduce,
    /// Updates.
    Update,
}

/// One row of the table of commands.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its name, as error messages print it.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// One sentence for `listCommands`.
    pub help: &'static str,
    /// Properties.
    pub flags: Flags,
    /// Where its collection stands.
    pub collection: CollectionAt,
    /// The words that the profiler puts after the database and `$cmd` when the command names no collection.
    pub profiled_as: Option<&'static str>,
    /// The kind of operation that it is counted as.
    pub op: OpKind,
    /// The array, or document sequence, that its statements or documents stand in.
    pub statements: Option<&'static str>,
    /// Its fields that are not part of API version 1 though the command is.
    pub outside_api: &'static [&'static str],
    /// Its fields whose values nobody else may see: neither `currentOp` nor profiler nor log shows them.
    pub secrets: &'static [&'static str],
    /// The rights that it needs.
    pub needs: Needs,
    /// How its words are prepared as an operation, if it reads or writes documents.
    pub preparation: Option<Preparation>,
    /// What the audit log records of it.
    pub audited: Audited,
}

impl Facts {
    const fn new(name: &'static str, collection: CollectionAt, help: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            help,
            flags: Flags::NONE,
            collection,
            profiled_as: None,
            op: OpKind::Command,
            statements: None,
            outside_api: &[],
            secrets: &[],
            needs: Needs::Unknown,
            preparation: None,
            audited: Audited::Nothing,
        }
    }

    /// A command about no collection, or about several.
    pub const fn no_collection(name: &'static str, help: &'static str) -> Self {
        Self::new(name, CollectionAt::Nowhere, help)
    }

    /// A command that names its collection in its first field.
    pub const fn collection(name: &'static str, help: &'static str) -> Self {
        Self::new(name, CollectionAt::First, help)
    }

    /// A command that names a whole namespace in its first field.
    pub const fn namespace(name: &'static str, help: &'static str) -> Self {
        Self::new(name, CollectionAt::Whole, help)
    }

    /// A command that names its collection in `field`.
    pub const fn collection_in(name: &'static str, field: &'static str, help: &'static str) -> Self {
        Self::new(name, CollectionAt::Field(field), help)
    }

    /// Other names it answers to.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Its properties.
    pub const fn flags(self, flags: Flags) -> Self {
        Self { flags, ..self }
    }

    /// The kind of operation that it is counted as.
    pub const fn op(self, op: OpKind) -> Self {
        Self { op, ..self }
    }

    /// The words that the profiler puts after the database and `$cmd` when the command names no collection.
    pub const fn profiled_as(self, name: &'static str) -> Self {
        Self {
            profiled_as: Some(name),
            ..self
        }
    }

    /// The array that its statements stand in.
    pub const fn statements(self, field: &'static str) -> Self {
        Self {
            statements: Some(field),
            ..self
        }
    }

    /// Its fields that are not part of API version 1.
    pub const fn outside_api(self, fields: &'static [&'static str]) -> Self {
        Self {
            outside_api: fields,
            ..self
        }
    }

    /// Its fields that nobody else may see.
    pub const fn secrets(self, fields: &'static [&'static str]) -> Self {
        Self {
            secrets: fields,
            ..self
        }
    }

    /// The rights that it needs.
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// How its words are prepared as an operation.
    pub const fn prepared_as(self, preparation: Preparation) -> Self {
        Self {
            preparation: Some(preparation),
            ..self
        }
    }

    /// What the audit log records of it.
    pub const fn audited(self, audited: Audited) -> Self {
        Self { audited, ..self }
    }

    /// The database and the collection that a command names, if it names a collection. `db` is the command's own.
    pub fn collection_of<'b>(&self, db: &'b str, body: RawDoc<'b>) -> Option<(&'b str, &'b str)> {
        self.collection.named(db, body)
    }

    /// The namespace that a command is about, as the profiler shows it: `db.$cmd` of one that names no collection.
    pub fn profiled_namespace(&self, db: &str, body: RawDoc<'_>) -> String {
        match (self.collection_of(db, body), self.profiled_as) {
            (Some((db, coll)), _) => format!("{db}.{coll}"),
            (None, Some(name)) => format!("{db}.$cmd.{name}"),
            (None, None) => format!("{db}.$cmd"),
        }
    }
}

/// A command without the values of fields that nobody else may see; `None` when there are no such fields.
pub fn hidden(body: RawDoc<'_>, secrets: &[&str]) -> Option<RawDocBuf> {
    if secrets.is_empty() {
        return None;
    }
    let mut shown = RawWriter::new();
    for element in body.elements() {
        if secrets.contains(&element.name()) {
            shown.append(element.name(), "xxx");
        } else {
            shown.append_element_bytes(element.as_bytes());
        }
    }
    Some(shown.into_doc())
}

/// The facts of all commands, in the order of their families.
#[derive(Debug, Default)]
pub struct Table {
    all: Vec<&'static Facts>,
    by_name: HashMap<&'static str, usize>,
}

impl Table {
    /// A table of commands. Each name is of one command.
    pub fn new(all: impl Iterator<Item = &'static Facts>) -> Self {
        let all: Vec<_> = all.collect();
        let mut by_name = HashMap::new();
        for (number, facts) in all.iter().enumerate() {
            for name in std::iter::once(&facts.name).chain(facts.aliases) {
                let previous = by_name.insert(*name, number);
                debug_assert!(previous.is_none(), "command {name} is declared once");
            }
        }
        Self { all, by_name }
    }

    /// The fields of a command whose values nobody else may see: its own, and those of a command that is to be explained.
    pub fn secrets(&self, facts: &Facts, body: RawDoc<'_>) -> &'static [&'static str] {
        if facts.preparation != Some(Preparation::Explain) {
            return facts.secrets;
        }
        let explained = body.iter().next().and_then(|(_, value)| value.as_document());
        let explained = explained.and_then(|command| command.iter().next());
        let explained = explained.and_then(|(name, _)| self.all.get(self.number(name)?));
        match explained.is_some_and(|explained| !explained.secrets.is_empty()) {
            true => &["explain"],
            false => &[],
        }
    }

    /// The place of the command of that name. Names are case-sensitive.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The facts of the command of that name.
    pub fn lookup(&self, name: &str) -> Option<&'static Facts> {
        self.number(name).and_then(|number| self.all.get(number)).copied()
    }

    /// All of them.
    pub fn all(&self) -> &[&'static Facts] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{all, lookup};
    use nestor_database::observe::latency::Class;
    use nestor_database::rights::Scope;
    use nestor_model::doc;

    /// Rules that rows obey: where the first holds, the second does.
    type Rule = (&'static str, fn(&Facts) -> bool, fn(&Facts) -> bool);

    fn has(facts: &Facts, flags: Flags) -> bool {
        facts.flags.has(flags)
    }

    const RULES: &[Rule] = &[
        (
            "help is a sentence",
            |_| true,
            |f| f.help.ends_with('.') && f.help.contains(' '),
        ),
        (
            "what writes documents is a write that may be long and takes a concern",
            |f| f.op.class() == Class::Writes,
            |f| has(f, Flags::WRITE.and(Flags::LONG).and(Flags::WRITE_CONCERN)),
        ),
        (
            "kinds of top are of commands that name a collection",
            |f| f.op.kind() != nestor_database::observe::top::Kind::Commands || f.op == OpKind::Read,
            |f| f.collection != CollectionAt::Nowhere,
        ),
        (
            "what only reads documents is for its reply",
            |f| f.op.class() == Class::Reads,
            |f| has(f, Flags::FOR_REPLY.and(Flags::LONG)) && !has(f, Flags::WRITE),
        ),
        (
            "what ends a transaction counts as that, and may be part of one",
            |f| has(f, Flags::ENDS_TXN) || f.op == OpKind::EndTransaction,
            |f| has(f, Flags::ENDS_TXN.and(Flags::TXN)) && f.op == OpKind::EndTransaction,
        ),
        (
            "a commit ends a transaction and writes",
            |f| has(f, Flags::COMMITS),
            |f| has(f, Flags::ENDS_TXN.and(Flags::WRITE)),
        ),
        ("a write may be long", |f| has(f, Flags::WRITE), |f| has(f, Flags::LONG)),
        (
            "what may be short may be long",
            |f| has(f, Flags::USUALLY_SHORT),
            |f| has(f, Flags::LONG),
        ),
        (
            "what is retried is a write of a transaction",
            |f| has(f, Flags::RETRYABLE),
            |f| has(f, Flags::WRITE.and(Flags::TXN)) && f.op.class() == Class::Writes,
        ),
        (
            "one notion of a read concern",
            |f| has(f, Flags::TXN_READ_CONCERN),
            |f| has(f, Flags::TXN) && !has(f, Flags::READ_CONCERN),
        ),
        (
            "one notion of a session's read concern",
            |f| has(f, Flags::SESSION_READ_CONCERN),
            |f| !has(f, Flags::READ_CONCERN) && !has(f, Flags::TXN_READ_CONCERN),
        ),
        (
            "explain takes what names a collection and reads or writes documents",
            |f| has(f, Flags::EXPLAINABLE),
            |f| f.collection == CollectionAt::First && f.op != OpKind::Command,
        ),
        ("what drops writes", |f| has(f, Flags::DROPS), |f| has(f, Flags::WRITE)),
        (
            "statements are counted or recorded one by one",
            |f| f.statements.is_some(),
            |f| f.op.class() == Class::Writes,
        ),
        (
            "fields outside the API version are of commands within it",
            |f| !f.outside_api.is_empty(),
            |f| has(f, Flags::API_V1),
        ),
        (
            "what only admin takes names no collection of it",
            |f| has(f, Flags::ADMIN),
            |f| matches!(f.collection, CollectionAt::Nowhere | CollectionAt::Whole),
        ),
        (
            "what drivers send on their own writes nothing and is not about a collection",
            |f| has(f, Flags::QUIET),
            |f| !has(f, Flags::WRITE) && f.collection == CollectionAt::Nowhere,
        ),
        (
            "what has secrets is not recorded",
            |f| !f.secrets.is_empty(),
            |f| has(f, Flags::QUIET) || has(f, Flags::UNRECORDED),
        ),
        (
            "it says which rights it needs",
            |_| true,
            |f| !matches!(f.needs, Needs::Unknown),
        ),
        (
            "a right on a collection is needed by what names one",
            |f| {
                matches!(f.needs, Needs::Right(right) if right.on == Scope::Collection)
                    || matches!(f.needs, Needs::Usually(_))
            },
            |f| f.collection != CollectionAt::Nowhere,
        ),
        (
            "what reads or writes documents is prepared as an operation",
            |f| !matches!(f.op, OpKind::Command | OpKind::EndTransaction),
            |f| f.preparation.is_some(),
        ),
        (
            "explain takes what is prepared as an operation",
            |f| has(f, Flags::EXPLAINABLE),
            |f| f.preparation.is_some(),
        ),
        (
            "failed attempts are recorded of what changes the catalog",
            |f| matches!(f.audited, Audited::Attempts(_)),
            |f| has(f, Flags::WRITE) && f.op == OpKind::Command,
        ),
        (
            "direct changes of users and roles are writes of documents",
            |f| matches!(f.audited, Audited::Documents),
            |f| f.op.class() == Class::Writes,
        ),
        (
            "OP_QUERY is for what drivers send on their own",
            |f| has(f, Flags::LEGACY),
            |f| has(f, Flags::QUIET),
        ),
    ];

    #[test]
    fn the_columns_of_each_command_go_together() {
        let mut broken = Vec::new();
        for spec in all() {
            for (rule, applies, holds) in RULES {
                if applies(&spec.facts) && !holds(&spec.facts) {
                    broken.push(format!("{}: {rule}", spec.name));
                }
            }
        }
        assert_eq!(broken, [""; 0]);
    }

    #[test]
    fn rules_find_contradictions() {
        let bad = Facts::no_collection("bad", "Is a contradiction.").op(OpKind::Insert);
        let broken = RULES.iter().filter(|(_, applies, holds)| applies(&bad) && !holds(&bad));
        assert_eq!(broken.count(), 4);
    }

    #[test]
    fn each_kind_of_operation_has_a_command() {
        for (name, op) in [
            ("find", OpKind::Query),
            ("getMore", OpKind::GetMore),
            ("aggregate", OpKind::Read),
            ("count", OpKind::Read),
            ("distinct", OpKind::Read),
            ("mapReduce", OpKind::Read),
            ("insert", OpKind::Insert),
            ("update", OpKind::Update),
            ("delete", OpKind::Delete),
            ("findAndModify", OpKind::FindAndModify),
            ("bulkWrite", OpKind::BulkWrite),
            ("commitTransaction", OpKind::EndTransaction),
            ("abortTransaction", OpKind::EndTransaction),
        ] {
            assert_eq!(lookup(name).map(|spec| spec.op), Some(op), "{name}");
        }
        let documents = all().filter(|spec| spec.op != OpKind::Command);
        assert_eq!(
            documents.count(),
            13,
            "a command that reads or writes documents is listed here"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let command = doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": "password", "$db": "d" }.to_raw();
        let shown = |name| lookup(name).and_then(|spec| hidden(command.as_raw(), spec.secrets));
        let expected = doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": "xxx", "$db": "d" };
        assert_eq!(shown("saslStart"), Some(expected.to_raw()));
        assert_eq!(shown("ping"), None);
    }

    #[test]
    fn namespaces_of_commands() {
        let ns = |doc: nestor_model::Document| {
            let name = doc.iter().next().map_or(String::new(), |(name, _)| name.to_owned());
            let facts = lookup(&name).expect("a command").facts;
            facts.profiled_namespace("d", doc.to_raw().as_raw())
        };
        assert_eq!(ns(doc! { "find": "c" }), "d.c");
        assert_eq!(ns(doc! { "getMore": 5i64, "collection": "c" }), "d.c");
        assert_eq!(ns(doc! { "aggregate": 1 }), "d.$cmd.aggregate");
        assert_eq!(ns(doc! { "listCollections": 1 }), "d.$cmd");
        assert_eq!(ns(doc! { "bulkWrite": 1 }), "d.$cmd.bulkWrite");
        // The value there names no collection of database d.
        assert_eq!(ns(doc! { "usersInfo": "me" }), "d.$cmd");
        assert_eq!(ns(doc! { "dataSize": "e.c" }), "e.c");
    }
}
