//! What is told of a block when a function is made of it, and not only when it runs.

use super::{Block, Condition, Destination, Given, Kind, Opened, Step};
use crate::error::{Field, error, fail, state, with};
use crate::parse;
use nestor_model::Result;

/// What a routine is declared to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// A value.
    Value,
    /// Nothing.
    Nothing,
    /// Rows.
    Rows,
    /// What its OUT parameters have.
    Outs,
    /// What its OUT parameters have, row by row.
    OutRows,
    /// The row of a trigger.
    Trigger,
}

/// The names that blocks and their parts know.
struct Known<'k> {
    gives: Gives,
    names: Vec<String>,
    /// Those of them that keep their values.
    constants: Vec<String>,
    /// Loops around a step, by their labels, and blocks with `false`.
    around: Vec<(Option<&'k str>, bool)>,
}

/// What every function of a trigger knows.
const OF_TRIGGERS: [&str; 12] = [
    "new",
    "old",
    "tg_name",
    "tg_op",
    "tg_when",
    "tg_level",
    "tg_relid",
    "tg_relname",
    "tg_table_name",
    "tg_table_schema",
    "tg_nargs",
    "tg_argv",
];

/// Looks at the block of a routine with these names, its own and those of its parameters.
///
/// Errors: 42601 for statements that are none, for variables that nobody declares, and EXIT outside of loops; 42804 for RETURN of something else
/// than is declared.
pub fn check(block: &Block, gives: Gives, names: Vec<String>) -> Result<()> {
    let mut known = Known {
        gives,
        names,
        constants: Vec::new(),
        around: Vec::new(),
    };
    known.names.push("found".to_owned());
    if gives == Gives::Trigger {
        known.names.extend(OF_TRIGGERS.map(str::to_owned));
    }
    known.block(block)
}

/// Refuses an expression that is none. What the grammar does not know is told when it runs.
fn expression(text: &str) -> Result<()> {
    statement(&format!("SELECT {text}"))
}

fn statement(text: &str) -> Result<()> {
    match parse::parse(text) {
        Err(told) if state(&told) == "42601" => {
            // Places are those of another text.
            let detail = crate::error::fields(&told)
                .into_iter()
                .find(|(field, _)| *field == Field::Detail);
            let plain = error("42601", told.message());
            Err(match detail {
                Some((field, text)) => with(plain, &[(field, text)]),
                None => plain,
            })
        }
        _ => Ok(()),
    }
}

impl<'k> Known<'k> {
    fn block(&mut self, block: &'k Block) -> Result<()> {
        let outside = self.names.len();
        self.names.extend(block.label.clone());
        for own in &block.variables {
            if let Some(value) = &own.value {
                expression(value)?;
            }
            match &own.kind {
                Kind::Cursor { query, .. } => statement(query)?,
                Kind::Alias(of) => self.target(of)?,
                Kind::Plain => {}
            }
            self.names.push(own.name.clone());
            self.constants.retain(|name| *name != own.name);
            if own.is_constant {
                self.constants.push(own.name.clone());
            }
        }
        self.around.push((block.label.as_deref(), false));
        self.steps(&block.steps)?;
        self.names.extend(["sqlstate", "sqlerrm"].map(str::to_owned));
        for (conditions, steps) in &block.handlers {
            debug_assert!(conditions.iter().all(|own| *own != Condition::State(String::new())));
            self.steps(steps)?;
        }
        self.around.pop();
        self.names.truncate(outside);
        Ok(())
    }

