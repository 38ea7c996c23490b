//! Questions about rights: `has_table_privilege` and its like.

use super::Binder;
use crate::catalog::system::RIGHTS;
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce};
use crate::types::Type;
use crate::types::cast::Context;
use nestor_model::{Result, Value};

impl Binder<'_> {
    /// Whether a user holds privileges on an object, as the function `name` asks; `None` for other functions, and for users that are only known row by
    /// row.
    ///
    /// Errors: 42704, 42P01, 3F000 for what there is not; those of the catalog.
    pub(super) fn right_asked(&mut self, name: &str, args: &[Expr]) -> Result<Option<Expr>> {
        let (kind, of, most) = match name {
            "has_table_privilege" => ("table", "relations", 3),
            "has_any_column_privilege" => ("column", "relations", 3),
            "has_column_privilege" => ("column", "relations", 4),
            "has_sequence_privilege" => ("sequence", "relations", 3),
            "has_schema_privilege" => ("schema", "schemas", 3),
            "pg_has_role" => ("role", "roles", 3),
            _ => return Ok(None),
        };
        let (user, rest) = match args.len() {
            count if count == most => (Some(&args[0]), &args[1..]),
            count if count + 1 == most => (None, args),
            _ => return Ok(None),
        };
        let asked = match user.map(Expr::node) {
            None => format!("{RIGHTS}{of}"),
            Some(Node::Const(Value::String(user), _)) => format!("{RIGHTS}{of} {user}"),
            Some(_) => return Ok(None),
        };
        let (object, privilege) = (rest[0].clone(), rest[rest.len() - 1].clone());
        let is_named = object.ty().is_text() || object.ty() == Type::Unknown;
        let object = match (is_named, of) {
            (true, "relations") => self.regclass(object)?,
            (true, "schemas") => self.object(object, &Type::Regnamespace)?,
            (true, _) => self.object(object, &Type::Regrole)?,
            (false, _) => object,
        };
        let args = vec![
            coerce(object, &Type::Oid, Context::Explicit)?,
            coerce(privilege, &Type::Text, Context::Implicit)?,
            Expr::constant(Value::String(kind.into()), Type::Text),
            self.catalog_texts(&asked)?,
        ];
        functions::call(functions::HOLDS, args).map(Some)
    }
}
