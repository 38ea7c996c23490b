//! What blocks tell: RAISE and ASSERT.

use super::Running;
use crate::error::{Field as ErrorField, error, fail, with};
use crate::notices;
use crate::parse::procedural::{Raise, state_of};
use crate::types::output;
use nestor_model::{Result, Value};

impl Running<'_, '_> {
    /// The text of an option of RAISE.
    fn option(&mut self, name: &str, text: &str) -> Result<String> {
        match self.value(text, "text")?.1 {
            Value::String(text) => Ok(text.to_string()),
            _ => {
                let _ = name;
                fail("22004", "RAISE statement option cannot be null")
            }
        }
    }

    /// ASSERT.
    ///
    /// Errors: P0004.
    pub(super) fn assert(&mut self, condition: &str, message: Option<&str>) -> Result<()> {
        if self
            .facts
            .settings
            .get("plpgsql.check_asserts")
            .is_some_and(|on| on == "off")
            || self.holds(condition)?
        {
            return Ok(());
        }
        let message = match message {
            Some(message) => match self.value(message, "text")?.1 {
                Value::String(text) => text.to_string(),
                _ => "assertion failed".to_owned(),
            },
            None => "assertion failed".to_owned(),
        };
        fail("P0004", message)
    }

    pub(super) fn raise(&mut self, raise: &Raise) -> Result<()> {
        if raise.level.is_empty() {
            return match self.handled.last() {
                Some(told) => Err(told.clone()),
                None => fail(
                    "0Z002",
                    "RAISE without parameters cannot be used outside an exception handler",
                ),
            };
        }
        let mut args = Vec::new();
        for (ty, value) in self.values(&raise.args)? {
            args.push(match value.is_nullish() {
                true => "<NULL>".to_owned(),
                false => output::text(&ty, &value),
            });
        }
        let mut message = match &raise.message {
            Some(format) => filled(format, args)?,
            None => raise.state.clone().unwrap_or_else(|| "P0001".to_owned()),
        };
        let mut code = raise.state.clone();
        let mut told = Vec::new();
        for (name, text) in &raise.options {
            let text = self.option(name, text)?;
            let field = match name.as_str() {
                "MESSAGE" => {
                    message = text;
                    continue;
                }
                "ERRCODE" => {
                    let is_state =
                        text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
                    code = Some(match is_state {
                        true => text,
                        false => state_of(&text)?.to_owned(),
                    });
                    continue;
                }
                "DETAIL" => ErrorField::Detail,
                "HINT" => ErrorField::Hint,
                "TABLE" => ErrorField::Table,
                "COLUMN" => ErrorField::Column,
                "CONSTRAINT" => ErrorField::Constraint,
                "SCHEMA" => ErrorField::Schema,
                "DATATYPE" => ErrorField::DataType,
                _ => return fail("42601", format!("unrecognized RAISE option {name}")),
            };
            told.push((field, text));
        }
        let told: Vec<(ErrorField, &str)> = told.iter().map(|(field, text)| (*field, text.as_str())).collect();
        let made = |code: &str| with(error(code, message.clone()), &told);
        if raise.level == "EXCEPTION" {
            return Err(made(code.as_deref().unwrap_or("P0001")));
        }
        let plain = match raise.level.as_str() {
            "WARNING" => "01000",
            _ => "00000",
        };
        notices::raise(&raise.level, made(code.as_deref().unwrap_or(plain)));
        Ok(())
    }
}

/// A message whose `%` are the arguments; `%%` is one.
///
/// Errors: 42601 for too many and too few of them.
fn filled(format: &str, args: Vec<String>) -> Result<String> {
    let (mut out, mut args, mut chars) = (String::new(), args.into_iter(), format.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '%' if chars.peek() == Some(&'%') => {
                chars.next();
                out.push('%');
            }
            '%' => match args.next() {
                Some(arg) => out.push_str(&arg),
                None => return fail("42601", "too few parameters specified for RAISE"),
            },
            c => out.push(c),
        }
    }
    match args.next() {
        None => Ok(out),
        Some(_) => fail("42601", "too many parameters specified for RAISE"),
    }
}