    fn steps(&mut self, steps: &'k [Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    /// The steps of a loop, with the names that it makes.
    fn looped(&mut self, label: Option<&'k str>, names: &[&str], steps: &'k [Step]) -> Result<()> {
        let outside = self.names.len();
        self.names.extend(names.iter().map(|name| (*name).to_owned()));
        self.names.extend(label.map(str::to_owned));
        self.around.push((label, true));
        self.steps(steps)?;
        self.around.pop();
        self.names.truncate(outside);
        Ok(())
    }

    /// A variable that is assigned to.
    fn target(&self, name: &str) -> Result<()> {
        let first = name.split('.').next().unwrap_or(name);
        if self.constants.iter().any(|own| own == name) {
            return fail("22005", format!("variable \"{name}\" is declared CONSTANT"));
        }
        match first.starts_with('$') || self.names.iter().any(|own| own == first) {
            true => Ok(()),
            false => fail("42601", format!("\"{name}\" is not a known variable")),
        }
    }

    fn taken(&self, into: Option<&Destination>) -> Result<()> {
        let mut names = into.into_iter().flat_map(|into| &into.names);
        names.try_for_each(|name| self.target(name))
    }

    fn given(given: &Given) -> Result<()> {
        given.iter().try_for_each(|(_, value)| expression(value))
    }

    fn step(&mut self, step: &'k Step) -> Result<()> {
        match step {
            Step::Sql { text, into } => {
                statement(text)?;
                self.taken(into.as_ref())
            }
            Step::Perform(text) => statement(text),
            Step::Execute { text, into, using } => {
                expression(text)?;
                using.iter().try_for_each(|own| expression(own))?;
                self.taken(into.as_ref())
            }
            Step::Assign(name, value) => {
                self.target(name)?;
                expression(value)
            }
            Step::AssignElement {
                name,
                subscripts,
                value,
            } => {
                self.target(name)?;
                let plain = subscripts.iter().filter(|own| !own.contains(':'));
                plain.into_iter().try_for_each(|own| expression(own))?;
                expression(value)
            }
            Step::If { branches, otherwise } => {
                for (condition, steps) in branches {
                    expression(condition)?;
                    self.steps(steps)?;
                }
                self.steps(otherwise)
            }
            Step::Case {
                operand,
                arms,
                otherwise,
            } => {
                operand.iter().try_for_each(|own| expression(own))?;
                for (values, steps) in arms {
                    values.iter().try_for_each(|own| expression(own))?;
                    self.steps(steps)?;
                }
                otherwise.as_ref().map_or(Ok(()), |steps| self.steps(steps))
            }
            Step::Loop {
                label,
                condition,
                steps,
            } => {
                condition.iter().try_for_each(|own| expression(own))?;
                self.looped(label.as_deref(), &[], steps)
            }
            Step::ForNumbers {
                label,
                name,
                bounds,
                by,
                steps,
                ..
            } => {
                let all = [&bounds.0, &bounds.1].into_iter().chain(by);
                all.into_iter().try_for_each(|own| expression(own))?;
                self.looped(label.as_deref(), &[name], steps)
            }
            Step::ForRows {
                label,
                names,
                query,
                is_computed,
                using,
                steps,
            } => {
                match is_computed {
                    true => expression(query)?,
                    false => statement(query)?,
                }
                using.iter().try_for_each(|own| expression(own))?;
                if names.iter().any(|name| self.target(name).is_err()) {
                    let told = error(
                        "42601",
                        "loop variable of loop over rows must be a record variable or list of scalar variables",
                    );
                    return Err(told);
                }
                self.looped(label.as_deref(), &[], steps)
            }
            Step::ForEach {
                label,
                names,
                array,
                steps,
                ..
            } => {
                expression(array)?;
                names.iter().try_for_each(|name| self.target(name))?;
                self.looped(label.as_deref(), &[], steps)
            }
            Step::ForCursor {
                label,
                name,
                cursor,
                args,
                steps,
            } => {
                self.target(cursor)?;
                Self::given(args)?;
                self.looped(label.as_deref(), &[name], steps)
            }
            Step::End { .. } | Step::Line(_) => Ok(()),
            Step::Leave {
                label,
                condition,
                continues,
            } => {
                condition.iter().try_for_each(|own| expression(own))?;
                self.leave(label.as_deref(), *continues)
            }
            Step::Raise(raise) => {
                raise.args.iter().try_for_each(|own| expression(own))?;
                raise.options.iter().try_for_each(|(_, own)| expression(own))
            }
            Step::Assert { condition, message } => {
                expression(condition)?;
                message.iter().try_for_each(|own| expression(own))
            }
            Step::Diagnostics { items, .. } => items.iter().try_for_each(|(name, _)| self.target(name)),
            Step::Open { cursor, query } => {
                self.target(cursor)?;
                match query {
                    Opened::Declared(given) => Self::given(given),
                    Opened::Query(text) => statement(text),
                    Opened::Computed(text, using) => {
                        expression(text)?;
                        using.iter().try_for_each(|own| expression(own))
                    }
                }
            }
            Step::Fetch { cursor, into, .. } => {
                self.target(cursor)?;
                self.taken(into.as_ref())
            }
            Step::Close(cursor) => self.target(cursor),
            Step::Return(value) => self.returned(value.as_deref()),
            Step::ReturnNext(value) => match (self.gives, value) {
                (Gives::Rows, Some(value)) => expression(value),
                (Gives::OutRows, None) => Ok(()),
                (Gives::OutRows, Some(_)) => fail(
                    "42804",
                    "RETURN NEXT cannot have a parameter in function with OUT parameters",
                ),
                (Gives::Rows, None) => fail("42601", "missing expression at or near \";\""),
                _ => fail("42804", "cannot use RETURN NEXT in a non-SETOF function"),
            },
            Step::ReturnQuery {
                text,
                is_computed,
                using,
            } => {
                if !matches!(self.gives, Gives::Rows | Gives::OutRows) {
                    return fail("42804", "cannot use RETURN QUERY in a non-SETOF function");
                }
                using.iter().try_for_each(|own| expression(own))?;
                match is_computed {
                    true => expression(text),
                    false => statement(text),
                }
            }
            Step::Block(block) => self.block(block),
        }
    }

    fn leave(&self, label: Option<&str>, continues: bool) -> Result<()> {
        let word = if continues { "CONTINUE" } else { "EXIT" };
        match label {
            None if self.around.iter().any(|(_, is_loop)| *is_loop) => Ok(()),
            None if continues => fail("42601", "CONTINUE cannot be used outside a loop"),
            None => fail("42601", "EXIT cannot be used outside a loop, unless it has a label"),
            Some(label) => match self.around.iter().rev().find(|(own, _)| *own == Some(label)) {
                None => fail(
                    "42601",
                    format!("there is no label \"{label}\" attached to any block or loop enclosing this statement"),
                ),
                Some((_, false)) if continues => {
                    fail("42601", format!("block label \"{label}\" cannot be used in {word}"))
                }
                Some(_) => Ok(()),
            },
        }
    }

    fn returned(&self, value: Option<&str>) -> Result<()> {
        match (self.gives, value) {
            (Gives::Nothing, Some(_)) => fail("42804", "RETURN cannot have a parameter in function returning void"),
            (Gives::Rows, Some(_)) => {
                let told = error("42804", "RETURN cannot have a parameter in function returning set");
                Err(with(told, &[(Field::Hint, "Use RETURN NEXT or RETURN QUERY.")]))
            }
            (Gives::OutRows, Some(_)) => {
                let told = error("42804", "RETURN cannot have a parameter in function returning set");
                Err(with(told, &[(Field::Hint, "Use RETURN NEXT or RETURN QUERY.")]))
            }
            (Gives::Outs, Some(_)) => fail(
                "42804",
                "RETURN cannot have a parameter in function with OUT parameters",
            ),
            (Gives::Value | Gives::Trigger, None) => fail("42601", "missing expression at or near \";\""),
            (_, Some(value)) => expression(value),
            _ => Ok(()),
        }
    }
}
