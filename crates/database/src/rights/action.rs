//! Actions, and sets of them.
//!
//! Source: manual, "Privilege Actions".

use std::fmt;

macro_rules! actions {
    ($($variant:ident => $name:literal,)*) => {
        /// Something that a right allows, named as in MongoDB's manual.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Action {
            $($variant,)*
        }

        impl Action {
            /// All of them, in alphabetical order of their names.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name as rights are granted by.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

actions! {
    AddShard => "addShard",
    AnalyzeShardKey => "analyzeShardKey",
    AnyAction => "anyAction",
    AppendOplogNote => "appendOplogNote",
    ApplicationMessage => "applicationMessage",
    ApplyOps => "applyOps",
    AuditConfigure => "auditConfigure",
    AuthSchemaUpgrade => "authSchemaUpgrade",
    BypassDefaultMaxTimeMS => "bypassDefaultMaxTimeMS",
    BypassDocumentValidation => "bypassDocumentValidation",
    BypassRowSecurity => "bypassRowSecurity",
    BypassWriteBlockingMode => "bypassWriteBlockingMode",
    ChangeCustomData => "changeCustomData",
    ChangeMasking => "changeMasking",
    ChangeOwnCustomData => "changeOwnCustomData",
    ChangeOwnPassword => "changeOwnPassword",
    ChangePassword => "changePassword",
    ChangeRowSecurity => "changeRowSecurity",
    ChangeStream => "changeStream",
    CheckFreeMonitoringStatus => "checkFreeMonitoringStatus",
    CheckMetadataConsistency => "checkMetadataConsistency",
    CleanupOrphaned => "cleanupOrphaned",
    CleanupStructuredEncryptionData => "cleanupStructuredEncryptionData",
    ClearJumboFlag => "clearJumboFlag",
    CloseAllDatabases => "closeAllDatabases",
    CollMod => "collMod",
    CollStats => "collStats",
    Compact => "compact",
    CompactStructuredEncryptionData => "compactStructuredEncryptionData",
    ConfigureQueryAnalyzer => "configureQueryAnalyzer",
    ConnPoolStats => "connPoolStats",
    ConnPoolSync => "connPoolSync",
    ConvertToCapped => "convertToCapped",
    CpuProfiler => "cpuProfiler",
    // Nestor's own.
    CreateBackup => "createBackup",
    CreateCollection => "createCollection",
    CreateIndex => "createIndex",
    CreateRole => "createRole",
    CreateSearchIndexes => "createSearchIndexes",
    CreateUser => "createUser",
    CursorInfo => "cursorInfo",
    DbHash => "dbHash",
    DbStats => "dbStats",
    DropCollection => "dropCollection",
    DropConnections => "dropConnections",
    DropDatabase => "dropDatabase",
    DropIndex => "dropIndex",
    DropRole => "dropRole",
    DropSearchIndex => "dropSearchIndex",
    DropUser => "dropUser",
    EnableProfiler => "enableProfiler",
    EnableSharding => "enableSharding",
    Find => "find",
    FlushRouterConfig => "flushRouterConfig",
    ForceUuid => "forceUUID",
    Fsync => "fsync",
    GetClusterParameter => "getClusterParameter",
    GetCmdLineOpts => "getCmdLineOpts",
    GetDefaultRwConcern => "getDefaultRWConcern",
    GetLog => "getLog",
    GetParameter => "getParameter",
    GetShardMap => "getShardMap",
    GetShardVersion => "getShardVersion",
    GrantRole => "grantRole",
    HostInfo => "hostInfo",
    Impersonate => "impersonate",
    IndexStats => "indexStats",
    Inprog => "inprog",
    Insert => "insert",
    Internal => "internal",
    InvalidateUserCache => "invalidateUserCache",
    IssueDirectShardOperations => "issueDirectShardOperations",
    KillAnyCursor => "killAnyCursor",
    KillAnySession => "killAnySession",
    KillCursors => "killCursors",
    Killop => "killop",
    ListClusterCatalog => "listClusterCatalog",
    ListCollections => "listCollections",
    ListDatabases => "listDatabases",
    ListIndexes => "listIndexes",
    ListSampledQueries => "listSampledQueries",
    ListSearchIndexes => "listSearchIndexes",
    ListSessions => "listSessions",
    ListShards => "listShards",
    LogRotate => "logRotate",
    MoveChunk => "moveChunk",
    MoveCollection => "moveCollection",
    Netstat => "netstat",
    OidReset => "oidReset",
    OperationMetrics => "operationMetrics",
    PerformRawDataOperations => "performRawDataOperations",
    PlanCacheIndexFilter => "planCacheIndexFilter",
    PlanCacheRead => "planCacheRead",
    PlanCacheWrite => "planCacheWrite",
    QuerySettings => "querySettings",
    QueryStatsRead => "queryStatsRead",
    QueryStatsReadTransformed => "queryStatsReadTransformed",
    ReIndex => "reIndex",
    RefineCollectionShardKey => "refineCollectionShardKey",
    Remove => "remove",
    RemoveShard => "removeShard",
    RenameCollection => "renameCollection",
    RenameCollectionSameDb => "renameCollectionSameDB",
    ReplSetConfigure => "replSetConfigure",
    ReplSetGetConfig => "replSetGetConfig",
    ReplSetGetStatus => "replSetGetStatus",
    ReplSetHeartbeat => "replSetHeartbeat",
    ReplSetReconfig => "replSetReconfig",
    ReplSetResizeOplog => "replSetResizeOplog",
    ReplSetStateChange => "replSetStateChange",
    ReshardCollection => "reshardCollection",
    Resync => "resync",
    RevokeRole => "revokeRole",
    RotateCertificates => "rotateCertificates",
    RunAsLessPrivilegedUser => "runAsLessPrivilegedUser",
    RunTenantMigration => "runTenantMigration",
    ServerStatus => "serverStatus",
    SetAuthenticationRestriction => "setAuthenticationRestriction",
    SetClusterParameter => "setClusterParameter",
    SetDefaultRwConcern => "setDefaultRWConcern",
    SetFeatureCompatibilityVersion => "setFeatureCompatibilityVersion",
    SetFreeMonitoring => "setFreeMonitoring",
    SetParameter => "setParameter",
    SetUserWriteBlockMode => "setUserWriteBlockMode",
    ShardedDataDistribution => "shardedDataDistribution",
    ShardingState => "shardingState",
    Shutdown => "shutdown",
    SplitChunk => "splitChunk",
    SplitVector => "splitVector",
    StorageDetails => "storageDetails",
    Top => "top",
    Touch => "touch",
    TransitionFromDedicatedConfigServer => "transitionFromDedicatedConfigServer",
    TransitionToDedicatedConfigServer => "transitionToDedicatedConfigServer",
    TrafficRecord => "trafficRecord",
    Unlock => "unlock",
    Unmask => "unmask",
    UnshardCollection => "unshardCollection",
    Update => "update",
    UpdateSearchIndex => "updateSearchIndex",
    UseUuid => "useUUID",
    Validate => "validate",
    ViewRole => "viewRole",
    ViewUser => "viewUser",
}

impl Action {
    /// The action of that name. Names are case-sensitive.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}

/// A set of actions, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Actions([u64; 3]);

impl Actions {
    /// No action.
    pub const NONE: Self = Self([0; 3]);

    /// These actions.
    pub const fn of(actions: &[Action]) -> Self {
        let mut bits = [0; 3];
        let mut at = 0;
        while at < actions.len() {
            let action = actions[at] as usize;
            bits[action / 64] |= 1 << (action % 64);
            at += 1;
        }
        Self(bits)
    }

    /// Those in either set.
    pub const fn and(self, other: Self) -> Self {
        let (Self([a, b, c]), Self([d, e, f])) = (self, other);
        Self([a | d, b | e, c | f])
    }

    /// The actions that are not in the other set.
    pub const fn without(self, other: Self) -> Self {
        let (Self([a, b, c]), Self([d, e, f])) = (self, other);
        Self([a & !d, b & !e, c & !f])
    }

    /// Adds one.
    pub fn add(&mut self, action: Action) {
        *self = self.and(Self::of(&[action]));
    }

    /// Whether the action is among them. `anyAction` is all actions.
    pub const fn has(self, action: Action) -> bool {
        self.holds(action) || self.holds(Action::AnyAction)
    }

    /// Whether all of `other` are among them.
    pub const fn has_all(self, other: Self) -> bool {
        self.holds(Action::AnyAction) || other.without(self).is_empty()
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0[0] | self.0[1] | self.0[2] == 0
    }

    /// Those in it, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.holds(*action))
    }

    const fn holds(self, action: Action) -> bool {
        let number = action as usize;
        self.0[number / 64] & (1 << (number % 64)) != 0
    }
}

impl FromIterator<Action> for Actions {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        let mut out = Self::NONE;
        for action in actions {
            out.add(action);
        }
        out
    }
}

impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Action::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_action_and_go_both_ways() {
        for action in Action::ALL {
            assert_eq!(Action::of_name(action.name()), Some(*action));
        }
        assert_eq!(Action::of_name("FIND"), None);
    }

    #[test]
    fn all_fit_a_set() {
        let all: Actions = Action::ALL.iter().copied().collect();
        assert_eq!(all.iter().count(), Action::ALL.len());
        assert!(all.has_all(Actions::of(&[Action::AddShard, Action::ViewUser])));
    }

    #[test]
    fn sets() {
        let reads = Actions::of(&[Action::Find, Action::ViewUser]);
        assert!(reads.has(Action::Find) && !reads.has(Action::Insert));
        assert!(reads.without(Actions::of(&[Action::Find])).has(Action::ViewUser));
        assert!(!reads.has_all(Actions::of(&[Action::Find, Action::Insert])));
        let any = Actions::of(&[Action::AnyAction]);
        assert!(any.has(Action::Insert) && any.has_all(reads));
        assert!(Actions::NONE.is_empty() && !reads.is_empty());
        assert_eq!(format!("{reads:?}"), r#"{"find", "viewUser"}"#);
    }
}
