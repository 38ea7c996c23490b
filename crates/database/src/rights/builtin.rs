//! The roles that are there without anybody having made them.
//!
//! Each database has `read`, `readWrite`, `dbAdmin`, `userAdmin`, `dbOwner` and `enableSharding`; `admin` has the others too.
//!
//! Source: manual, "Built-In Roles" (8.0), section "Self-Managed Deployment Built-In Roles".

use super::action::Action::*;
use super::grant::{Grant, Pattern, merged};
use super::{Action, Actions};
use nestor_model::namespace::{ADMIN, CONFIG, LOCAL};

/// The actions of the role `read` on collections.
const READ: Actions = Actions::of(&[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
]);
const READ_WRITE: Actions = READ.and(Actions::of(&[
    CleanupStructuredEncryptionData,
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Insert,
    PerformRawDataOperations,
    Remove,
    RenameCollectionSameDb,
    Update,
    UpdateSearchIndex,
]));
const DB_ADMIN: Actions = Actions::of(&[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropSearchIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDb,
    UpdateSearchIndex,
    Validate,
]);
/// Of `dbAdmin`, on `system.profile`.
const PROFILE: Actions = READ.and(Actions::of(&[ConvertToCapped, CreateCollection, DropCollection]));
const USER_ADMIN: Actions = Actions::of(&[
    ChangeCustomData,
    ChangeMasking,
    ChangePassword,
    ChangeRowSecurity,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
]);
const ENABLE_SHARDING: Actions = Actions::of(&[
    AnalyzeShardKey,
    EnableSharding,
    MoveCollection,
    RefineCollectionShardKey,
    ReshardCollection,
    UnshardCollection,
]);
/// The actions of clusterManager and clusterMonitor on collections of the server.
const LOOK: Actions = Actions::of(&[
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
]);
const RESTORE: Actions = Actions::of(&[
    BypassDocumentValidation,
    CollMod,
    CreateCollection,
    CreateIndex,
    DropCollection,
    Insert,
    UpdateSearchIndex,
]);

/// Roles of every database.
pub const OF_DATABASES: [&str; 6] = ["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"];

/// Roles of `admin` besides.
pub const OF_ADMIN: [&str; 14] = [
    "__queryableBackup",
    "__system",
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "directShardOperations",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "userAdminAnyDatabase",
];

/// Whether there is such a role.
pub fn exists(role: &str, db: &str) -> bool {
    // Users of other systems live there, and no roles.
    db != "$external" && OF_DATABASES.contains(&role) || db == ADMIN && OF_ADMIN.contains(&role)
}

/// The privileges of a role, joined by resource; `None` when there is no such role.
pub fn grants(role: &str, db: &str) -> Option<Vec<Grant>> {
    if !exists(role, db) {
        return None;
    }
    let mut out = Vec::new();
    add(role, db, &mut out);
    Some(merged(out))
}

fn add(role: &str, db: &str, out: &mut Vec<Grant>) {
    let own = || Pattern::Database(db.into());
    let mut give = |on: Pattern, actions: Actions| out.push(Grant::new(on, actions));
    let one = |action: Action| Actions::of(&[action]);
    let everywhere = |coll: &str| Pattern::Everywhere(coll.into());
    match role {
        "read" | "readWrite" => {
            let actions = if role == "read" { READ } else { READ_WRITE };
            give(own(), actions);
            give(Pattern::collection(db, "system.js"), actions);
        }
        "dbAdmin" => {
            give(own(), DB_ADMIN);
            give(Pattern::collection(db, "system.profile"), PROFILE);
        }
        "userAdmin" => give(own(), USER_ADMIN),
        "enableSharding" => give(Pattern::AllDatabases, ENABLE_SHARDING),
        "dbOwner" => {
            give(own(), Actions::of(&[BypassRowSecurity, Unmask]));
            inherit(&["readWrite", "dbAdmin", "userAdmin"], db, out);
        }
        "readAnyDatabase" | "readWriteAnyDatabase" => {
            let actions = if role == "readAnyDatabase" { READ } else { READ_WRITE };
            give(Pattern::AllDatabases, actions);
            give(everywhere("system.js"), actions);
            give(Pattern::Cluster, one(ListDatabases));
        }
        "dbAdminAnyDatabase" => {
            give(Pattern::AllDatabases, DB_ADMIN);
            give(everywhere("system.profile"), PROFILE);
            give(Pattern::Cluster, Actions::of(&[ApplyOps, ListDatabases]));
        }
        "userAdminAnyDatabase" => user_admin_any_database(out),
        "clusterManager" => cluster_manager(out),
        "clusterMonitor" => cluster_monitor(out),
        "hostManager" => host_manager(out),
        "clusterAdmin" => {
            give(Pattern::AllDatabases, one(DropDatabase));
            inherit(
                &["clusterManager", "clusterMonitor", "hostManager", "enableSharding"],
                db,
                out,
            );
        }
        "backup" => backup(out),
        "restore" => restore(out),
        "directShardOperations" => give(Pattern::Cluster, one(IssueDirectShardOperations)),
        "root" => root(out),
        "__queryableBackup" => {
            give(Pattern::collection(CONFIG, "settings"), one(Find));
            inherit(&["backup"], db, out);
        }
        "__system" => give(Pattern::Anything, one(AnyAction)),
        _ => debug_assert!(false, "{role} is one of those that exist"),
    }
}

