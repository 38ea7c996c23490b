//! COPY: rows as files, through the connection.
//!
//! A file that comes is read as it comes. Its rows are inserted in batches of one transaction: all of them are there in the end, or none.

use super::{Next, Prepared, Session, Sink};
use crate::asked;
use crate::bind::ident;
use crate::copy::arrow::Writer;
use crate::copy::read::Reader;
use crate::copy::{Format, Options, write as file};
use crate::error::{error, fail, unsupported};
use crate::parse::{self, copying};
use crate::protocol::backend;
use crate::protocol::frontend::Message;
use crate::run::files;
use crate::run::planned::PlanCell;
use crate::run::query::{self, Field};
use crate::types::style::Style;
use crate::types::{Type, encoding};
use crate::write::{self, WriteCell};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_files::folder::NewFile;
use nestor_model::{Result, Value};
use nestor_planner::relation::Chunk;
use sqlparser::ast::{
    CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, ObjectName, Query, Statement as Ast,
};
use std::cell::RefCell;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

/// Values that are inserted by one statement, about.
const BATCH_VALUES: usize = 2000;
/// Bytes of a file that are read or written at once.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of them, about.
const BATCH_BYTES: usize = 4 << 20;

/// A file that comes.
pub(super) struct Coming {
    reader: Reader,
    /// `INSERT INTO t (a, b) OVERRIDING SYSTEM VALUE VALUES `, and what follows the rows.
    insert: (String, String),
    types: Vec<Type>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
    done: u64,
    /// The statement for a whole batch, with how it writes.
    whole: Option<(usize, Arc<Ast>, WriteCell)>,
    /// Its answer ends with ReadyForQuery by itself.
    is_simple: bool,
}

/// A COPY as it was written.
struct Words<'a> {
    source: &'a CopySource,
    to: bool,
    /// The file of the server; nothing for the client's.
    file: Option<&'a Path>,
    options: &'a [CopyOption],
    legacy: &'a [CopyLegacyOption],
}

impl Words<'_> {
    /// What the options say, for these columns. Names of files tell the forms that PostgreSQL does not have.
    fn options(&self, columns: &[&str]) -> Result<Options> {
        let usual = match self.file.and_then(nestor_files::Format::of_name) {
            Some(nestor_files::Format::Parquet) => Format::Parquet,
            Some(nestor_files::Format::Arrow) => Format::Arrow,
            _ => Format::Text,
        };
        Options::new(self.options, self.legacy, columns, usual)
    }
}

/// What a statement of COPY says.
///
/// Errors: 42501 for programs of the server, which nobody may run.
fn words(ast: &Ast) -> Result<Words<'_>> {
    let Ast::Copy {
        source,
        to,
        target,
        options,
        legacy_options,
        values,
    } = ast
    else {
        return fail("XX000", "a statement that is no COPY was run as one");
    };
    if !values.is_empty() {
        return unsupported("COPY with its data in the statement, or before other statements,");
    }
    let file = match (to, target) {
        // Either word is the connection, whatever the direction, as in PostgreSQL.
        (_, CopyTarget::Stdin | CopyTarget::Stdout) => None,
        (_, CopyTarget::File { filename }) => Some(Path::new(filename)),
        (_, CopyTarget::Program { .. }) => {
            return fail("42501", "COPY runs no programs of the server: use STDIN and STDOUT");
        }
    };
    Ok(Words {
        source,
        to: *to,
        file,
        options,
        legacy: legacy_options,
    })
}

