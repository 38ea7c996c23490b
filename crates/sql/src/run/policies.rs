//! Which policies of a table are for who asks.

use super::tables::Reading;
use crate::catalog::answers::ROW_SECURITY;
use crate::catalog::{Kind, Policy, Table, schemas};
use crate::error::{fail, unsupported};
use nestor_database::users::RoleName;
use nestor_exec::catalog::masked;
use nestor_model::namespace::ADMIN;
use nestor_model::{Namespace, Result};
use std::sync::Arc;

impl Reading<'_, '_> {
    /// Whether policies of a table count for who asks: it is in a collection, and neither its owner's nor that of somebody who sees all rows.
    pub(super) fn is_guarded(&self, table: &Table) -> bool {
        let (Kind::Collection(ns), Some(account)) = (&table.kind, &self.session.account) else {
            return false;
        };
        let own = &table.row_security;
        let sees_all = || account.caller.sight.has_all_rows(&ns.db, &ns.coll, own.is_forced);
        own.is_on && !schemas::is_temporary(&table.schema) && !sees_all()
    }

    /// The policies of a table that are for who asks; `None` where none count.
    ///
    /// Errors: 42501 where `row_security` is off, for users of other databases, and for who does not see all fields plain; 0A000 for collections that nobody
    /// declared.
    pub(super) fn policies_of(&self, table: &Table) -> Result<Option<Arc<[Policy]>>> {
        let (true, Kind::Collection(ns)) = (self.is_guarded(table), &table.kind) else {
            return Ok(None);
        };
        let Some(account) = &self.session.account else {
            return Ok(None);
        };
        let name = &table.name;
        if self.session.settings.get(ROW_SECURITY).is_some_and(|set| set == "off") {
            let message = format!("query would be affected by row-level security policy for table \"{name}\"");
            return fail("42501", message);
        }
        // A value that cannot be read is told of, and would be one of a row that may not be seen.
        if !table.declared {
            return unsupported(format!("row security of \"{name}\", which was not declared as a table"));
        }
        // A name of another database is somebody else's.
        if *account.name.db != *ADMIN && account.name.db != ns.db {
            let message =
                format!("permission denied for table {name}: its policies are for users of its database and of admin");
            return fail("42501", message);
        }
        let collection = self.view.catalog().get(ns);
        if let Some(collection) = collection
            && masked(collection, Some(&account.caller))?.is_some()
        {
            let message = format!("permission denied for table {name}: its policies would look at masked fields");
            return fail("42501", message);
        }
        let is_of = |role: &String| {
            *role == self.session.user || account.all_roles.contains(&RoleName::new(role.as_str(), ADMIN))
        };
        let own = table.row_security.policies.iter();
        let own = own.filter(|policy| policy.roles.is_empty() || policy.roles.iter().any(is_of));
        Ok(Some(own.cloned().collect()))
    }

    /// Refuses to do something with all rows of a table of which policies keep some from the user.
    ///
    /// Errors: 42501.
    pub(crate) fn check_rows(&self, ns: &Namespace) -> Result<()> {
        let collection = self.view.catalog().get(ns);
        let table = collection.and_then(|collection| crate::bind::entry::table_of(collection));
        match table.is_some_and(|table| self.is_guarded(table)) {
            true => fail(
                "42501",
                format!("permission denied for table {}: it has row security", ns.coll),
            ),
            false => Ok(()),
        }
    }
}
