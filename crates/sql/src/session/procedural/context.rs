//! Where an error happened: the statements of the routines that were running, the innermost first.

use super::Running;
use crate::error::{Field, STATE, state};
use crate::notices;
use crate::parse::procedural::Step;
use nestor_model::{Error, ErrorCode};

/// Adds lines to the context of an error.
fn within(told: Error, lines: &str) -> Error {
    // Whoever began the statement begins it again, and nobody is told.
    if told.code() == ErrorCode::WriteConflict {
        return told;
    }
    let mut extra = told.extra().cloned().unwrap_or_default();
    if extra.get(STATE).is_none() {
        extra.set(STATE, state(&told));
    }
    let name = Field::Context.name();
    let before = extra.get(name).and_then(|before| before.as_str().map(str::to_owned));
    extra.set(
        name,
        match before {
            Some(before) => format!("{before}\n{lines}"),
            None => lines.to_owned(),
        },
    );
    told.with_extra(extra)
}

/// What a step is called, and the statement of SQL that it is.
fn called(step: &Step) -> (&'static str, Option<&str>) {
    match step {
        Step::Sql { text, .. }
            if text
                .trim_start()
                .get(..5)
                .is_some_and(|word| word.eq_ignore_ascii_case("CALL ")) =>
        {
            ("CALL", Some(text))
        }
        Step::Sql { text, .. } => ("SQL statement", Some(text)),
        Step::Perform(text) => ("PERFORM", Some(text)),
        Step::Execute { .. } => ("EXECUTE", None),
        Step::Assign(..) | Step::AssignElement { .. } => ("assignment", None),
        Step::Case { .. } => ("CASE", None),
        Step::ForEach { .. } => ("FOREACH over array", None),
        Step::ForCursor { .. } => ("FOR over cursor", None),
        Step::Diagnostics { stacked: true, .. } => ("GET STACKED DIAGNOSTICS", None),
        Step::Diagnostics { .. } => ("GET DIAGNOSTICS", None),
        Step::Assert { .. } => ("ASSERT", None),
        Step::Open { .. } => ("OPEN", None),
        Step::Fetch { into: None, .. } => ("MOVE", None),
        Step::Fetch { .. } => ("FETCH", None),
        Step::Close(_) => ("CLOSE", None),
        Step::If { .. } => ("IF", None),
        Step::Loop { condition: Some(_), .. } => ("WHILE", None),
        Step::Loop { .. } => ("LOOP", None),
        Step::ForNumbers { .. } => ("FOR with integer loop variable", None),
        Step::ForRows { is_computed: true, .. } => ("FOR over EXECUTE statement", None),
        Step::ForRows { .. } => ("FOR over SELECT rows", None),
        Step::Leave { continues: true, .. } => ("CONTINUE", None),
        Step::Leave { .. } => ("EXIT", None),
        Step::End { commits: true } => ("COMMIT", None),
        Step::End { .. } => ("ROLLBACK", None),
        Step::Raise(_) => ("RAISE", None),
        Step::Return(_) => ("RETURN", None),
        Step::ReturnNext(_) => ("RETURN NEXT", None),
        Step::ReturnQuery { text, is_computed, .. } => ("RETURN QUERY", (!is_computed).then_some(text)),
        Step::Block(_) | Step::Line(_) => ("statement block", None),
    }
}

impl Running<'_, '_> {
    /// What the routine is called.
    fn function(&self) -> String {
        match &self.routine {
            Some(routine) => format!("PL/pgSQL function {}", routine.shown()),
            None => "PL/pgSQL function inline_code_block".to_owned(),
        }
    }

    /// An error of a step that begins at a line, unless a step within it was told of already.
    pub(super) fn at_step(&mut self, told: Error, (line, step): (usize, &Step)) -> Error {
        // An error that is raised again knows where it was.
        let is_again = matches!(step, Step::Raise(raise) if raise.level.is_empty());
        if std::mem::replace(&mut self.is_told, true) || is_again {
            return told;
        }
        // That there is no row, or more than one, is no error of the statement.
        let is_of_rows = crate::error::fields(&told)
            .iter()
            .all(|(field, _)| *field != Field::Context)
            && matches!(state(&told).as_str(), "P0002" | "P0003");
        let lines = self.lines((line, step), !is_of_rows);
        within(told, &lines)
    }

    /// The lines of context of a step that begins at a line, with its statement if that `is_shown`.
    fn lines(&self, (line, step): (usize, &Step), is_shown: bool) -> String {
        let (name, text) = called(step);
        let own = format!("{} line {line} at {name}", self.function());
        let text = text.filter(|_| is_shown);
        let statement = text.or(self.computes.as_deref().filter(|_| name == "EXECUTE"));
        match statement {
            Some(text) => format!("SQL statement \"{}\"\n{own}", text.trim()),
            None => own,
        }
    }

    /// Has what was raised in a step, unless in one within it, tell where.
    pub(super) fn place_notices(&mut self, at: (usize, &Step)) {
        if notices::count() > self.placed {
            let lines = self.lines(at, true);
            notices::alter(self.placed, |told| within(told, &lines));
        }
        self.placed = notices::count();
    }

    /// An error of the declarations of a block that begins at a line.
    pub(super) fn at_declaration(&mut self, told: Error, line: usize) -> Error {
        match std::mem::replace(&mut self.is_told, true) {
            true => told,
            false => {
                let during = "during statement block local variable initialization";
                within(told, &format!("{} line {line} {during}", self.function()))
            }
        }
    }

    /// An error behind all steps, with what was done then.
    pub(super) fn at_end(&mut self, told: Error, doing: &str) -> Error {
        match self.is_told {
            true => told,
            false => within(told, &format!("{}{doing}", self.function())),
        }
    }
}

/// An error of a statement of a function in SQL, which are counted from 1.
pub(super) fn of_statement(told: Error, name: &str, number: usize) -> Error {
    within(told, &format!("SQL function \"{name}\" statement {number}"))
}
