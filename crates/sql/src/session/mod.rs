//! What a connection is at: its settings, prepared statements, portals and transaction.
//!
//! [`Session::receive`] takes one message and appends the answers. Blocks are transactions ([`block`]); [`current`](crate::current) is for
//! functions that are about the connection.

mod acting;
mod attended;
mod begun;
mod block;
mod channels;
mod copy;
mod cursor;
mod explained;
mod extended;
mod listed;
pub mod login;
mod maintain;
mod named;
mod positioned;
mod procedural;
mod sink;

use self::block::Block;
use self::cursor::Cursor;
use self::login::{Login, Peers};
use self::sink::{Sink, check_told};
use crate::bind::write::{writes, writing};
use crate::catalog::system::spelled;
use crate::error::{error, fail, unsupported};
use crate::parse;
use crate::parse::own::{self, Own};
use crate::parse::roles::without_passwords;
use crate::plan::switches::Switches;
use crate::protocol::backend;
use crate::protocol::frontend::{self, Message};
use crate::run::indexed;
use crate::run::planned::PlanCell;
use crate::run::query::{self, Field};
pub use crate::run::tables::Commits;
use crate::run::tables::SessionFacts;
use crate::settings;
use crate::types::Type;
use crate::types::style::Style;
use crate::types::zone::Zone;
use crate::write::WriteCell;
use crate::{asked, ddl, notices, write};
use nestor_database::Database;
use nestor_database::channels::Mailbox;
use nestor_database::connections::Slot;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::session_id::Lsid;
use nestor_database::statement::Statement;
use nestor_database::users::RoleName;
use nestor_model::namespace::ADMIN;
use nestor_model::{Result, Value};
use sqlparser::ast::{self, ContextModifier, Set, SetSessionAuthorizationParamKind, Statement as Ast};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of answers after which they are sent.
const FLUSH_BYTES: usize = 64 << 10;
/// Prepared statements and portals of a connection.
const NAMES_MAX: usize = 10_000;
/// Bytes that the rows of a portal may take which wait to be fetched.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Sends what was appended so far.
pub type Flush<'f> = dyn FnMut(&mut Vec<u8>) -> Result<()> + 'f;

#[derive(Clone)]
struct Prepared {
    text: Arc<str>,
    /// `None` for an empty statement.
    ast: Option<Arc<Ast>>,
    /// The types of its parameters, of domains those behind them.
    types: Vec<Type>,
    /// The OIDs of their types as clients are told of them.
    declared: Vec<u32>,
    fields: Option<Vec<Field>>,
    /// The plan, once it has run, or how it writes.
    plan: PlanCell,
    writes: WriteCell,
    /// It looks at what the session has by name.
    looks_at_session: bool,
}

impl Prepared {
    /// A statement whose columns nobody has asked for and that has not run.
    fn new(text: impl Into<Arc<str>>, ast: Option<Arc<Ast>>, types: Vec<Type>) -> Self {
        let text = text.into();
        let looks_at_session = listed::is_asked_for(&text);
        Self::of((text, looks_at_session), ast, types)
    }

    /// The same, of a text of which it is known whether it looks at the session.
    fn of((text, looks_at_session): (Arc<str>, bool), ast: Option<Arc<Ast>>, types: Vec<Type>) -> Self {
        Self {
            looks_at_session,
            text,
            ast,
            types,
            declared: Vec::new(),
            fields: None,
            plan: PlanCell::default(),
            writes: WriteCell::default(),
        }
    }
}

struct Portal {
    statement: Arc<Prepared>,
    params: Vec<Value>,
    formats: Vec<i16>,
    /// What is left of its rows, once it has run.
    waiting: Option<Waiting>,
    /// What DECLARE made of it.
    cursor: Option<Cursor>,
}

/// Rows that were computed and are fetched in parts.
struct Waiting {
    /// Their columns, as they were when the rows were computed.
    fields: Vec<Field>,
    rows: std::vec::IntoIter<Vec<Value>>,
}