fn inherit(roles: &[&str], db: &str, out: &mut Vec<Grant>) {
    for role in roles {
        add(role, db, out);
    }
}

fn user_admin_any_database(out: &mut Vec<Grant>) {
    out.push(Grant::new(Pattern::AllDatabases, USER_ADMIN));
    let of_server = Actions::of(&[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases]);
    out.push(Grant::new(Pattern::Cluster, of_server));
    let actions = Actions::of(&[
        CollStats,
        CreateIndex,
        CreateSearchIndexes,
        DbHash,
        DbStats,
        DropIndex,
        DropSearchIndex,
        Find,
        KillCursors,
        PlanCacheRead,
    ]);
    for on in [
        Pattern::collection(ADMIN, "system.users"),
        Pattern::collection(ADMIN, "system.roles"),
        Pattern::Everywhere("system.users".into()),
    ] {
        out.push(Grant::new(on, actions));
    }
}

fn cluster_manager(out: &mut Vec<Grant>) {
    let of_server = Actions::of(&[
        AddShard,
        AppendOplogNote,
        ApplicationMessage,
        CheckMetadataConsistency,
        CleanupOrphaned,
        FlushRouterConfig,
        GetClusterParameter,
        GetDefaultRwConcern,
        ListSessions,
        ListShards,
        MoveCollection,
        QuerySettings,
        RemoveShard,
        ReplSetConfigure,
        ReplSetGetConfig,
        ReplSetGetStatus,
        ReplSetResizeOplog,
        ReplSetStateChange,
        Resync,
        SetClusterParameter,
        SetDefaultRwConcern,
        SetFeatureCompatibilityVersion,
        TransitionFromDedicatedConfigServer,
        TransitionToDedicatedConfigServer,
        UnshardCollection,
    ]);
    let sharding = Actions::of(&[
        AnalyzeShardKey,
        ClearJumboFlag,
        ConfigureQueryAnalyzer,
        EnableSharding,
        MoveChunk,
        RefineCollectionShardKey,
        ReshardCollection,
    ]);
    let in_local = Actions::of(&[EnableSharding, Insert, MoveChunk, Remove, Update]);
    for (on, actions) in [
        (Pattern::Cluster, of_server),
        (Pattern::AllDatabases, sharding),
        (Pattern::Database(CONFIG.into()), LOOK.and(in_local)),
        (Pattern::collection(CONFIG, "system.js"), LOOK),
        (Pattern::Database(LOCAL.into()), in_local),
        (Pattern::collection(LOCAL, "system.replset"), LOOK),
    ] {
        out.push(Grant::new(on, actions));
    }
}