/// Where a file goes.
enum Outlet<'o, 's, 'f> {
    /// To the client.
    Client(&'o mut Sink<'s, 'f>),
    /// To a file of the server.
    File(BufWriter<NewFile>, &'o Path),
}

impl Outlet<'_, '_, '_> {
    fn begin(&mut self, format: Format, columns: usize) {
        if let Self::Client(sink) = self {
            backend::copy(sink.out, b'H', format.is_binary(), columns);
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Client(_) if bytes.is_empty() => Ok(()),
            Self::Client(sink) => {
                backend::check_size(bytes.len())?;
                backend::message(sink.out, b'd', |out| out.extend_from_slice(bytes));
                sink.make_room()
            }
            Self::File(file, path) => file.write_all(bytes).map_err(|failed| files::io_error(&failed, path)),
        }
    }

    fn end(self) -> Result<()> {
        match self {
            Self::Client(sink) => backend::empty(sink.out, b'c'),
            Self::File(file, path) => {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error);
                file.and_then(NewFile::finish)
                    .map_err(|failed| files::io_error(&failed, path))?;
            }
        }
        Ok(())
    }
}

/// `SELECT columns FROM table`.
fn query_of(table: &ObjectName, columns: &[Ident]) -> Result<Box<Query>> {
    let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let list = if columns.is_empty() {
        "*".to_owned()
    } else {
        columns.join(", ")
    };
    match parse::parse(&format!("SELECT {list} FROM {table}"))?.pop() {
        Some(Ast::Query(query)) => Ok(query),
        _ => fail("42601", "syntax error in COPY"),
    }
}

impl Session {
    /// Whether a file is coming.
    pub(super) fn is_copying(&self) -> bool {
        self.coming.is_some()
    }