/// A conversation with a client.
pub struct Session {
    /// What others may see of the connection.
    pub slot: Arc<Slot>,
    /// Who and where.
    pub facts: SessionFacts,
    /// The user that the client said it was.
    begun_by: String,
    /// Whom it acts as.
    acting: acting::Acting,
    /// Who is logged in, where users have to be.
    login: Option<Login>,
    /// The server's end of the connection, and the client's, as `address:port`.
    ends: (String, String),
    prepared: HashMap<String, Arc<Prepared>>,
    /// How these were made.
    made: HashMap<String, listed::Made>,
    portals: HashMap<String, Portal>,
    /// The transaction block that it is in.
    block: Option<Block>,
    /// Which collections statements of blocks name.
    named: named::Names,
    /// The logical session of its transactions, once there was one, and the number of the next.
    lsid: Option<Lsid>,
    transactions: i64,
    /// The file that COPY reads.
    coming: Option<copy::Coming>,
    /// After an error of the extended protocol messages are passed over until the next Sync.
    skips: bool,
    /// The message that follows is known to be Sync. Statements of the extended protocol up to a Sync are one transaction, and one
    /// alone needs no block for that.
    pub sync_follows: bool,
    /// It waits for the first message of a statement.
    rests: bool,
    /// When the first message of the statement came that its next messages go on with.
    since: Option<Instant>,
    /// A setting may have changed that the client is told of.
    tells: bool,
    /// What it was told of each of them.
    told: [Option<u64>; settings::REPORTED.len()],
    digests: RandomState,
    /// The zone that it is in.
    zone: Zone,
    /// How it wants values to be read and shown.
    style: Style,
    /// What it hears, if it listens.
    mailbox: Option<Arc<Mailbox>>,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    Go,
    /// It ends.
    Close,
}

impl Session {
    /// A conversation that begins.
    pub fn new(slot: Arc<Slot>, user: &str, database: &str) -> Self {
        indexed::install();
        let mut settings = settings::initial();
        settings.insert(acting::AUTHORIZATION.to_owned(), user.to_owned());
        let facts = SessionFacts {
            user: user.to_owned(),
            session_user: user.to_owned(),
            database: database.to_owned(),
            pid: i32::try_from(slot.id).unwrap_or(0),
            account: None,
            settings,
            since: None,
            begun: Arc::default(),
            switches: Switches::default(),
            got: Arc::default(),
            temporary: Arc::default(),
            deferred: Arc::default(),
            procedures: Some(&procedural::Blocks),
            routines: Arc::default(),
            named: Arc::default(),
            transition: Arc::default(),
            commits: None,
        };
        Self {
            slot,
            facts,
            begun_by: user.to_owned(),
            acting: acting::Acting::default(),
            login: None,
            ends: (String::new(), String::new()),
            prepared: HashMap::new(),
            named: named::Names::default(),
            made: HashMap::new(),
            portals: HashMap::new(),
            block: None,
            lsid: None,
            transactions: 1,
            coming: None,
            skips: false,
            sync_follows: true,
            rests: true,
            since: None,
            tells: false,
            told: [None; settings::REPORTED.len()],
            digests: RandomState::new(),
            zone: Zone::Utc,
            style: Style::default(),
            mailbox: None,
        }
    }

    /// From now on statements do not wait until their commits are on disk: whoever sends answers waits for these before.
    pub fn hold_answers(&mut self) -> Arc<Commits> {
        self.facts.commits.get_or_insert_default().clone()
    }

    /// Tells where the connection comes from and to, as `address:port`.
    pub fn set_ends(&mut self, host: &str, peer: &str) {
        self.ends = (host.to_owned(), peer.to_owned());
    }

    /// Goes on as the user who has logged in.
    pub fn log_in(&mut self, login: Login) {
        let is_superuser = login.account.all_roles.contains(&RoleName::new("root", ADMIN));
        let shown = if is_superuser { "on" } else { "off" };
        self.facts.settings.insert("is_superuser".to_owned(), shown.to_owned());
        self.facts.account = Some(login.account.clone());
        self.login = Some(login);
        self.acts_anew();
    }

