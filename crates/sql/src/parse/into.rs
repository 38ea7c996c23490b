//! SELECT INTO is CREATE TABLE AS.

use nestor_model::Result;
use sqlparser::ast::{SetExpr, Statement};

/// The statement, or the one that it stands for.
///
/// Errors: those of parsing it.
pub(super) fn plain(mut statement: Statement) -> Result<Statement> {
    let Statement::Query(query) = &mut statement else {
        return Ok(statement);
    };
    let into = match &mut *query.body {
        SetExpr::Select(select) => select.into.take(),
        _ => None,
    };
    let Some(into) = into else { return Ok(statement) };
    let kind = match (into.temporary, into.unlogged) {
        (true, _) => "TEMPORARY TABLE",
        (_, true) => "UNLOGGED TABLE",
        _ => "TABLE",
    };
    let targets: Vec<String> = into.targets.iter().map(ToString::to_string).collect();
    let text = format!("CREATE {kind} {} AS {query}", targets.join(", "));
    let mut made = super::parser(&text, true)?
        .parse_statements()
        .map_err(|e| super::refused(e, ""))?;
    Ok(made.pop().unwrap_or(statement))
}
