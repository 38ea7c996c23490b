//! The first user, as the environment names it: `MONGO_INITDB_ROOT_USERNAME` and `MONGO_INITDB_ROOT_PASSWORD`, or `_FILE` variants
//! of both that name files, as for MongoDB's container image.

use nestor_command::service::Service;
use nestor_command::{Connection, Request};
use nestor_model::namespace::ADMIN;
use nestor_model::{RawDoc, ValueRef, doc};
use std::fmt;

/// Name and password of the first user.
#[derive(Clone, PartialEq, Eq)]
pub struct Root {
    name: String,
    password: String,
}

/// Passwords are not printed.
impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The user that the environment names, if it names one.
///
/// Errors: a name without a password, or a password without a name; files that cannot be read.
pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Root>, String> {
    let read = |name: &str| -> Result<Option<String>, String> {
        let (plain, file) = (variable(name), variable(&format!("{name}_FILE")));
        match (
            plain.filter(|text| !text.is_empty()),
            file.filter(|path| !path.is_empty()),
        ) {
            (Some(_), Some(_)) => Err(format!("{name} and {name}_FILE exclude each other")),
            (Some(text), None) => Ok(Some(text)),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
                Err(error) => Err(format!("cannot read {path}, which {name}_FILE names: {error}")),
            },
            (None, None) => Ok(None),
        }
    };
    match (read("MONGO_INITDB_ROOT_USERNAME")?, read("MONGO_INITDB_ROOT_PASSWORD")?) {
        (Some(name), Some(password)) => Ok(Some(Root { name, password })),
        (None, None) => Ok(None),
        _ => Err("MONGO_INITDB_ROOT_USERNAME and MONGO_INITDB_ROOT_PASSWORD need each other".to_owned()),
    }
}

/// Makes that user, with role `root`, unless there are users already.
///
/// Errors: those of `createUser`.
pub fn make(service: &Service, root: &Root) -> Result<(), String> {
    if service.users.any().map_err(|e| e.to_string())? {
        return Ok(());
    }
    let command = doc! {
        "createUser": root.name.as_str(),
        "pwd": root.password.as_str(),
        "roles": vec![nestor_model::Value::from("root")],
        "$db": ADMIN,
    };
    // Nobody needs a right to make the first user from within.
    let mut conn = Connection::new(service, "");
    let body = command.to_raw();
    let outcome = service.run(&mut conn, Request::new(body.as_raw()));
    let reply = outcome.reply.get(outcome.reply_at..).unwrap_or_default();
    let reply = RawDoc::validate(reply).map_err(|e| e.to_string())?;
    match reply.get("errmsg").and_then(ValueRef::as_str) {
        Some(message) => Err(format!("cannot make the user of MONGO_INITDB_ROOT_USERNAME: {message}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> Result<Option<Root>, String> {
        from_environment(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn name_and_password_need_each_other() {
        assert_eq!(named(&[]), Ok(None));
        assert_eq!(named(&[("MONGO_INITDB_ROOT_USERNAME", "")]), Ok(None));
        let both = [("MONGO_INITDB_ROOT_USERNAME", "u"), ("MONGO_INITDB_ROOT_PASSWORD", "p")];
        let root = named(&both).expect("both are given").expect("there is a user");
        assert_eq!((root.name.as_str(), root.password.as_str()), ("u", "p"));
        assert_eq!(format!("{root:?}"), "Root { name: \"u\", .. }");
        assert!(named(&both[..1]).is_err() && named(&both[1..]).is_err());
        let twice = [both[0], both[1], ("MONGO_INITDB_ROOT_PASSWORD_FILE", "/x")];
        assert!(named(&twice).is_err());
        assert!(named(&[both[0], ("MONGO_INITDB_ROOT_PASSWORD_FILE", "/no such file")]).is_err());
    }
}
