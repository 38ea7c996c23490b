//! CREATE, ALTER and DROP POLICY, and whether policies count: an option of the collection, beside the declaration of its table.

use super::alter::{Found, found};
use super::{namespace, roles};
use crate::bind::{Binder, entry, ident};
use crate::catalog::{Policy, PolicyCommand, RowSecurity};
use crate::error::{Field, error, fail, unsupported, with};
use crate::notices::{self, pass_over};
use crate::parse;
use crate::run::tables::{Reading, SessionFacts};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::row_security::POLICIES_MAX;
use nestor_model::{Error, Namespace, Result};
use nestor_storage::WriteSet;
use sqlparser::ast::{
    AlterColumnOperation, AlterPolicy, AlterPolicyOperation, AlterTableOperation, CreatePolicy, CreatePolicyCommand,
    CreatePolicyType, DropBehavior, DropPolicy, Expr, Owner,
};

/// Bytes that the condition of a policy may have.
const TEXT_BYTES_MAX: usize = 64 << 10;

fn no_table(ns: &Namespace) -> Error {
    error("42P01", format!("relation \"{}\" does not exist", ns.coll))
}

fn no_policy(name: &str, of: &str, table: &str) -> Error {
    error(
        "42704",
        format!("policy \"{name}\" for {of} \"{table}\" does not exist"),
    )
}

fn already_there(name: &str, table: &str) -> Error {
    error(
        "42710",
        format!("policy \"{name}\" for table \"{table}\" already exists"),
    )
}

/// The text of a condition.
///
/// Errors: 54000 for one that is too long.
fn text(condition: &Expr) -> Result<String> {
    let text = condition.to_string();
    match text.len() > TEXT_BYTES_MAX {
        true => fail("54000", "a condition of a policy is too long"),
        false => Ok(text),
    }
}

/// The names of the roles that a policy is for; none for everybody.
///
/// Errors: 42704.
fn named(ws: &WriteSet, session: &SessionFacts, to: &[Owner]) -> Result<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    for owner in to {
        let name = match owner {
            Owner::Ident(name) if ident(name) == "public" => {
                if to.len() > 1 {
                    let said = error("22023", "ignoring specified roles other than PUBLIC");
                    let hint = [(Field::Hint, "All roles are members of the PUBLIC role.")];
                    notices::raise("WARNING", with(said, &hint));
                }
                return Ok(Vec::new());
            }
            Owner::Ident(name) => ident(name),
            Owner::CurrentRole | Owner::CurrentUser => session.user.clone(),
            Owner::SessionUser => session.session_user.clone(),
        };
        let is_own = session.account.is_none() && name == session.user;
        if !is_own {
            roles::check_there(ws, session, &name)?;
        }
        if !out.contains(&name) {
            out.push(name);
        }
    }
    Ok(out)
}

/// Refuses conditions that a command has no use for.
///
/// Errors: 42601.
fn check_texts(policy: &Policy, using: bool, check: bool) -> Result<()> {
    match policy.command {
        PolicyCommand::Insert if using => fail("42601", "only WITH CHECK expression allowed for INSERT"),
        PolicyCommand::Select | PolicyCommand::Delete if check => {
            fail("42601", "WITH CHECK cannot be applied to SELECT or DELETE")
        }
        _ => Ok(()),
    }
}

/// Changes the row security of a table, if that is there.
///
/// Errors: those of `change`; 54000 for too many policies.
fn change(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    change: impl FnOnce(&mut RowSecurity) -> Result<()>,
) -> Result<()> {
    let mut own = (*found.declared.row_security).clone();
    change(&mut own)?;
    if own.policies.len() > POLICIES_MAX {
        return fail("54000", format!("tables can have at most {POLICIES_MAX} policies"));
    }
    own.policies.sort_by(|a, b| a.name.cmp(&b.name));
    let names = |all: &[Policy]| all.iter().map(|own| own.name.clone()).collect::<Vec<_>>();
    let both = (&*names(&found.declared.row_security.policies), &*names(&own.policies));
    let of = (&*found.collection.ns.db, found.collection.uuid);
    comments::follow(statement, ws, of, "policies", both)?;
    catalog::set_row_security(statement, ws, &found.collection, &own.listed())
}

/// Looks whether a policy means something for its table.
fn check(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &WriteSet,
    found: &Found,
    policy: &Policy,
) -> Result<()> {
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, ws, &op, session);
    match entry::table_of(&found.collection) {
        Some(table) => Binder::new(&reading, Vec::new()).check_policy(table, policy),
        None => unsupported("a policy for a collection that was not declared as a table"),
    }
}