fn cluster_monitor(out: &mut Vec<Grant>) {
    let of_server = Actions::of(&[
        ConnPoolStats,
        GetCmdLineOpts,
        GetDefaultRwConcern,
        GetLog,
        GetParameter,
        GetShardMap,
        HostInfo,
        Inprog,
        ListClusterCatalog,
        ListDatabases,
        ListSessions,
        ListShards,
        QueryStatsRead,
        QueryStatsReadTransformed,
        ReplSetGetConfig,
        ReplSetGetStatus,
        ServerStatus,
        ShardingState,
        Top,
    ]);
    let find = Actions::of(&[Find]);
    let in_own = LOOK.and(Actions::of(&[IndexStats]));
    for (on, actions) in [
        (Pattern::Cluster, of_server),
        (
            Pattern::AllDatabases,
            Actions::of(&[CollStats, DbStats, IndexStats, UseUuid]),
        ),
        (Pattern::Everywhere("system.profile".into()), find),
        (Pattern::Database(CONFIG.into()), in_own),
        (Pattern::collection(CONFIG, "system.js"), LOOK),
        (Pattern::Database(LOCAL.into()), in_own),
        (Pattern::collection(LOCAL, "system.js"), LOOK),
        (Pattern::collection(LOCAL, "system.replset"), find),
    ] {
        out.push(Grant::new(on, actions));
    }
}

fn host_manager(out: &mut Vec<Grant>) {
    let of_server = Actions::of(&[
        ApplicationMessage,
        CloseAllDatabases,
        Compact,
        ConnPoolSync,
        DropConnections,
        FlushRouterConfig,
        Fsync,
        InvalidateUserCache,
        KillAnyCursor,
        KillAnySession,
        Killop,
        LogRotate,
        OidReset,
        Resync,
        RotateCertificates,
        SetParameter,
        Shutdown,
        Touch,
        Unlock,
    ]);
    out.push(Grant::new(Pattern::Cluster, of_server));
    out.push(Grant::new(Pattern::AllDatabases, Actions::of(&[KillCursors])));
}

fn backup(out: &mut Vec<Grant>) {
    // Nestor's own: whoever may read everything may have it copied.
    out.push(Grant::new(Pattern::Cluster, Actions::of(&[CreateBackup])));
    let find = Actions::of(&[Find]);
    let on_anything = Actions::of(&[
        BypassRowSecurity,
        ListCollections,
        ListDatabases,
        ListIndexes,
        ListSearchIndexes,
        Unmask,
    ]);
    let of_server = Actions::of(&[
        AppendOplogNote,
        GetParameter,
        ListDatabases,
        ServerStatus,
        SetUserWriteBlockMode,
    ]);
    for (on, actions) in [
        (Pattern::Anything, on_anything),
        (Pattern::Cluster, of_server),
        (Pattern::AllDatabases, find),
        (Pattern::Database(CONFIG.into()), find),
        (Pattern::Database(LOCAL.into()), find),
        (Pattern::Everywhere("system.js".into()), find),
        (Pattern::Everywhere("system.profile".into()), find),
        (Pattern::Everywhere("system.users".into()), find),
        (Pattern::collection(ADMIN, "system.roles"), find),
        (Pattern::collection(ADMIN, "system.users"), find),
        (Pattern::collection(ADMIN, "system.version"), find),
        (
            Pattern::collection(CONFIG, "settings"),
            Actions::of(&[Find, Insert, Update]),
        ),
    ] {
        out.push(Grant::new(on, actions));
    }
}

fn restore(out: &mut Vec<Grant>) {
    let find = Actions::of(&[Find]);
    let on_all = RESTORE.and(Actions::of(&[
        ChangeCustomData,
        ChangeMasking,
        ChangePassword,
        ChangeRowSecurity,
        ConvertToCapped,
        CreateRole,
        CreateSearchIndexes,
        CreateUser,
        DropRole,
        DropUser,
        GrantRole,
        RevokeRole,
        ViewRole,
        ViewUser,
    ]));
    let on_users = RESTORE.and(Actions::of(&[Find, Remove, Update]));
    let of_server = Actions::of(&[BypassWriteBlockingMode, GetParameter, SetUserWriteBlockMode]);
    for (on, actions) in [
        (
            Pattern::Anything,
            Actions::of(&[BypassRowSecurity, ListCollections, Unmask]),
        ),
        (Pattern::Cluster, of_server),
        (Pattern::AllDatabases, on_all),
        (Pattern::Database(CONFIG.into()), RESTORE),
        (Pattern::Database(LOCAL.into()), RESTORE),
        (Pattern::Everywhere("system.js".into()), RESTORE),
        (Pattern::Everywhere("system.users".into()), on_users),
        (
            Pattern::Everywhere("system.views".into()),
            Actions::of(&[DropCollection]),
        ),
        (Pattern::collection(ADMIN, "system.roles"), Actions::of(&[CreateIndex])),
        (Pattern::collection(ADMIN, "system.users"), on_users),
        (Pattern::collection(ADMIN, "system.version"), RESTORE.and(find)),
        // Collections that mongorestore merges into those of users and roles.
        (Pattern::collection(ADMIN, "tempusers"), find),
        (Pattern::collection(ADMIN, "temproles"), find),
    ] {
        out.push(Grant::new(on, actions));
    }
}

