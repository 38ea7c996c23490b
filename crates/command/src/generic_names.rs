//! The names of the arguments that every command takes.

/// Position of a generic argument in the list of them; what follows `maxTimeMSOpOnly` and `help` is sent by other
/// members of a cluster and without meaning on one node.
pub fn generic_index(name: &str) -> Option<u8> {
    Some(match name {
        "$db" => 0,
        "lsid" => 1,
        "txnNumber" => 2,
        "startTransaction" => 3,
        "autocommit" => 4,
        "readConcern" => 5,
        "writeConcern" => 6,
        "maxTimeMS" => 7,
        "comment" => 8,
        "$clusterTime" => 9,
        "$readPreference" => 10,
        "apiVersion" => 11,
        "apiStrict" => 12,
        "apiDeprecationErrors" => 13,
        "maxTimeMSOpOnly" => 14,
        "help" => 15,
        "$audit" => 16,
        "$client" => 17,
        "$configServerState" => 18,
        "$oplogQueryData" => 19,
        "$queryOptions" => 20,
        "$replData" => 21,
        "$configTime" => 22,
        "$topologyTime" => 23,
        "$traceCtx" => 24,
        "allowImplicitCollectionCreation" => 25,
        "clientOperationKey" => 26,
        "coordinator" => 27,
        "databaseVersion" => 28,
        "shardVersion" => 29,
        "mayBypassWriteBlocking" => 30,
        "rawData" => 31,
        "txnRetryCounter" => 32,
        "requestGossipRoutingCache" => 33,
        "versionContext" => 34,
        "expectPrefix" => 35,
        _ => return None,
    })
}

/// True for arguments that every command takes, so that no command's own parser complains of them.
pub fn is_generic(name: &str) -> bool {
    generic_index(name).is_some()
}