/// CREATE POLICY.
///
/// Errors: 42710, 42601, those of its roles and conditions.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreatePolicy,
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, &create.table_name)?;
    session.check_right(&ns, Right::ChangeRowSecurity)?;
    statement.atomically(progress, |ws| {
        let Some(found) = found(ws, &ns)? else {
            return Err(no_table(&ns));
        };
        let policy = Policy {
            name: ident(&create.name),
            command: match create.command {
                None | Some(CreatePolicyCommand::All) => PolicyCommand::All,
                Some(CreatePolicyCommand::Select) => PolicyCommand::Select,
                Some(CreatePolicyCommand::Insert) => PolicyCommand::Insert,
                Some(CreatePolicyCommand::Update) => PolicyCommand::Update,
                Some(CreatePolicyCommand::Delete) => PolicyCommand::Delete,
            },
            is_restrictive: create.policy_type == Some(CreatePolicyType::Restrictive),
            roles: named(ws, session, create.to.as_deref().unwrap_or_default())?,
            using: create.using.as_ref().map(text).transpose()?,
            check: create.with_check.as_ref().map(text).transpose()?,
        };
        check_texts(&policy, policy.using.is_some(), policy.check.is_some())?;
        let all = &found.declared.row_security.policies;
        if all.iter().any(|own| own.name == policy.name) {
            return Err(already_there(&policy.name, &found.name));
        }
        check(statement, session, ws, &found, &policy)?;
        change(statement, ws, &found, |own| {
            own.policies.push(policy);
            Ok(())
        })
    })?;
    Ok("CREATE POLICY")
}

/// ALTER POLICY.
///
/// Errors: 42704, 42710, 42601, those of its roles and conditions.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    alter: &AlterPolicy,
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, &alter.table_name)?;
    session.check_right(&ns, Right::ChangeRowSecurity)?;
    let name = ident(&alter.name);
    statement.atomically(progress, |ws| {
        let Some(found) = found(ws, &ns)? else {
            return Err(no_table(&ns));
        };
        let all = &found.declared.row_security.policies;
        let Some(at) = all.iter().position(|own| own.name == name) else {
            return Err(no_policy(&name, "table", &found.name));
        };
        let mut policy = all[at].clone();
        match &alter.operation {
            AlterPolicyOperation::Rename { new_name } => {
                let to = ident(new_name);
                if all.iter().any(|own| own.name == to) {
                    return Err(already_there(&to, &found.name));
                }
                policy.name = to;
            }
            AlterPolicyOperation::Apply { to, using, with_check } => {
                if with_check.is_some() && matches!(policy.command, PolicyCommand::Select | PolicyCommand::Delete) {
                    return fail("42601", "only USING expression allowed for SELECT, DELETE");
                }
                check_texts(&policy, using.is_some(), false)?;
                if let Some(to) = to {
                    policy.roles = named(ws, session, to)?;
                }
                if let Some(using) = using {
                    policy.using = Some(text(using)?);
                }
                if let Some(condition) = with_check {
                    policy.check = Some(text(condition)?);
                }
                check(statement, session, ws, &found, &policy)?;
            }
        }
        change(statement, ws, &found, |own| {
            own.policies[at] = policy;
            Ok(())
        })
    })?;
    Ok("ALTER POLICY")
}

/// DROP POLICY.
///
/// Errors: 42704, 42P01.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    dropped: &DropPolicy,
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, &dropped.table_name)?;
    session.check_right(&ns, Right::ChangeRowSecurity)?;
    let name = ident(&dropped.name);
    statement.atomically(progress, |ws| {
        let Some(found) = found(ws, &ns)? else {
            return pass_over(dropped.if_exists, no_table(&ns));
        };
        if found.declared.row_security.policies.iter().all(|own| own.name != name) {
            let of = if dropped.if_exists { "relation" } else { "table" };
            return pass_over(dropped.if_exists, no_policy(&name, of, &found.name));
        }
        change(statement, ws, &found, |own| {
            own.policies.retain(|own| own.name != name);
            Ok(())
        })
    })?;
    Ok("DROP POLICY")
}

/// Whether a part of ALTER TABLE says whether policies count.
pub(super) fn is_switch(operation: &AlterTableOperation) -> bool {
    use AlterTableOperation as Op;
    matches!(
        operation,
        Op::EnableRowLevelSecurity
            | Op::DisableRowLevelSecurity
            | Op::ForceRowLevelSecurity
            | Op::NoForceRowLevelSecurity
    )
}