fn root(out: &mut Vec<Grant>) {
    let roles = [
        "readWriteAnyDatabase",
        "dbAdminAnyDatabase",
        "userAdminAnyDatabase",
        "clusterAdmin",
        "restore",
        "backup",
    ];
    inherit(&roles, ADMIN, out);
    let preimages = Actions::of(&[Find, Remove]);
    out.push(Grant::new(Pattern::collection(CONFIG, "system.preimages"), preimages));
    out.push(Grant::new(
        Pattern::Anything,
        Actions::of(&[BypassRowSecurity, Unmask, Validate]),
    ));
}

#[cfg(test)]
mod tests {
    use super::super::{Grants, Privilege, Resource};
    use super::*;
    use nestor_model::Namespace;

    fn may(role: &str, db: &str, resource: &Resource, action: Action) -> bool {
        let grants: Grants = grants(role, db).into_iter().flatten().collect();
        let resource = resource.clone();
        grants.allow(&Privilege { resource, action })
    }

    fn coll(db: &str, coll: &str) -> Resource {
        Resource::Collection(Namespace::new(db, coll))
    }

    #[test]
    fn all_roles_give_something_where_they_exist() {
        for role in OF_DATABASES {
            assert!(grants(role, "d").is_some_and(|grants| !grants.is_empty()), "{role}");
        }
        for role in OF_ADMIN {
            assert!(grants(role, "admin").is_some_and(|grants| !grants.is_empty()), "{role}");
            assert_eq!(grants(role, "d"), None, "{role}");
        }
        assert_eq!(grants("nobody", "admin"), None);
        assert_eq!(grants("read", "$external"), None);
    }

    #[test]
    fn database_roles_end_at_their_database_and_at_system_collections() {
        for (role, action) in [
            ("read", Find),
            ("readWrite", Insert),
            ("dbAdmin", CollMod),
            ("dbOwner", Update),
        ] {
            assert!(may(role, "d", &coll("d", "c"), action), "{role}");
            assert!(!may(role, "d", &coll("e", "c"), action), "{role}");
            assert!(!may(role, "d", &coll("d", "system.users"), action), "{role}");
        }
        assert!(!may("read", "d", &coll("d", "c"), Insert));
        assert!(!may("dbAdmin", "d", &coll("d", "c"), Find));
        assert!(may("dbAdmin", "d", &coll("d", "system.profile"), Find));
        assert!(!may("userAdmin", "d", &coll("d", "c"), Find));
        assert!(may("userAdmin", "d", &Resource::Database("d".into()), CreateUser));
    }

    #[test]
    fn roles_of_all_databases_leave_out_config_and_local() {
        for role in ["readAnyDatabase", "readWriteAnyDatabase"] {
            assert!(may(role, "admin", &coll("d", "c"), Find));
            assert!(!may(role, "admin", &coll("config", "c"), Find));
            assert!(!may(role, "admin", &coll("local", "oplog.rs"), Find));
            assert!(!may(role, "admin", &coll("admin", "system.users"), Find));
        }
        assert!(may("backup", "admin", &coll("local", "oplog.rs"), Find));
    }

    #[test]
    fn only_the_server_may_do_anything() {
        for action in Action::ALL {
            assert!(may("__system", "admin", &Resource::Cluster, *action));
            assert!(may("__system", "admin", &coll("admin", "system.users"), *action));
        }
        assert!(!may("root", "admin", &Resource::Cluster, Internal));
        assert!(!may("root", "admin", &coll("d", "system.buckets.x"), Find));
        assert!(may("root", "admin", &coll("d", "system.views"), Validate));
    }
}
