//! What each command needs: one table.
//!
//! Commands that read or write documents say themselves what they need ([`Service::access`](crate::Service::access)); what the others
//! need stands in [`needs`]. A command that is not there may be run by nobody; a test sees to it that there is none.
//!
//! Source: manual, "Privilege Actions", and "Required Access" or "Access Control" of each command's page.

use crate::facts::Facts;
use nestor_database::rights::Action::*;
use nestor_database::rights::grant::is_system;
use nestor_database::rights::{Action, Grant, Privilege, Resource, Right, Scope};
use nestor_database::users::{Account, RoleName, UserName};
use nestor_model::{Namespace, RawDoc, Result, Str, ValueRef};
use nestor_query::stage::{ParseContext, Pipeline, Place};

/// What a command needs.
#[derive(Clone, Copy)]
pub enum Needs {
    /// Nothing: clients send it before they log in.
    Nothing,
    /// That somebody is logged in; what it shows and ends is that user's own, unless a right says more.
    Login,
    /// These rights, whatever its arguments are.
    Rights(&'static [Right]),
    /// These rights if it names its collection and validates; else what it says itself.
    Usually(&'static [Right]),
    /// What it says itself.
    Operation,
    /// What its arguments say.
    Arguments(fn(&Asked<'_>, &mut Wanted)),
}

/// A command whose rights are asked for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// What is known of it.
    pub facts: &'static Facts,
    /// The database that it is sent to.
    pub db: &'a str,
    /// Its words.
    pub body: RawDoc<'a>,
    /// Who wants to run it.
    pub account: &'a Account,
}

/// The rights that it needs.
pub type Wanted = Vec<Privilege>;

const fn on_collection(action: Action) -> Right {
    Right {
        action,
        on: Scope::Collection,
    }
}

const fn on_database(action: Action) -> Right {
    Right {
        action,
        on: Scope::Database,
    }
}

const fn on_server(action: Action) -> Right {
    Right {
        action,
        on: Scope::Cluster,
    }
}

/// A list of one right: of a collection, of a database, of the server.
macro_rules! one {
    ($scope:ident $action:ident) => {
        Needs::Rights(const { &[$scope($action)] })
    };
}

/// What the command of that name needs; `None` when nobody has said it.
pub fn needs(name: &str) -> Option<Needs> {
    Some(match name {
        "authenticate" | "buildInfo" | "connectionStatus" | "features" | "hello" | "isMaster" | "listCommands"
        | "logout" | "ping" | "saslContinue" | "saslStart" | "whatsmyuri" => Needs::Nothing,
        "abortTransaction" | "commitTransaction" | "endSessions" | "getMore" | "killCursors" | "killSessions"
        | "listDatabases" | "refreshSessions" | "startSession" | "testVersion2" => Needs::Login,
        "aggregate" | "bulkWrite" | "explain" | "findAndModify" | "mapReduce" | "update" => Needs::Operation,
        "find" | "count" | "distinct" => Needs::Usually(const { &[on_collection(Find)] }),
        "insert" => Needs::Usually(const { &[on_collection(Insert)] }),
        "delete" => Needs::Usually(const { &[on_collection(Remove)] }),
        "collMod" => Needs::Arguments(coll_mod),
        "collStats" => one!(on_collection CollStats),
        "compact" => one!(on_collection Compact),
        "convertToCapped" => one!(on_collection ConvertToCapped),
        "cloneCollectionAsCapped" => Needs::Arguments(clone_as_capped),
        "create" => Needs::Arguments(create),
        "createIndexes" | "setIndexCommitQuorum" => one!(on_collection CreateIndex),
        "createSearchIndexes" => one!(on_collection CreateSearchIndexes),
        "dataSize" => one!(on_collection Find),
        "drop" => one!(on_collection DropCollection),
        "dropIndexes" => one!(on_collection DropIndex),
        "dropSearchIndex" => one!(on_collection DropSearchIndex),
        "listIndexes" => one!(on_collection ListIndexes),
        "listSearchIndexes" => one!(on_collection ListSearchIndexes),
        "planCacheClear" => one!(on_collection PlanCacheWrite),
        "planCacheClearFilters" | "planCacheListFilters" | "planCacheSetFilter" => {
            one!(on_collection PlanCacheIndexFilter)
        }
        "renameCollection" => Needs::Arguments(rename),
        "updateSearchIndex" => one!(on_collection UpdateSearchIndex),
        "validate" => one!(on_collection Validate),
        "dbHash" => one!(on_database DbHash),
        "dbStats" => one!(on_database DbStats),
        "dropDatabase" => one!(on_database DropDatabase),
        "listCollections" => Needs::Arguments(list_collections),
        "profile" => one!(on_database EnableProfiler),
        "validateDBMetadata" => one!(on_database Validate),
        // Whatever it is told to do it does without asking further.
        "applyOps" => one!(on_server Internal),
        "autoCompact" => one!(on_server Compact),
        "configureFailPoint" => one!(on_server SetParameter),
        "connPoolStats" => one!(on_server ConnPoolStats),
        // Operations do not say yet whose they are, so that one's own cannot be told from those of others.
        "currentOp" => one!(on_server Inprog),
        "killOp" => one!(on_server Killop),
        "dropConnections" => one!(on_server DropConnections),
        "fsync" => one!(on_server Fsync),
        "fsyncUnlock" => one!(on_server Unlock),
        "getClusterParameter" => one!(on_server GetClusterParameter),
        "getCmdLineOpts" => one!(on_server GetCmdLineOpts),
        "getDefaultRWConcern" => one!(on_server GetDefaultRwConcern),
        "getLog" => one!(on_server GetLog),
        "getParameter" => one!(on_server GetParameter),
        "hostInfo" => one!(on_server HostInfo),
        "invalidateUserCache" => one!(on_server InvalidateUserCache),
        "killAllSessions" | "killAllSessionsByPattern" => one!(on_server KillAnySession),
        "lockInfo" | "serverStatus" => one!(on_server ServerStatus),
        "logApplicationMessage" => one!(on_server ApplicationMessage),
        "logRotate" => one!(on_server LogRotate),
        "removeQuerySettings" | "setQuerySettings" => one!(on_server QuerySettings),
        "replSetGetConfig" => one!(on_server ReplSetGetConfig),
        "replSetGetStatus" => one!(on_server ReplSetGetStatus),
        "replSetInitiate" | "replSetReconfig" => one!(on_server ReplSetConfigure),
        "replSetAbortPrimaryCatchUp"
        | "replSetFreeze"
        | "replSetMaintenance"
        | "replSetStepDown"
        | "replSetSyncFrom" => one!(on_server ReplSetStateChange),
        "rotateCertificates" => one!(on_server RotateCertificates),
        "setClusterParameter" => one!(on_server SetClusterParameter),
        "setDefaultRWConcern" => one!(on_server SetDefaultRwConcern),
        "setFeatureCompatibilityVersion" => one!(on_server SetFeatureCompatibilityVersion),
        "setParameter" => one!(on_server SetParameter),
        "setUserWriteBlockMode" => one!(on_server SetUserWriteBlockMode),
        "shutdown" => one!(on_server Shutdown),
        "top" => one!(on_server Top),
        "createUser" => Needs::Arguments(|asked, wanted| {
            asked.own_database(CreateUser, wanted);
            asked.roles(GrantRole, wanted);
        }),
        "updateUser" => Needs::Arguments(update_user),
        "dropUser" | "dropAllUsersFromDatabase" => one!(on_database DropUser),
        "grantRolesToUser" | "grantRolesToRole" => Needs::Arguments(|asked, wanted| asked.roles(GrantRole, wanted)),
        "revokeRolesFromUser" | "revokeRolesFromRole" => {
            Needs::Arguments(|asked, wanted| asked.roles(RevokeRole, wanted))
        }
        "createRole" => Needs::Arguments(|asked, wanted| {
            asked.own_database(CreateRole, wanted);
            asked.roles(GrantRole, wanted);
            asked.privileges(GrantRole, wanted);
        }),
        "updateRole" => Needs::Arguments(|asked, wanted| {
            asked.own_database(RevokeRole, wanted);
            asked.roles(GrantRole, wanted);
            asked.privileges(GrantRole, wanted);
        }),
        "dropRole" | "dropAllRolesFromDatabase" => one!(on_database DropRole),
        "grantPrivilegesToRole" => Needs::Arguments(|asked, wanted| asked.privileges(GrantRole, wanted)),
        "revokePrivilegesFromRole" => Needs::Arguments(|asked, wanted| asked.privileges(RevokeRole, wanted)),
        "usersInfo" => Needs::Arguments(users_info),
        "rolesInfo" => Needs::Arguments(roles_info),
        _ => return None,
    })
}

impl Asked<'_> {
    /// Whether all of these rights were given.
    pub fn has(&self, rights: &[Right]) -> Result<bool> {
        for right in rights {
            let actions = match right.on {
                Scope::Cluster => self.account.grants.on(&Resource::Cluster),
                Scope::Database => self.account.grants.on(&Resource::Database(self.db.into())),
                Scope::Collection => match self.facts.collection_of(self.db, self.body) {
                    Some((db, coll)) => self.account.grants.on_collection(&Namespace::new(db, coll)),
                    // It names none, and will be refused; whoever has the right on the database may hear why.
                    None => self.account.grants.on(&Resource::Database(self.db.into())),
                },
            };
            if !actions.has(right.action) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it names its collection, not a UUID, and validates what it writes.
    pub fn is_usual(&self) -> bool {
        let bypass = self.body.get("bypassDocumentValidation");
        self.facts.collection_of(self.db, self.body).is_some() && !bypass.is_some_and(ValueRef::truthy)
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.body.get(field).and_then(ValueRef::as_str)
    }

    fn first(&self) -> Option<ValueRef<'_>> {
        self.body.iter().next().map(|(_, value)| value)
    }

    fn collection(&self) -> Namespace {
        let (db, coll) = self.facts.collection_of(self.db, self.body).unwrap_or((self.db, ""));
        Namespace::new(db, coll)
    }

    fn own_database(&self, action: Action, wanted: &mut Wanted) {
        want_in(self.db, action, wanted);
    }

    /// The action on the database of each role that `roles` names. What is no name will be refused later.
    fn roles(&self, action: Action, wanted: &mut Wanted) {
        let roles = self.body.get("roles").and_then(ValueRef::as_array);
        for role in roles.into_iter().flat_map(|roles| roles.iter()) {
            if let Ok(role) = RoleName::parse(role, self.db) {
                want_in(&role.db, action, wanted);
            }
        }
    }

    /// The action on the database of each privilege that `privileges` names; `admin` for what reaches beyond one database.
    fn privileges(&self, action: Action, wanted: &mut Wanted) {
        let privileges = self.body.get("privileges").and_then(ValueRef::as_array);
        for privilege in privileges.into_iter().flat_map(|privileges| privileges.iter()) {
            let grant = privilege.as_document().and_then(|doc| Grant::parse(doc).ok());
            if let Some(grant) = grant {
                want_in(grant.on.database().unwrap_or("admin"), action, wanted);
            }
        }
    }
}

/// Adds a right.
pub fn want(resource: Resource, action: Action, wanted: &mut Wanted) {
    wanted.push(Privilege { resource, action });
}

fn want_in(db: &str, action: Action, wanted: &mut Wanted) {
    want(Resource::Database(Str::from(db)), action, wanted);
}

fn want_on(ns: &Namespace, action: Action, wanted: &mut Wanted) {
    want(Resource::Collection(ns.clone()), action, wanted);
}

/// A view lets its makers read what it is on, so they need the right to.
fn want_view(asked: &Asked<'_>, wanted: &mut Wanted) {
    let Some(on) = asked.text("viewOn") else { return };
    want_on(&Namespace::new(asked.db, on), Find, wanted);
    let pipeline = asked.body.get("pipeline").and_then(ValueRef::as_array);
    let Some(pipeline) = pipeline else { return };
    let mut named = Vec::new();
    let mut scope = nestor_query::env::Scope::new();
    let mut context = ParseContext::new(&mut scope, asked.collection(), Place::View);
    match Pipeline::parse(pipeline, &mut context) {
        Ok(pipeline) => pipeline.involved_namespaces(&mut named),
        // It will be refused.
        Err(_) => return,
    }
    for ns in named {
        want_on(&ns, Find, wanted);
    }
}

fn create(asked: &Asked<'_>, wanted: &mut Wanted) {
    want_on(&asked.collection(), CreateCollection, wanted);
    if asked.body.get("capped").is_some_and(ValueRef::truthy) {
        want_on(&asked.collection(), ConvertToCapped, wanted);
    }
    want_view(asked, wanted);
}

fn coll_mod(asked: &Asked<'_>, wanted: &mut Wanted) {
    want_on(&asked.collection(), CollMod, wanted);
    want_view(asked, wanted);
}

fn clone_as_capped(asked: &Asked<'_>, wanted: &mut Wanted) {
    let from = asked.first().and_then(ValueRef::as_str).unwrap_or_default();
    let to = Namespace::new(asked.db, asked.text("toCollection").unwrap_or_default());
    want_on(&Namespace::new(asked.db, from), Find, wanted);
    for action in [Insert, CreateIndex, ConvertToCapped] {
        want_on(&to, action, wanted);
    }
}

fn rename(asked: &Asked<'_>, wanted: &mut Wanted) {
    let split = |name: &str| name.split_once('.').map(|(db, coll)| Namespace::new(db, coll));
    let from = asked.first().and_then(ValueRef::as_str).and_then(split);
    let to = asked.text("to").and_then(split);
    let (Some(from), Some(to)) = (from, to) else {
        // It will be refused.
        return;
    };
    let drops = asked.body.get("dropTarget").is_some_and(ValueRef::truthy);
    let is_own_business = [&from, &to].iter().all(|ns| !is_system(&ns.db, &ns.coll));
    if from.db == to.db && is_own_business {
        // Whoever may rename must not come to read by it what could not be read before.
        want_in(&from.db, RenameCollectionSameDb, wanted);
        if asked.account.grants.on_collection(&to).has(Find) {
            want_on(&from, Find, wanted);
        }
    } else {
        want_on(&from, Find, wanted);
        want_on(&from, DropCollection, wanted);
        for action in [Insert, CreateIndex] {
            want_on(&to, action, wanted);
        }
    }
    if drops {
        want_on(&to, DropCollection, wanted);
    }
}

/// Whoever asks for no more than names, and of those collections only that may be read, needs no right.
fn list_collections(asked: &Asked<'_>, wanted: &mut Wanted) {
    let is_on = |field: &str| asked.body.get(field).is_some_and(ValueRef::truthy);
    if !(is_on("nameOnly") && is_on("authorizedCollections")) {
        asked.own_database(ListCollections, wanted);
    }
}

fn update_user(asked: &Asked<'_>, wanted: &mut Wanted) {
    let name = asked.first().and_then(ValueRef::as_str).unwrap_or_default();
    let is_own = asked.account.name == UserName::new(name, asked.db);
    let given = asked.account.grants.on(&Resource::Database(asked.db.into()));
    let own_or = |own: Action, any: Action| match is_own && given.has(own) {
        true => own,
        false => any,
    };
    let mut is_any = false;
    for (field, action) in [
        ("pwd", own_or(ChangeOwnPassword, ChangePassword)),
        ("mechanisms", own_or(ChangeOwnPassword, ChangePassword)),
        ("customData", own_or(ChangeOwnCustomData, ChangeCustomData)),
        ("authenticationRestrictions", SetAuthenticationRestriction),
        ("roles", RevokeRole),
    ] {
        if asked.body.get(field).is_some() {
            asked.own_database(action, wanted);
            is_any = true;
        }
    }
    asked.roles(GrantRole, wanted);
    if !is_any {
        asked.own_database(ChangeCustomData, wanted);
    }
}

/// Everybody may see what is known of themselves.
fn users_info(asked: &Asked<'_>, wanted: &mut Wanted) {
    let mut name = |value: ValueRef<'_>| match UserName::parse(value, asked.db) {
        Ok(name) if name == asked.account.name => {}
        Ok(name) => want_in(&name.db, ViewUser, wanted),
        // It will be refused.
        Err(_) => {}
    };
    match asked.first() {
        Some(ValueRef::Array(names)) => names.iter().for_each(name),
        Some(ValueRef::Document(doc)) if doc.get("forAllDBs").is_some() => {
            want(Resource::AllCollections, ViewUser, wanted);
        }
        Some(one @ (ValueRef::String(_) | ValueRef::Document(_))) => name(one),
        _ => asked.own_database(ViewUser, wanted),
    }
}

/// Everybody may see the roles that they have.
fn roles_info(asked: &Asked<'_>, wanted: &mut Wanted) {
    let mut name = |value: ValueRef<'_>| match RoleName::parse(value, asked.db) {
        Ok(name) if asked.account.all_roles.contains(&name) => {}
        Ok(name) => want_in(&name.db, ViewRole, wanted),
        Err(_) => {}
    };
    match asked.first() {
        Some(ValueRef::Array(names)) => names.iter().for_each(name),
        Some(one @ (ValueRef::String(_) | ValueRef::Document(_))) => name(one),
        _ => asked.own_database(ViewRole, wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::all;

    #[test]
    fn each_command_says_what_it_needs() {
        let missing: Vec<_> = all()
            .map(|spec| spec.name)
            .filter(|name| needs(name).is_none())
            .collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn what_needs_a_right_on_a_collection_names_one() {
        for spec in all() {
            if let Some(Needs::Rights(rights) | Needs::Usually(rights)) = needs(spec.name) {
                let on_collection = rights.iter().any(|right| right.on == Scope::Collection);
                let names_one = spec.collection != crate::facts::CollectionAt::Nowhere;
                assert!(!on_collection || names_one, "{}", spec.name);
            }
        }
    }
}
