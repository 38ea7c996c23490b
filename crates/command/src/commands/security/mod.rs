//! Logging in, users and roles.

pub mod assume_user;
pub mod authenticate;
pub mod info;
pub mod merge;
pub mod roles;
pub mod sasl;
pub mod users;

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &authenticate::SPEC,
    &assume_user::SPEC,
    &sasl::START,
    &sasl::CONTINUE,
    &sasl::LOGOUT,
    &users::CREATE,
    &users::UPDATE,
    &users::DROP,
    &users::DROP_ALL,
    &users::GRANT,
    &users::REVOKE,
    &roles::CREATE,
    &roles::UPDATE,
    &roles::DROP,
    &roles::DROP_ALL,
    &roles::GRANT_PRIVILEGES,
    &roles::REVOKE_PRIVILEGES,
    &roles::GRANT_ROLES,
    &roles::REVOKE_ROLES,
    &info::USERS,
    &info::ROLES,
    &INVALIDATE,
    &merge::SPEC,
];

/// `invalidateUserCache`: what is known of users follows every commit, so nothing old is kept that could be thrown away.
pub const INVALIDATE: CommandSpec = Facts::no_collection(
    "invalidateUserCache",
    "Does nothing: what is kept of users is never old.",
)
.flags(Flags::ADMIN)
.needs(Needs::server(Action::InvalidateUserCache))
.runs(|context, _reply| Invalidate::parse(context.body, context.sequences).map(drop));

crate::args! {
    struct Invalidate: "invalidateUserCache" command {
    }
}
