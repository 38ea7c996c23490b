//! Questions about rights: `has_table_privilege` and its like.

use super::Binder;
use crate::catalog::system::{RIGHTS, ROW_SECURITY_ACTIVE};
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce};
use crate::types::Type;
use crate::types::cast::Context;
use nestor_model::{Result, Value};

impl Binder<'_> {
    /// Whether policies of a table count for the user.
    ///
    /// Errors: 42P01; those of the catalog.
    fn row_security_active(&mut self, table: Expr) -> Result<Expr> {
        let is_named = table.ty().is_text() || table.ty() == Type::Unknown;
        let table = if is_named { self.regclass(table)? } else { table };
        let guarded = self.catalog.texts(ROW_SECURITY_ACTIVE)?.unwrap_or_default().into_iter();
        let guarded = guarded.map(|(number, _)| Expr::constant(Value::Int64(number), Type::Oid));
        let number = coerce(table, &Type::Oid, Context::Explicit)?;
        Ok(match guarded.collect::<Vec<_>>() {
            all if all.is_empty() => Expr::bool(false),
            all => Node::InList(number, all, false).into(),
        })
    }

    /// Whether a user holds privileges on an object, as the function `name` asks; `None` for other functions, and for users that are only known row by
    /// row.
    ///
    /// Errors: 42704, 42P01, 3F000 for what there is not; those of the catalog.
    pub(super) fn right_asked(&mut self, name: &str, args: &[Expr]) -> Result<Option<Expr>> {
        if let ("row_security_active", [table]) = (name, args) {
            return self.row_security_active(table.clone()).map(Some);
        }
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
