//! Which built-in roles let their users run which command: `tests/rights/commands.txt`.

use crate::connection::Connection;
use crate::dispatch::all;
use crate::request::Request;
use crate::service::Service;
use nestor_database::DatabaseOptions;
use nestor_database::rights::builtin;
use nestor_database::users::{Account, RoleName, UserName};
use nestor_model::{Document, ErrorCode, Value, doc, extjson};
use nestor_storage::{Engine, EngineOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const TABLE: &str = include_str!("../../../../tests/rights/commands.txt");

fn service() -> Service {
    let options = DatabaseOptions {
        authorization: true,
        ..DatabaseOptions::default()
    };
    Service::new(options, Engine::ephemeral(EngineOptions::at_time(1_700_000_000)))
}

/// User `tester` of database `d`, with that role if there is one: a role of `d` if there are such, else one of `admin`.
fn account(role: Option<&str>) -> Account {
    let roles = role.map(|role| {
        let db = if builtin::OF_DATABASES.contains(&role) {
            "d"
        } else {
            "admin"
        };
        Value::from(RoleName::new(role, db).to_document())
    });
    let user = doc! { "roles": roles.into_iter().collect::<Vec<_>>() };
    Account::of(UserName::new("tester", "d"), user.as_ref(), &mut |_| Ok(None)).expect("no role is looked up")
}

/// Whether authorization lets the command pass; what else is wrong with it does not matter here.
fn passes(service: &Service, who: Option<Account>, command: &Document) -> bool {
    let mut conn = Connection::new(service, "10.0.0.1:1");
    if let Some(account) = who {
        conn.identity.assume(Arc::new(account), service.users.generation());
    }
    let body = command.to_raw();
    match service.authorize(&mut conn, Request::new(body.as_raw())) {
        Ok(()) => true,
        Err(error) => error.code() != ErrorCode::Unauthorized,
    }
}

#[derive(Default)]
struct Table {
    groups: BTreeMap<&'static str, Vec<&'static str>>,
    lines: Vec<(Document, Vec<&'static str>)>,
}

fn table() -> Table {
    let mut out = Table::default();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(group) = line.strip_prefix("group ") {
            let (name, roles) = group.split_once(" = ").expect("a group has roles");
            out.groups.insert(name, roles.split(' ').collect());
            continue;
        }
        let (command, who) = line.rsplit_once(" : ").expect("a line says who");
        let (command, db) = command.rsplit_once(" @").expect("a line has a database");
        let mut command = extjson::parse_document(command).unwrap_or_else(|e| panic!("{command}: {e}"));
        command.push("$db", db);
        let who = who
            .split(' ')
            .flat_map(|name| out.groups.get(name).cloned().unwrap_or_else(|| vec![name]));
        let who = who.collect();
        out.lines.push((command, who));
    }
    out
}

fn roles() -> impl Iterator<Item = &'static str> {
    builtin::OF_DATABASES.into_iter().chain(builtin::OF_ADMIN)
}

#[test]
fn each_role_may_run_what_the_manual_says() {
    let service = service();
    let mut wrong = Vec::new();
    for (command, who) in table().lines {
        let everybody = who == ["everybody"] || who == ["anybody"];
        let known =
            |name: &&str| ["everybody", "anybody", "nobody"].contains(name) || roles().any(|role| role == *name);
        assert!(who.iter().all(known), "{command:?}: {who:?}");
        let mut check = |name: &str, got: bool, expected: bool| {
            if got != expected {
                wrong.push(format!(
                    "{name} {} {command:?}",
                    if got { "runs" } else { "cannot run" }
                ));
            }
        };
        for role in roles() {
            let expected = everybody || role == "__system" || who.contains(&role);
            check(role, passes(&service, Some(account(Some(role))), &command), expected);
        }
        check("no role", passes(&service, Some(account(None)), &command), everybody);
        check("nobody", passes(&service, None, &command), who == ["anybody"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_has_every_command() {
    let named: BTreeSet<String> = table()
        .lines
        .iter()
        .filter_map(|(command, _)| command.iter().next().map(|(name, _)| name.to_owned()))
        .collect();
    let missing: Vec<_> = all()
        .map(|spec| spec.name)
        .filter(|name| !named.contains(*name))
        .collect();
    assert_eq!(missing, [""; 0]);
}
