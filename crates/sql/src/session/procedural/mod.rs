//! Blocks of PL/pgSQL: DO, functions, procedures and triggers. Each runs within one transaction, everything or nothing.
//!
//! What stands in a block is run as statements of the statement that runs it ([`nested`]). Variables are parameters of these: a name of a
//! variable that stands where a column could is replaced ([`names`]). A part that has handlers begins a savepoint; to handle an error is to
//! go back to it. [`called`] gives a routine its arguments and takes what it gives, [`steps`] has what blocks do, [`values`] their variables,
//! [`configured`] the settings that hold while a routine runs, [`loops`], [`cursors`], [`ended`] and [`context`] what their names say, [`raised`] what they tell.

mod called;
mod configured;
mod context;
mod cursors;
mod ended;
mod loops;
mod names;
mod nested;
mod raised;
mod steps;
mod values;

pub(super) use self::called::Blocks;
use self::cursors::Cursor;
use self::values::Variable;
use super::Session;
use crate::asked;
use crate::bind::Binder;
use crate::catalog::routines::Routine;
use crate::error::{fail, unsupported};
use crate::notices;
use crate::parse::procedural::{Conflict, parse};
use crate::run::procedures::{Deeper, Returned};
use crate::run::query::Field;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use crate::types::{style, zone};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::statement::Statement;
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::Tuple;
use sqlparser::ast::Function;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes that the rows of a statement of a block may take, and those that a function returns.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// What comes after a step.
enum Flow {
    /// The next one.
    Next,
    /// The end of a loop, or its next round.
    Leave { label: Option<String>, continues: bool },
    /// The end.
    Return,
}

/// What a block gives.
#[derive(Default)]
struct Results {
    /// What RETURN says.
    value: Option<(Field, Value)>,
    /// What RETURN NEXT and RETURN QUERY have given so far.
    rows: Vec<Tuple>,
    bytes: usize,
}

/// A variable by its number, or a field of it.
type Place = (usize, Option<String>);

/// A block that runs.
struct Running<'s, 'r> {
    statement: &'s Statement<'r>,
    /// What it knows of the session: settings may change for what follows.
    facts: SessionFacts,
    /// How many of the settings that were asked for it knows.
    asked: usize,
    /// The time zone and the style that were set meanwhile.
    entered: Option<(zone::Within, style::Within)>,
    variables: Vec<Variable>,
    /// The variables that are arguments, by their numbers.
    args: Vec<usize>,
    cursors: HashMap<String, Cursor>,
    /// What the handler that runs handles.
    handled: Vec<Error>,
    savepoints: usize,
    /// How many parts run that may be taken back.
    parts: usize,
    /// The error that goes through it knows where in it it happened.
    is_told: bool,
    /// How many notices know where they were raised.
    placed: usize,
    /// The text that EXECUTE has computed.
    computes: Option<String>,
    /// What it is of, if it is no DO.
    routine: Option<Arc<Routine>>,
    conflict: Conflict,
    /// The transaction is nobody's but that of the CALL or DO that the client sent: it may end before that does.
    may_end: bool,
    /// How many rows the last statement was about.
    count: u64,
    /// The variables and their fields that the parameters of the last statement are.
    places: Vec<Place>,
    results: Results,
}

/// The rows of a statement.
#[derive(Default)]
struct Rows {
    fields: Vec<Field>,
    rows: Vec<Vec<Value>>,
    /// How many rows it was about.
    count: u64,
}

impl<'s, 'r> Running<'s, 'r> {
    fn new(statement: &'s Statement<'r>, facts: &SessionFacts, routine: Option<Arc<Routine>>) -> Self {
        Self {
            statement,
            facts: SessionFacts {
                transition: Arc::default(),
                ..facts.clone()
            },
            asked: asked::mark().0,
            entered: None,
            variables: vec![Variable::new("found", Type::Bool, Value::Bool(false))],
            args: Vec::new(),
            cursors: HashMap::new(),
            handled: Vec::new(),
            savepoints: 0,
            parts: 0,
            is_told: false,
            placed: notices::count(),
            computes: None,
            routine,
            conflict: Conflict::Error,
            may_end: false,
            count: 0,
            places: Vec::new(),
            results: Results::default(),
        }
    }