/// ALTER TABLE … ENABLE, DISABLE, FORCE and NO FORCE ROW LEVEL SECURITY.
///
/// Errors: 42501.
pub(super) fn switch(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    found: &Found,
    operations: &[AlterTableOperation],
) -> Result<()> {
    use AlterTableOperation as Op;
    session.check_right(&found.collection.ns, Right::ChangeRowSecurity)?;
    change(statement, ws, found, |own| {
        for operation in operations.iter().filter(|own| is_switch(own)) {
            match operation {
                Op::EnableRowLevelSecurity => own.is_on = true,
                Op::DisableRowLevelSecurity => own.is_on = false,
                Op::ForceRowLevelSecurity => own.is_forced = true,
                _ => own.is_forced = false,
            }
        }
        Ok(())
    })
}

fn texts(policy: &Policy) -> impl Iterator<Item = &String> {
    [&policy.using, &policy.check].into_iter().flatten()
}

fn names_column(policy: &Policy, column: &str) -> bool {
    texts(policy).any(|text| parse::columns(text).iter().any(|own| own == column))
}

/// What ALTER TABLE means for the policies of the table: a column that goes with CASCADE takes those with it that name it.
///
/// Errors: 2BP01 for a column that goes, 0A000 for one whose type is changed.
pub(super) fn follow(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    operations: &[AlterTableOperation],
) -> Result<()> {
    let all = &found.declared.row_security.policies;
    if all.is_empty() {
        return Ok(());
    }
    let (table, mut gone) = (&found.name, Vec::new());
    for operation in operations {
        match operation {
            AlterTableOperation::DropColumn {
                column_names,
                drop_behavior,
                ..
            } => {
                for column in column_names.iter().map(ident) {
                    let naming = || all.iter().filter(|own| names_column(own, &column));
                    if *drop_behavior == Some(DropBehavior::Cascade) {
                        gone.extend(naming().map(|own| own.name.clone()));
                        continue;
                    }
                    let detail = naming().map(|own| {
                        format!(
                            "policy {} on table {table} depends on column {column} of table {table}",
                            own.name
                        )
                    });
                    let detail: Vec<String> = detail.collect();
                    if !detail.is_empty() {
                        let message =
                            format!("cannot drop column {column} of table {table} because other objects depend on it");
                        let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
                        let told = [(Field::Detail, detail.join("\n")), (Field::Hint, hint.to_owned())];
                        let told: Vec<(Field, &str)> =
                            told.iter().map(|(field, text)| (*field, text.as_str())).collect();
                        return Err(with(error("2BP01", message), &told));
                    }
                }
            }
            AlterTableOperation::AlterColumn {
                column_name,
                op: AlterColumnOperation::SetDataType { .. },
            } => {
                let column = ident(column_name);
                if let Some(own) = all.iter().find(|own| names_column(own, &column)) {
                    let told = error("0A000", "cannot alter type of a column used in a policy definition");
                    let detail = format!("policy {} on table {table} depends on column \"{column}\"", own.name);
                    return Err(with(told, &[(Field::Detail, &detail)]));
                }
            }
            _ => {}
        }
    }
    match gone.is_empty() {
        true => Ok(()),
        false => change(statement, ws, found, |own| {
            own.policies.retain(|own| !gone.contains(&own.name));
            Ok(())
        }),
    }
}

/// A column has another name, and so have policies that name it.
///
/// Errors: 0A000 where such a policy has a subquery, whose names may be those of other columns.
pub(super) fn rename_column(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    found: &Found,
    (from, to): (&str, &str),
) -> Result<()> {
    let all = &found.declared.row_security.policies;
    if all.iter().all(|own| !names_column(own, from)) {
        return Ok(());
    }
    change(statement, ws, found, |own| {
        for policy in own.policies.iter_mut().filter(|own| names_column(own, from)) {
            if texts(policy).any(|text| has_query(text)) {
                return unsupported("to rename a column that a policy with a subquery names");
            }
            for text in [&mut policy.using, &mut policy.check].into_iter().flatten() {
                *text = parse::with_column_renamed(text, from, to);
            }
        }
        Ok(())
    })
}

fn has_query(text: &str) -> bool {
    parse::words(text)
        .iter()
        .any(|word| word == "select" || word == "table" || word == "values")
}

/// Refuses to call a table otherwise that policies name, and to move one whose policies name what is found by its schema.
///
/// Errors: 0A000.
pub(super) fn check_name(collection: &nestor_storage::Collection, moves: bool) -> Result<()> {
    let Some(table) = entry::table_of(collection) else {
        return Ok(());
    };
    let all = &table.row_security.policies;
    if moves && !all.is_empty() {
        return unsupported("SET SCHEMA of a table with policies");
    }
    let names = |text: &String| parse::words(text).contains(&table.name);
    match all.iter().any(|policy| texts(policy).any(names)) {
        true => unsupported("to rename a table that a policy of it names"),
        false => Ok(()),
    }
}
