//! Logging in. There are no users yet, so every attempt is refused as a server without mechanisms does.

pub mod authenticate;
pub mod users_info;

use crate::spec::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &authenticate::AUTHENTICATE,
    &authenticate::SASL_START,
    &authenticate::SASL_CONTINUE,
    &authenticate::LOGOUT,
    &users_info::USERS,
    &users_info::ROLES,
];

/// Commands that change users and roles, which nobody can do here.
const ABOUT_USERS: [&str; 15] = [
    "createUser",
    "updateUser",
    "dropUser",
    "dropAllUsersFromDatabase",
    "grantRolesToUser",
    "revokeRolesFromUser",
    "createRole",
    "updateRole",
    "dropRole",
    "dropAllRolesFromDatabase",
    "grantPrivilegesToRole",
    "revokePrivilegesFromRole",
    "grantRolesToRole",
    "revokeRolesFromRole",
    "invalidateUserCache",
];

/// Why a command that MongoDB has does not exist, if there is more to say.
pub(crate) fn why_not(command: &str) -> &'static str {
    match ABOUT_USERS.contains(&command) {
        true => ": there are no users and roles here, whoever can connect may do everything",
        false => "",
    }
}