    fn peers(&self) -> Peers<'_> {
        Peers {
            host: &self.ends.0,
            peer: &self.ends.1,
        }
    }

    /// Whether who is at the other end may still say something: rights change, and users go.
    fn may_go_on(&mut self, database: &Database) -> Result<bool> {
        if !database.options.authorization {
            return Ok(true);
        }
        let Some(mut login) = self.login.take() else {
            return Ok(false);
        };
        let goes_on = login.refresh(database, self.peers())?;
        if goes_on {
            self.log_in(login);
        }
        Ok(goes_on)
    }

    /// `I`, `T` or `E`, as ReadyForQuery tells.
    fn status(&self) -> u8 {
        match &self.block {
            None => b'I',
            Some(block) if block.failed => b'E',
            Some(_) => b'T',
        }
    }

    /// A message whose texts are in UTF-8, from one as the client sent it.
    ///
    /// Errors: those of the client's encoding.
    pub fn plain<'m>(&self, tag: u8, body: &'m [u8]) -> Result<Cow<'m, [u8]>> {
        frontend::plain(tag, body, self.style.encoding)
    }

    /// Takes a message and appends what answers it. Errors of statements are answers; an error of this function ends the connection.
    pub fn receive(
        &mut self,
        database: &Database,
        message: Result<Message<'_>>,
        out: &mut Vec<u8>,
        flush: &mut Flush<'_>,
    ) -> Result<Next> {
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                backend::error(out, "FATAL", &error);
                return Ok(Next::Close);
            }
        };
        let (_zone, _style) = (self.zone.enter(), self.style.enter());
        if !matches!(message, Message::Terminate) && !self.may_go_on(database)? {
            let gone = error("28000", format!("user \"{}\" is logged in no more", self.facts.user));
            backend::error(out, "FATAL", &gone);
            return Ok(Next::Close);
        }
        self.rests = false;
        if self.is_copying() && !matches!(message, Message::Terminate) {
            return self.receive_copy(database, &message, out);
        }
        match message {
            Message::Terminate => return Ok(Next::Close),
            Message::Sync => {
                self.skips = false;
                self.end_implicit(database, out);
                if self.block.is_none() {
                    self.end_portals(true);
                }
                self.ready(out);
                return Ok(Next::Go);
            }
            Message::Query(text) => {
                self.skips = false;
                self.simple(database, text, out, flush)?;
                // A COPY answers when its file has come.
                if !self.is_copying() {
                    self.ready(out);
                }
                return Ok(Next::Go);
            }
            Message::Unreadable { is_query: true, error } => {
                self.skips = false;
                self.failed(&error, out);
                self.ready(out);
                return Ok(Next::Go);
            }
            _ if self.skips => return Ok(Next::Go),
            // As PostgreSQL, the time of a statement begins with the first of its messages.
            Message::Parse { .. } | Message::Bind { .. } | Message::Execute { .. } => {
                self.facts.since = Some(*self.since.get_or_insert_with(Instant::now));
            }
            _ => {}
        }
        let executes = matches!(message, Message::Execute { .. });
        let result = match message {
            Message::Parse { name, text, types } => self.parse(database, name, text, &types, out),
            Message::Bind {
                portal,
                statement,
                formats,
                values,
                results,
            } => self.bind(portal, statement, &formats, &values, results, out),
            Message::Describe { portal, name } => self.describe(portal, name, out),
            Message::Execute { portal, rows } => self.execute(database, portal, rows, out, flush),
            Message::Close { portal, name } => {
                match portal {
                    true => drop(self.portals.remove(name)),
                    false => drop(self.prepared.remove(name)),
                }
                backend::empty(out, b'3');
                Ok(())
            }
            Message::Flush => flush(out),
            Message::Unreadable { error, .. } => Err(error),
            // What a COPY left over that has failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => Ok(()),
            Message::Query(_) | Message::Sync | Message::Terminate => Ok(()),
        };
        self.facts.since = None;
        if executes || result.is_err() {
            self.since = None;
        }
        if let Err(error) = result {
            self.failed(&error, out);
            self.skips = true;
            // Who has sent no Sync yet may wait for the error. One that is to end is told of nothing else.
            if !self.slot.ending.is_asked() {
                flush(out)?;
            }
        }
        Ok(Next::Go)
    }

    /// Tells the client of the settings that it has to know, as far as they are others than it was told.
    pub fn report(&mut self, out: &mut Vec<u8>) {
        for ((name, own), told) in settings::REPORTED.iter().zip(&mut self.told) {
            let value = self.facts.settings.get(*own).map_or("", String::as_str);
            // A digest, as a connection that waits is to be small.
            let now = Some(self.digests.hash_one(value));
            if *told != now {
                *told = now;
                backend::parameter(out, name, value);
            }
        }
    }

    /// ReadyForQuery, behind what the client has to know of its settings.
    fn ready(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.tells) {
            self.report(out);
        }
        self.tell_heard(out);
        (self.rests, self.since) = (true, None);
        backend::ready(out, self.status());
    }

    /// Ends the transaction that the statements of a message, or those up to a Sync, are in without saying so.
    fn end_implicit(&mut self, database: &Database, out: &mut Vec<u8>) {
        if self.block.as_ref().is_some_and(|block| block.implicit)
            && let Err(error) = self.commit(database, false)
        {
            self.failed(&error, out);
        }
    }

    /// Sends what a statement told beside its result, as far as the client wants to hear it.
    fn tell(&self, out: &mut Vec<u8>) {
        for (severity, told) in notices::take() {
            let least = self.facts.settings.get("client_min_messages");
            if severity.passes(least.map_or("", String::as_str)) {
                backend::notice(out, severity.name(), &told);
            }
        }
    }

    fn failed(&mut self, error: &nestor_model::Error, out: &mut Vec<u8>) {
        backend::error(out, "ERROR", error);
        if let Some(block) = &mut self.block {
            block.failed = true;
        }
    }

    fn simple(&mut self, database: &Database, text: &str, out: &mut Vec<u8>, flush: &mut Flush<'_>) -> Result<()> {
        let statements = match parse::by_client(text) {
            Ok(statements) => statements,
            Err(error) => {
                self.failed(&error, out);
                return Ok(());
            }
        };
        if statements.is_empty() {
            backend::empty(out, b'I');
        }
        // Several statements of one message stand and fall together.
        let together = statements.len() > 1 && statements.iter().any(|ast| changes(ast, text));
        let is_of_roles = statements.iter().any(ddl::is_of_roles);
        let seen = if is_of_roles {
            without_passwords(text)
        } else {
            Cow::Borrowed(text)
        };
        let shown: (Arc<str>, bool) = ((*seen).into(), listed::is_asked_for(text));
        for ast in statements {
            if together && self.block.is_none() {
                self.block = Some(self.new_block(true));
            }
            let prepared = Prepared::of(shown.clone(), Some(Arc::new(ast)), Vec::new());
            let mut sink = Sink {
                out,
                flush,
                describes: true,
                formats: &[],
                fields: Cow::Borrowed(&[]),
            };
            let result = self.run(database, &prepared, &[], &mut sink);
            self.tell(out);
            match result {
                Ok(_) if self.is_copying() => return Ok(()),
                Ok(tag) => backend::complete(out, &tag),
                Err(error) => {
                    self.failed(&error, out);
                    break;
                }
            }
        }
        self.end_implicit(database, out);
        Ok(())
    }

    /// In a block that has failed only its end is taken.
    fn check_block(&self, ast: Option<&Ast>) -> Result<()> {
        let ends = || match ast {
            Some(Ast::Rollback { .. } | Ast::Commit { .. }) | None => true,
            Some(ast) => matches!(
                own::of(ast),
                Ok(Some(Own::TwoPhase {
                    verb: own::PREPARE_TRANSACTION,
                    ..
                }))
            ),
        };
        let failed = self.block.as_ref().is_some_and(|block| block.failed);
        match failed && !ends() {
            true => fail(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            ),
            false => Ok(()),
        }
    }

    /// Runs a statement; its tag. Nothing is left of what one that fails asked for.
    fn run(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        params: &[Value],
        sink: &mut Sink<'_, '_>,
    ) -> Result<String> {
        // A statement before it in the same message may have set them.
        let (_zone, _style) = (self.zone.enter(), self.style.enter());
        self.with_calls(database, |session| session.run_one(database, prepared, params, sink))
    }

    /// Has `run` run a statement, within a transaction of its own if it turns out to call routines that want one.
    fn with_calls<T>(&mut self, database: &Database, mut run: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let _ = asked::wants_transaction();
        let mut ran = run(self);
        if ran.is_err() && asked::wants_transaction() && self.block.is_none() {
            // It calls routines, whose statements are one transaction with it. Nothing was done or sent so far.
            self.block = Some(self.new_block(true));
            ran = run(self);
            ran = self.end_own(database, true, ran);
        }
        ran.inspect_err(|_| {
            asked::forget();
            drop(self.facts.routines.handed());
        })
    }

    fn run_one(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        params: &[Value],
        sink: &mut Sink<'_, '_>,
    ) -> Result<String> {
        let Some(ast) = prepared.ast.as_deref() else {
            return Ok(String::new());
        };
        self.check_block(Some(ast))?;
        if writes(ast) {
            let positioned = self.positioned(database, &prepared.text, ast)?;
            let ast = positioned.as_ref().unwrap_or(ast);
            let kind = match writing(ast) {
                Some((Ast::Insert(_), _)) => OpKind::Insert,
                Some((Ast::Delete(_), _)) => OpKind::Delete,
                _ => OpKind::Update,
            };
            let (types, cell) = (prepared.types.as_slice(), &prepared.writes);
            let cell = positioned.is_none().then_some(cell);
            let sink = std::cell::RefCell::new(sink);
            let rows = self.statement(database, &prepared.text, kind, |statement, facts| {
                let check = |fields: &[Field]| sink.borrow().check(fields);
                let mut begin = |fields: &[Field]| sink.borrow_mut().begin(fields);
                let mut give = |row: Vec<Value>| sink.borrow_mut().row(&row);
                let taken = (
                    &check as &write::Check<'_>,
                    &mut begin as &mut dyn FnMut(&[Field]) -> Result<()>,
                );
                write::run(statement, facts, (ast, cell), (types, params), taken, &mut give)
            })?;
            self.settle_temporary(database)?;
            self.do_asked(database)?;
            return Ok(format!("{} {rows}", write::tag(ast)));
        }
        match own::of(ast)? {
            Some(Own::SetConstraints { names, waits }) => {
                self.set_constraints(database, &prepared.text, (names.as_deref(), waits))?;
                return Ok("SET CONSTRAINTS".to_owned());
            }
            Some(Own::Do { language, code }) => {
                let may_end = self.may_end(sink);
                self.within_transaction(database, &prepared.text, |statement, facts| {
                    procedural::run_block(statement, facts, (&language, &code), may_end)
                })?;
                return Ok("DO".to_owned());
            }
            Some(Own::TwoPhase { verb, identifier }) => return self.two_phase(database, verb, &identifier),
            Some(Own::Maintain(what)) => {
                return self.maintain(database, &prepared.text, &what).map(str::to_owned);
            }
            _ => {}
        }
        if ddl::is_ddl(ast) {
            if self.facts.is_read_only() {
                let verb = ddl::verb(&ast.to_string());
                return fail("25006", format!("cannot execute {verb} in a read-only transaction"));
            }
            let tag = self.statement(database, &prepared.text, OpKind::Command, |statement, facts| {
                ddl::run(statement, facts, ast, (&prepared.types, params))
            })?;
            self.audit_roles(database, &prepared.text, ast)?;
            self.settle_temporary(database)?;
            return Ok(tag);
        }
        match ast {
            Ast::Call(call) => {
                let (types, may_end) = (&prepared.types, self.may_end(sink));
                let gave = self.within_transaction(database, &prepared.text, |statement, facts| {
                    procedural::run_call(statement, facts, call, (types, params), may_end)
                })?;
                if let Some((fields, row)) = gave {
                    sink.begin(&fields)?;
                    sink.row(&row)?;
                }
                Ok("CALL".to_owned())
            }
            Ast::Lock(lock) => {
                self.lock(database, &prepared.text, lock)?;
                Ok("LOCK TABLE".to_owned())
            }
            Ast::Truncate(truncate) => self.truncate(database, &prepared.text, truncate),
            Ast::Query(query) => {
                if let (Some(lock), true) = (query.locks.first(), self.facts.is_read_only()) {
                    let verb = format!("SELECT FOR {}", lock.lock_type);
                    return fail("25006", format!("cannot execute {verb} in a read-only transaction"));
                }
                if prepared.looks_at_session {
                    self.list_named();
                }
                let query = (&**query, &prepared.plan);
                let types = &prepared.types;
                let rows = self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
                    query::run(statement, facts, query, (types, params), sink)
                });
                let rows = rows?;
                self.do_asked(database)?;
                Ok(format!("SELECT {rows}"))
            }
            Ast::Explain { .. } => {
                self.explain(database, prepared, ast, params, sink)?;
                Ok("EXPLAIN".to_owned())
            }
            Ast::ShowVariable { variable } => {
                let name = setting_name(variable);
                if name == "all" {
                    sink.begin(&show_fields(variable))?;
                    for (name, value) in &self.facts.settings {
                        sink.row(&[name.as_str(), value.as_str(), ""].map(|text| Value::String(text.into())))?;
                    }
                    return Ok("SHOW".to_owned());
                }
                let Some(value) = self.facts.settings.get(&name).cloned() else {
                    return fail("42704", format!("unrecognized configuration parameter \"{name}\""));
                };
                sink.begin(&show_fields(variable))?;
                sink.row(&[Value::String(value.into())])?;
                Ok("SHOW".to_owned())
            }
            Ast::Copy { .. } => Ok(self.copy(database, prepared, ast, sink)?.unwrap_or_default()),
            Ast::Set(set) => {
                self.set(database, set)?;
                Ok("SET".to_owned())
            }
            Ast::Reset(reset) => {
                match &reset.reset {
                    ast::Reset::ALL => self.reset_settings(database),
                    ast::Reset::ConfigurationParameter(name) => {
                        self.change_setting(database, &name.to_string(), None, false)?;
                    }
                    ast::Reset::SessionAuthorization => {
                        self.change_setting(database, acting::AUTHORIZATION, None, false)?;
                    }
                }
                Ok("RESET".to_owned())
            }
            Ast::Declare { stmts } => {
                self.declare(database, prepared, params, stmts)?;
                Ok("DECLARE CURSOR".to_owned())
            }
            Ast::Fetch {
                name,
                direction,
                into: None,
                ..
            } => Ok(format!("FETCH {}", self.fetch(database, name, direction, Some(sink))?)),
            Ast::Fetch {
                name,
                direction,
                into: Some(into),
                ..
            } if into.to_string() == format!("\"{}\"", parse::cursors::NOWHERE) => {
                Ok(format!("MOVE {}", self.fetch(database, name, direction, None)?))
            }
            Ast::Close { cursor } => {
                self.close(cursor)?;
                let tag = match cursor {
                    ast::CloseCursor::All => "CLOSE CURSOR ALL",
                    ast::CloseCursor::Specific { .. } => "CLOSE CURSOR",
                };
                Ok(tag.to_owned())
            }
            Ast::Prepare {
                name,
                data_types,
                statement,
            } => {
                self.prepare(database, name, data_types, statement)?;
                self.note_prepared(&crate::bind::ident(name), &prepared.text, true);
                Ok("PREPARE".to_owned())
            }
            Ast::Execute {
                name: Some(name),
                parameters,
                immediate: false,
                using,
                ..
            } if using.is_empty() => {
                let (_, name) = crate::bind::object_name(name)?;
                let (executed, params) = self.executed(database, &name, parameters)?;
                match executed.ast.as_deref() {
                    Some(Ast::Execute { .. }) => unsupported("EXECUTE of EXECUTE"),
                    _ => self.run(database, &executed, &params, sink),
                }
            }
            Ast::LISTEN { channel } => {
                self.listen(database, Some(&crate::bind::ident(channel)), true)?;
                Ok("LISTEN".to_owned())
            }
            Ast::UNLISTEN { channel } => {
                let is_all = channel.quote_style.is_none() && channel.value == "*";
                let name = crate::bind::ident(channel);
                self.listen(database, (!is_all).then_some(name.as_str()), false)?;
                Ok("UNLISTEN".to_owned())
            }
            Ast::NOTIFY { channel, payload } => {
                self.notify(
                    database,
                    &crate::bind::ident(channel),
                    payload.as_deref().unwrap_or_default(),
                )?;
                Ok("NOTIFY".to_owned())
            }
            Ast::StartTransaction { modes, begin, .. } => {
                self.begin(modes)?;
                Ok(if *begin { "BEGIN" } else { "START TRANSACTION" }.to_owned())
            }
            Ast::Commit { chain, .. } => {
                self.warn_of_no_block();
                Ok(match self.commit(database, *chain)? {
                    true => "ROLLBACK".to_owned(),
                    false => "COMMIT".to_owned(),
                })
            }
            Ast::Rollback { chain, savepoint: None } => {
                self.warn_of_no_block();
                self.roll_back(database, *chain)?;
                Ok("ROLLBACK".to_owned())
            }
            Ast::Rollback {
                savepoint: Some(name), ..
            } => {
                self.roll_back_to(database, &crate::bind::ident(name))?;
                Ok("ROLLBACK".to_owned())
            }
            Ast::Savepoint { name } => {
                self.set_savepoint(database, &crate::bind::ident(name))?;
                Ok("SAVEPOINT".to_owned())
            }
            Ast::ReleaseSavepoint { name } => {
                self.release(database, &crate::bind::ident(name))?;
                Ok("RELEASE".to_owned())
            }
            Ast::Deallocate { name, .. } => {
                let name = crate::bind::ident(name);
                match name.as_str() {
                    "all" => {
                        self.prepared.clear();
                        return Ok("DEALLOCATE ALL".to_owned());
                    }
                    name => {
                        if self.prepared.remove(name).is_none() {
                            return Err(extended::unprepared(name));
                        }
                    }
                }
                Ok("DEALLOCATE".to_owned())
            }
            Ast::Discard { object_type } => {
                if *object_type == ast::DiscardObject::ALL {
                    if self.block.is_some() {
                        return fail("25001", "DISCARD ALL cannot run inside a transaction block");
                    }
                    self.prepared.clear();
                    self.portals.clear();
                    self.change_setting(database, acting::AUTHORIZATION, None, false)?;
                    self.reset_settings(database);
                    database.advisory.give_up_all(self.slot.id);
                    self.listen_no_more(database);
                }
                if matches!(object_type, ast::DiscardObject::ALL | ast::DiscardObject::SEQUENCES) {
                    self.facts.got = Arc::default();
                }
                if matches!(object_type, ast::DiscardObject::ALL | ast::DiscardObject::TEMP) {
                    self.statement(database, &prepared.text, OpKind::Command, ddl::temporary::drop_all)?;
                }
                Ok(format!("DISCARD {object_type}"))
            }
            Ast::CreateExtension(create) => ddl::extension::create(create).map(str::to_owned),
            Ast::DropExtension(drop) => ddl::extension::drop(drop).map(str::to_owned),
            other => {
                let text = other.to_string();
                let word = || text.split_whitespace().next().unwrap_or("statement").to_uppercase();
                unsupported(crate::parse::commands::missing(&text).unwrap_or_else(word))
            }
        }
    }

    /// Changes the settings that a statement asked for, and says what it wants said.
    fn do_asked(&mut self, database: &Database) -> Result<()> {
        for (name, value, is_local) in asked::take() {
            self.change_setting(database, &name, value.as_deref(), is_local)?;
        }
        for (channel, payload) in asked::notified() {
            self.notify(database, &channel, &payload)?;
        }
        self.take_cursors()
    }

    /// Does what is to be done with temporary tables at a commit, behind a statement that was one of its own.
    fn settle_temporary(&mut self, database: &Database) -> Result<()> {
        match self.block.is_none() && self.facts.temporary.acts_at_commit() {
            true => self.statement(database, "COMMIT", OpKind::Command, ddl::temporary::at_commit),
            false => Ok(()),
        }
    }

    /// TRUNCATE: all rows are deleted, of several tables in one commit.
    fn truncate(&mut self, database: &Database, text: &str, truncate: &ast::Truncate) -> Result<String> {
        if self.facts.is_read_only() {
            return fail("25006", "cannot execute TRUNCATE TABLE in a read-only transaction");
        }
        self.statement(database, text, OpKind::Delete, |statement, facts| {
            truncated(statement, facts, truncate)
        })?;
        Ok("TRUNCATE TABLE".to_owned())
    }

    /// LOCK TABLE: nobody is to drop or alter the tables, nor, in modes that say so, to write to them until the transaction ends.
    ///
    /// Errors: 25P01 outside of transactions; those of [`ddl::lock`].
    fn lock(&mut self, database: &Database, text: &str, lock: &ast::Lock) -> Result<()> {
        if self.block.as_ref().is_none_or(|block| block.implicit) {
            return fail("25P01", "LOCK TABLE can only be used in transaction blocks");
        }
        let tables = self.statement(database, text, OpKind::Read, |statement, facts| {
            ddl::lock::tables(statement, facts, lock)
        })?;
        // What others committed who had locked them is seen from here on.
        self.statement(database, text, OpKind::Read, |_, _| ddl::lock::wait(lock, &tables))?;
        self.statement(database, text, OpKind::Update, |statement, _| {
            ddl::lock::keep(statement, lock, &tables)
        })
    }

    fn set(&mut self, database: &Database, set: &Set) -> Result<()> {
        if let Some((name, value, is_local)) = settings::assigned_by(set) {
            self.warn_of_local(is_local);
            return self.change_setting(database, &name, value.as_deref(), is_local);
        }
        match set {
            Set::SetNames { charset_name, .. } => {
                self.change_setting(database, "client_encoding", Some(&charset_name.value), false)
            }
            Set::SetTransaction {
                modes,
                snapshot: None,
                session,
            } => match session {
                false => self.set_modes(modes),
                true => self.set_default_modes(modes),
            },
            Set::SetRole {
                context_modifier,
                role_name,
            } => {
                let is_local = *context_modifier == Some(ContextModifier::Local);
                self.warn_of_local(is_local);
                let role = role_name.as_ref().map(crate::bind::ident);
                self.change_setting(database, acting::ROLE, role.as_deref(), is_local)
            }
            Set::SetSessionAuthorization(to) => {
                let is_local = to.scope == ContextModifier::Local;
                self.warn_of_local(is_local);
                let role = match &to.kind {
                    SetSessionAuthorizationParamKind::Default => None,
                    SetSessionAuthorizationParamKind::User(name) => Some(crate::bind::ident(name)),
                };
                self.change_setting(database, acting::AUTHORIZATION, role.as_deref(), is_local)
            }
            _ => unsupported("SET of this form"),
        }
    }

    fn warn_of_no_block(&self) {
        if self.block.as_ref().is_none_or(|block| block.implicit) {
            notices::warn("25P01", "there is no transaction in progress");
        }
    }

    fn warn_of_local(&self, is_local: bool) {
        if is_local && self.block.is_none() {
            notices::warn("25P01", "SET LOCAL can only be used in transaction blocks");
        }
    }
}