    fn deeper<'f>(facts: &'f SessionFacts) -> Result<Deeper<'f>> {
        facts.routines.deeper()
    }
}

/// Runs the block of a DO, which `may_end` the transaction.
///
/// Errors: those of reading it and of its statements; 42704 for other languages.
pub(super) fn run_block(
    statement: &Statement<'_>,
    facts: &SessionFacts,
    (language, code): (&str, &str),
    may_end: bool,
) -> Result<()> {
    if language != "plpgsql" {
        return fail("42704", format!("language \"{language}\" does not exist"));
    }
    let block = parse(code)?;
    let _deeper = Running::deeper(facts)?;
    let mut running = Running::new(statement, facts, None);
    (running.conflict, running.may_end) = (block.conflict, may_end);
    match running.block(&block)? {
        Flow::Next | Flow::Return => {
            running.hand_cursors();
            Ok(())
        }
        Flow::Leave { .. } => fail("42601", "EXIT cannot be used outside a loop, unless it has a label"),
    }
}

/// What is known of a CALL without running it: the columns that it gives, if any, and the types of its parameters.
///
/// Errors: those of [`run_call`] before the procedure begins.
pub(super) fn describe_call(
    statement: &Statement<'_>,
    facts: &SessionFacts,
    call: &Function,
    types: Vec<Type>,
) -> Result<(Option<Vec<Field>>, Vec<Type>)> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, facts);
    let mut binder = Binder::new(&reading, types);
    binder.describes = true;
    let (routine, _) = binder.procedure(call)?;
    let outs = routine.outs();
    let fields = outs
        .into_iter()
        .map(|(name, ty)| Field::new(name, ty))
        .collect::<Vec<_>>();
    Ok(((!fields.is_empty()).then_some(fields), binder.params))
}

/// Calls a procedure, which `may_end` the transaction: the columns and the row that it gives, if it has any.
///
/// Errors: 42883, 42809 for a function; those of the procedure.
pub(super) fn run_call(
    statement: &Statement<'_>,
    facts: &SessionFacts,
    call: &Function,
    (types, params): (&[Type], &[Value]),
    may_end: bool,
) -> Result<Option<(Vec<Field>, Vec<Value>)>> {
    let (routine, args) = called::procedure(statement, facts, call, (types, params))?;
    let given = called::call(statement, facts, &routine, args, may_end)?;
    let outs = routine.outs();
    if outs.is_empty() {
        return Ok(None);
    }
    let fields = outs.iter().map(|(name, ty)| Field::new(name.clone(), ty.clone()));
    let row = match given {
        Returned::Value(value) => called::row_type(&outs).values(&value),
        Returned::Rows(_) => return unsupported("a procedure that gives rows"),
    };
    Ok(Some((fields.collect(), row)))
}

impl Session {
    /// Runs `work` as one statement within the transaction that there is, or in one of its own.
    ///
    /// Errors: those of `work` and of the commit.
    pub(super) fn within_transaction<T>(
        &mut self,
        database: &Database,
        text: &str,
        work: impl FnOnce(&Statement<'_>, &SessionFacts) -> Result<T>,
    ) -> Result<T> {
        let begins = self.block.is_none();
        if begins {
            self.block = Some(self.new_block(true));
        }
        let ran = self.statement(database, text, OpKind::Update, work);
        let ran = ran.and_then(|out| self.do_asked(database).map(|()| out));
        self.end_own(database, begins, ran)
    }

    /// Ends the transaction that a statement began for itself.
    ///
    /// Errors: that of the statement, or of the commit.
    pub(super) fn end_own<T>(&mut self, database: &Database, begins: bool, ran: Result<T>) -> Result<T> {
        match (begins, ran) {
            (false, ran) => ran,
            (true, Ok(out)) => self.commit(database, false).map(|_| out),
            (true, Err(error)) => {
                self.roll_back(database, false)?;
                Err(error)
            }
        }
    }
}