    /// Begins a COPY. One to the client is over afterwards: its tag; one from the client goes on with the messages that follow.
    pub(super) fn copy(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        ast: &Ast,
        sink: &mut Sink<'_, '_>,
    ) -> Result<Option<String>> {
        let words = words(ast)?;
        if words.file.is_some() {
            // Who may not is told nothing of tables and files.
            files::folder(&database.options, &self.facts)?;
        }
        let query = match words.source {
            CopySource::Query(query) => query.clone(),
            CopySource::Table { table_name, columns } => query_of(table_name, columns)?,
        };
        if words.to {
            let is_said = |said: &dyn Fn(&str) -> bool| {
                words
                    .options
                    .iter()
                    .any(|option| matches!(option, CopyOption::Encoding(name) if said(name)))
            };
            if is_said(&|name| copying::condition(name).is_some()) {
                return fail("42601", "WHERE clause not allowed with COPY TO");
            }
            if is_said(&|name| name == copying::MATCH) {
                return fail("0A000", "cannot use \"match\" with HEADER in COPY TO");
            }
            return self.copy_out(database, prepared, &words, &query, sink).map(Some);
        }
        let CopySource::Table { table_name, .. } = words.source else {
            return fail("42601", "syntax error: COPY FROM wants a table");
        };
        if self.facts.is_read_only() {
            return fail("25006", "cannot execute COPY FROM in a read-only transaction");
        }
        let (fields, _) = self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
            query::describe(statement, facts, &query, Vec::new())
        })?;
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let options = words.options(&names)?;
        check_condition(options.condition.as_deref())?;
        if options.format.has_columns() {
            return self.copy_columns_in(database, (table_name, &names), &words, &options, sink);
        }
        let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let types: Vec<Type> = fields.iter().map(|field| field.ty.clone()).collect();
        let table = table_name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .map(ident)
            .unwrap_or_default();
        let is_binary = options.format == Format::Binary;
        let named = names.iter().map(|name| (*name).to_owned()).zip(types.iter().cloned());
        let list = list.join(", ");
        let into = format!("INSERT INTO {table_name} ({list}) OVERRIDING SYSTEM VALUE");
        let insert = match &options.condition {
            None => (format!("{into} VALUES "), String::new()),
            Some(condition) => (
                format!("{into} SELECT * FROM (VALUES "),
                format!(") AS {} ({list}) WHERE {condition}", quoted(&table)),
            ),
        };
        let coming = Coming {
            reader: Reader::new(options, table, named.collect()),
            insert,
            types,
            rows: Vec::new(),
            bytes: 0,
            done: 0,
            whole: None,
            is_simple: sink.describes,
        };
        // What cannot be inserted at all is told before the client sends its file.
        let probe = statement_of(&coming, 1)?;
        self.statement(database, &prepared.text, OpKind::Insert, |statement, facts| {
            write::check_batches(statement, facts, &probe, coming.types.clone())
        })?;
        if self.block.is_none() {
            self.block = Some(self.new_block(true));
        }
        if let Some(path) = words.file {
            self.coming = Some(coming);
            return self.copy_file_in(database, path).map(Some);
        }
        backend::copy(sink.out, b'G', is_binary, coming.types.len());
        (sink.flush)(sink.out)?;
        self.coming = Some(coming);
        Ok(None)
    }

    /// Reads a file of the server as if the client sent it; the tag.
    fn copy_file_in(&mut self, database: &Database, path: &Path) -> Result<String> {
        let read = (|| {
            let folder = files::folder(&database.options, &self.facts)?;
            let mut file = folder.read(path).map_err(|failed| files::io_error(&failed, path))?;
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match file.read(&mut piece).map_err(|failed| files::io_error(&failed, path))? {
                    0 => return self.piece(database, None),
                    length => self.piece(database, Some(&piece[..length]))?,
                }
            }
        })();
        let done = self.coming.take().map_or(0, |coming| coming.done);
        let is_implicit = self.block.as_ref().is_some_and(|block| block.implicit);
        match read {
            Ok(()) if is_implicit => _ = self.commit(database, false)?,
            Ok(()) => {}
            Err(error) => {
                if is_implicit {
                    self.roll_back(database, false)?;
                }
                return Err(error);
            }
        }
        Ok(format!("COPY {done}"))
    }

    /// Inserts the rows of a file of the server that has them column by column; the tag.
    fn copy_columns_in(
        &mut self,
        database: &Database,
        (table, columns): (&ObjectName, &[&str]),
        words: &Words<'_>,
        options: &Options,
        sink: &mut Sink<'_, '_>,
    ) -> Result<Option<String>> {
        let Some(path) = words.file else {
            return unsupported("COPY FROM STDIN of Parquet and Arrow: nestor import, or a file of the server,");
        };
        let list: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let function = if options.format == Format::Parquet {
            "read_parquet"
        } else {
            "read_arrow"
        };
        let path = path.display().to_string().replace('\'', "''");
        let list = list.join(", ");
        let mut text = format!("INSERT INTO {table} ({list}) SELECT * FROM {function}('{path}')");
        if let Some(condition) = &options.condition {
            let name = table.0.last().and_then(|part| part.as_ident());
            let name = name.map(ident).unwrap_or_default();
            text.push_str(&format!(" AS {} ({list}) WHERE {condition}", quoted(&name)));
        }
        let ast = parse::parse(&text)?.pop().map(Arc::new);
        let insert = Prepared::new(text, ast, Vec::new());
        let tag = self.run(database, &insert, &[], sink)?;
        Ok(Some(tag.replacen("INSERT 0", "COPY", 1)))
    }

    fn copy_out(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        words: &Words<'_>,
        query: &Query,
        sink: &mut Sink<'_, '_>,
    ) -> Result<String> {
        // What a file of another form would be called by its options is settled with its columns.
        let is_of_columns = words.options(&[]).is_ok_and(|options| options.format.has_columns());
        let outlet = match words.file {
            None => Outlet::Client(sink),
            Some(path) => {
                let folder = files::folder(&database.options, &self.facts)?;
                let file = folder.create(path).map_err(|failed| files::io_error(&failed, path))?;
                Outlet::File(BufWriter::with_capacity(PIECE_BYTES, file), path)
            }
        };
        let rows = match is_of_columns {
            true => self.columns_out(database, prepared, words, query, outlet),
            false => self.rows_out(database, prepared, words, query, outlet),
        };
        rows.map(|rows| format!("COPY {rows}"))
    }

    fn rows_out(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        words: &Words<'_>,
        query: &Query,
        outlet: Outlet<'_, '_, '_>,
    ) -> Result<u64> {
        let (mut options, mut fields) = (Options::default(), Vec::new());
        let state = RefCell::new((outlet, &mut options, &mut fields));
        let (mut part, head) = (Vec::new(), RefCell::new(Vec::new()));
        let rows = self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
            let mut begin = |all: &[Field]| {
                let (outlet, options, fields) = &mut *state.borrow_mut();
                **fields = all.to_vec();
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                **options = words.options(&names)?;
                outlet.begin(options.format, fields.len());
                let mut head = head.borrow_mut();
                let _encoding = Style::with_encoding(options.encoding);
                file::head(options, fields, &mut head);
                encoding::lost()?;
                // Of a binary file it goes with the first row, as drivers expect it.
                if options.format != Format::Binary {
                    outlet.put(&head)?;
                    head.clear();
                }
                Ok(())
            };
            let mut give = |row: Vec<Value>| {
                let (outlet, options, fields) = &mut *state.borrow_mut();
                part.clear();
                part.append(&mut head.borrow_mut());
                backend::check_size(row.iter().map(Value::weight).sum())?;
                let _encoding = Style::with_encoding(options.encoding);
                file::row(options, fields, &row, &mut part);
                encoding::lost()?;
                outlet.put(&part)
            };
            let query = (query, &PlanCell::default());
            let mut to = query::Takers {
                begin: &mut begin,
                give: &mut give,
            };
            query::run(statement, facts, query, (&[], &[]), &mut to)
        })?;
        let (mut outlet, ..) = state.into_inner();
        let mut foot = head.into_inner();
        file::foot(&options, &mut foot);
        outlet.put(&foot)?;
        outlet.end()?;
        Ok(rows)
    }

    fn columns_out(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        words: &Words<'_>,
        query: &Query,
        outlet: Outlet<'_, '_, '_>,
    ) -> Result<u64> {
        let state = RefCell::new((outlet, None));
        let rows = self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
            let mut begin = |fields: &[Field]| {
                let (outlet, writer) = &mut *state.borrow_mut();
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let options = words.options(&names)?;
                outlet.begin(options.format, fields.len());
                *writer = Some(Writer::new(options.format, fields));
                Ok(())
            };
            let mut give = |chunk: &Chunk| {
                let (outlet, writer) = &mut *state.borrow_mut();
                let Some(writer) = writer else { return Ok(()) };
                writer.add(chunk)?;
                outlet.put(&writer.take())
            };
            let rows = query::run_by_chunks(statement, facts, query, &mut begin, &mut give)?;
            let (outlet, writer) = &mut *state.borrow_mut();
            match writer.take() {
                Some(writer) => outlet.put(&writer.finish()?)?,
                None => return fail("XX000", "a file was ended that did not begin"),
            }
            Ok(rows)
        })?;
        let (outlet, _) = state.into_inner();
        outlet.end()?;
        Ok(rows)
    }

    /// Takes a message while a file is coming.
    pub(super) fn receive_copy(
        &mut self,
        database: &Database,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Next> {
        let result = match message {
            Message::CopyData(piece) => self.piece(database, Some(piece)),
            Message::CopyDone => self.piece(database, None).and_then(|()| self.copied(database, out)),
            Message::CopyFail(reason) => Err(error("57014", format!("COPY from stdin failed: {reason}"))),
            // The client asked for the answer before it began.
            Message::Sync | Message::Flush => Ok(()),
            _ => Err(error("08P01", "unexpected message during COPY from stdin")),
        };
        if let Err(error) = result {
            let is_simple = self.coming.take().is_none_or(|coming| coming.is_simple);
            asked::forget();
            self.tell(out);
            self.failed(&error, out);
            if self.block.as_ref().is_some_and(|block| block.implicit) {
                self.roll_back(database, false)?;
            }
            match is_simple {
                true => backend::ready(out, self.status()),
                false => self.skips = true,
            }
        }
        Ok(Next::Go)
    }

    /// Reads a piece of the file, or its end, and inserts what makes a batch.
    fn piece(&mut self, database: &Database, piece: Option<&[u8]>) -> Result<()> {
        let Some(mut coming) = self.coming.take() else {
            return Ok(());
        };
        let result = (|| {
            if let Some(piece) = piece {
                coming.reader.push(piece)?;
            }
            while let Some(row) = coming.reader.next(piece.is_none())? {
                coming.bytes += row.iter().map(Value::weight).sum::<usize>();
                coming.rows.push(row);
                if coming.rows.len() >= coming.batch() || coming.bytes >= BATCH_BYTES {
                    self.insert(database, &mut coming)?;
                }
            }
            match piece {
                None => self.insert(database, &mut coming),
                Some(_) => Ok(()),
            }
        })();
        self.coming = Some(coming);
        result
    }

    fn insert(&mut self, database: &Database, coming: &mut Coming) -> Result<()> {
        let rows = std::mem::take(&mut coming.rows);
        coming.bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        let (ast, cell) = match &coming.whole {
            Some((count, ast, cell)) if *count == rows.len() => (ast.clone(), cell.clone()),
            _ => {
                let (ast, cell) = (Arc::new(statement_of(coming, rows.len())?), WriteCell::default());
                coming.whole = Some((rows.len(), ast.clone(), cell.clone()));
                (ast, cell)
            }
        };
        let types: Vec<Type> = (0..rows.len()).flat_map(|_| coming.types.iter().cloned()).collect();
        let values: Vec<Value> = rows.into_iter().flatten().collect();
        coming.done += self.statement(database, "COPY FROM STDIN", OpKind::Insert, |statement, facts| {
            let given = (types.as_slice(), values.as_slice());
            write::run(
                statement,
                facts,
                (&ast, Some(&cell)),
                given,
                (&|_| Ok(()), &mut |_| Ok(())),
                &mut |_| Ok(()),
            )
        })?;
        self.do_asked(database)
    }

    /// The file has come.
    fn copied(&mut self, database: &Database, out: &mut Vec<u8>) -> Result<()> {
        if self.block.as_ref().is_some_and(|block| block.implicit) {
            self.commit(database, false)?;
        }
        self.tell(out);
        if let Some(coming) = self.coming.take() {
            backend::complete(out, &format!("COPY {}", coming.done));
            if coming.is_simple {
                backend::ready(out, self.status());
            }
        }
        Ok(())
    }
}

impl Coming {
    /// Rows of a batch.
    fn batch(&self) -> usize {
        (BATCH_VALUES / self.types.len().max(1)).max(1)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What may be asked of the rows that come.
///
/// Errors: 0A000 for subqueries, 42601.
fn check_condition(condition: Option<&str>) -> Result<()> {
    let Some(condition) = condition else { return Ok(()) };
    parse::expression(condition)?;
    match parse::words(condition).iter().any(|word| word == "select") {
        true => fail("0A000", "cannot use subquery in COPY FROM WHERE condition"),
        false => Ok(()),
    }
}

/// The statement that inserts so many rows.
fn statement_of(coming: &Coming, rows: usize) -> Result<Ast> {
    let width = coming.types.len();
    let (mut text, behind) = coming.insert.clone();
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..width {
            let comma = if column == 0 { "" } else { ", " };
            text.push_str(&format!("{comma}${}", row * width + column + 1));
        }
        text.push(')');
    }
    text.push_str(&behind);
    match parse::parse(&text)?.pop() {
        Some(ast) => Ok(ast),
        None => fail("XX000", "COPY made no statement"),
    }
}
