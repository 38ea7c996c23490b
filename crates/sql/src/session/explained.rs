//! EXPLAIN.

use super::{Prepared, Session, Sink, plan_field};
use crate::bind::write::{modifying, writing};
use crate::error::unsupported;
use crate::run::explain::{self, Format};
use crate::run::query;
use crate::settings::steering;
use crate::write;
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_model::{Result, Value};
use sqlparser::ast::Statement as Ast;

impl Session {
    /// Tells how a statement is run.
    ///
    /// Errors: those of planning it and, with ANALYZE, of running it; 0A000 for ANALYZE of a statement that writes.
    pub(super) fn explain(
        &mut self,
        database: &Database,
        prepared: &Prepared,
        ast: &Ast,
        params: &[Value],
        sink: &mut Sink<'_, '_>,
    ) -> Result<()> {
        let Ast::Explain {
            statement: inner,
            analyze,
            estimate,
            format,
            options,
            ..
        } = ast
        else {
            return unsupported("EXPLAIN of this form");
        };
        if *estimate {
            return unsupported("this option of EXPLAIN");
        }
        let wanted = explain::wanted(*analyze, format.as_ref(), options.as_deref().unwrap_or_default())?;
        // EXECUTE stands for the statement that was prepared, with its parameters.
        let executed = match &**inner {
            Ast::Execute {
                name: Some(name),
                parameters,
                immediate: false,
                using,
                ..
            } if using.is_empty() => {
                let (_, name) = crate::bind::object_name(name)?;
                Some(self.executed(database, &name, parameters)?)
            }
            _ => None,
        };
        let (inner, types, params) = match &executed {
            None => (&**inner, &prepared.types, params),
            Some((executed, params)) => match executed.ast.as_deref() {
                Some(inner) => (inner, &executed.types, params.as_slice()),
                None => return unsupported("EXPLAIN of an empty statement"),
            },
        };
        let mut explained = match (inner, writing(inner)) {
            (inner, Some(_)) => {
                if wanted.analyze {
                    return unsupported("EXPLAIN ANALYZE of a statement that writes");
                }
                self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
                    write::explain(statement, facts, inner, (types, params))
                })?
            }
            (Ast::Query(query), None) if modifying(inner).is_none() => {
                self.statement(database, &prepared.text, OpKind::Read, |statement, facts| {
                    let timed = wanted.analyze.then_some(wanted.timing);
                    query::explain(statement, facts, query, (types, params), timed)
                })?
            }
            _ => return unsupported("EXPLAIN of this statement"),
        };
        if wanted.settings {
            explained.settings = steering::changed(&self.facts.settings);
        }
        let lines = match wanted.format {
            Format::Text => explain::text(&explained, wanted),
            _ => vec![explain::fields(&explained, wanted)],
        };
        sink.begin(&[plan_field(wanted.format.ty())])?;
        lines
            .iter()
            .try_for_each(|line| sink.row(&[Value::String(line.as_str().into())]))
    }
}