/// Whether a statement changes what there is: it joins the transaction of those that are sent with it up to a Sync. Indexes that are made
/// beside writers are not.
fn changes(ast: &Ast, text: &str) -> bool {
    let says = match ast {
        Ast::LISTEN { .. } | Ast::UNLISTEN { .. } | Ast::NOTIFY { .. } => true,
        Ast::Query(_) => listed::names(text, "pg_notify"),
        _ => false,
    };
    let is_index = matches!(ast, Ast::CreateIndex(_));
    let is_block = matches!(own::of(ast), Ok(Some(Own::Do { .. }))) || matches!(ast, Ast::Call(_));
    writes(ast) || says || is_block || matches!(ast, Ast::Truncate(_)) || ddl::is_ddl(ast) && !is_index
}

/// Empties the tables of a TRUNCATE.
///
/// Errors: 0A000 for its clauses; those of [`write::truncate`].
fn truncated(statement: &Statement<'_>, facts: &SessionFacts, truncate: &ast::Truncate) -> Result<()> {
    let refused = truncate.partitions.is_some() || truncate.if_exists || truncate.on_cluster.is_some();
    let restarts = matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart));
    if refused {
        return unsupported("a clause of this TRUNCATE");
    }
    let cascades = matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
    let names = truncate.table_names.iter();
    let tables: Vec<_> = names
        .map(|table| ddl::truncated(statement, facts, &table.name))
        .collect::<Result<_>>()?;
    let emptied = write::truncate(statement, facts, &tables, cascades)?;
    match restarts {
        true => emptied
            .iter()
            .try_for_each(|ns| ddl::sequence::restart(statement, facts, ns)),
        false => Ok(()),
    }
}

fn plan_field(ty: Type) -> Field {
    Field::new("QUERY PLAN", ty)
}

fn setting_name(variable: &[ast::Ident]) -> String {
    let words: Vec<String> = variable.iter().map(|word| word.value.to_lowercase()).collect();
    // A setting of an extension has a dot in its name.
    let sign = if words
        .first()
        .is_some_and(|word| matches!(word.as_str(), "time" | "transaction" | "session"))
    {
        "_"
    } else {
        "."
    };
    match words.join(sign).as_str() {
        "time_zone" => "timezone".to_owned(),
        "transaction_isolation_level" => "transaction_isolation".to_owned(),
        name => name.to_owned(),
    }
}

fn show_fields(variable: &[ast::Ident]) -> Vec<Field> {
    let field = |name: &str| Field::new(name, Type::Text);
    match setting_name(variable).as_str() {
        "all" => ["name", "setting", "description"].map(field).to_vec(),
        name => vec![field(spelled(name))],
    }
}
