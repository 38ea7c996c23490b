//! CREATE EXTENSION and DROP EXTENSION: extensions are built in or not to be had. As scripts make those that they need, one that is there without
//! having been made may be.

use crate::bind::ident;
use crate::catalog::system::EXTENSIONS;
use crate::error::{error, fail};
use crate::notices::{self, pass_over};
use nestor_model::Result;
use sqlparser::ast::{CreateExtension, DropExtension};

/// The extension that databases begin with.
const EVERYWHERE: &str = "plpgsql";

fn is_built_in(name: &str) -> bool {
    EXTENSIONS.iter().any(|extension| extension.name == name)
}

/// CREATE EXTENSION.
///
/// Errors: 42710 for the one that all databases have, which IF NOT EXISTS passes over; 0A000 for those that there are not.
pub fn create(create: &CreateExtension) -> Result<&'static str> {
    let name = ident(&create.name);
    if !is_built_in(&name) {
        return fail("0A000", format!("extension \"{name}\" is not available"));
    }
    match create.if_not_exists || name == EVERYWHERE {
        true => {
            let there = error("42710", format!("extension \"{name}\" already exists"));
            pass_over(create.if_not_exists, there)?;
        }
        false => notices::notice(&format!("extension \"{name}\" is built in")),
    }
    Ok("CREATE EXTENSION")
}

/// DROP EXTENSION.
///
/// Errors: 2BP01 for one that is built in; 42704 for others, which IF EXISTS passes over.
pub fn drop(drop: &DropExtension) -> Result<&'static str> {
    for name in drop.names.iter().map(ident) {
        if is_built_in(&name) {
            let message = format!("cannot drop extension {name} because it is required by the database system");
            return fail("2BP01", message);
        }
        let missing = error("42704", format!("extension \"{name}\" does not exist"));
        pass_over(drop.if_exists, missing)?;
    }
    Ok("DROP EXTENSION")
}
