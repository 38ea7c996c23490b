//! The client-visible error and the table of error codes.

use crate::{Document, Str};
use std::fmt;

/// Result with the client-visible [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A MongoDB error code: a number with a `codeName`. Codes without a name of their own are written
/// `LocationN` by MongoDB; [`ErrorCode::location`] makes those.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(i32);

macro_rules! codes {
    ($($name:ident = $code:literal),* $(,)?) => {
        #[allow(non_upper_case_globals, missing_docs)]
        impl ErrorCode {
            $(pub const $name: ErrorCode = ErrorCode($code);)*
        }
        fn named(code: i32) -> Option<&'static str> {
            match code {
                $($code => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

codes! {
    OK = 0, InternalError = 1, BadValue = 2, NoSuchKey = 4, GraphContainsCycle = 5, HostUnreachable = 6,
    HostNotFound = 7, UnknownError = 8, FailedToParse = 9, CannotMutateObject = 10, UserNotFound = 11,
    UnsupportedFormat = 12, Unauthorized = 13, TypeMismatch = 14, Overflow = 15, InvalidLength = 16,
    ProtocolError = 17, AuthenticationFailed = 18, CannotReuseObject = 19, IllegalOperation = 20,
    EmptyArrayOperation = 21, InvalidBSON = 22, AlreadyInitialized = 23, LockTimeout = 24,
    RemoteValidationError = 25, NamespaceNotFound = 26, IndexNotFound = 27, PathNotViable = 28,
    NonExistentPath = 29, InvalidPath = 30, RoleNotFound = 31, RolesNotRelated = 32,
    PrivilegeNotFound = 33, CannotBackfillArray = 34, UserModificationFailed = 35,
    RemoteChangeDetected = 36, FileRenameFailed = 37, FileNotOpen = 38, FileStreamFailed = 39,
    ConflictingUpdateOperators = 40, FileAlreadyOpen = 41, LogWriteFailed = 42, CursorNotFound = 43,
    UserDataInconsistent = 45, LockBusy = 46, NoMatchingDocument = 47, NamespaceExists = 48,
    InvalidRoleModification = 49, MaxTimeMSExpired = 50, ManualInterventionRequired = 51,
    DollarPrefixedFieldName = 52, InvalidIdField = 53, NotSingleValueField = 54, InvalidDBRef = 55,
    EmptyFieldName = 56, DottedFieldName = 57, RoleModificationFailed = 58, CommandNotFound = 59,
    ShardKeyNotFound = 61, OplogOperationUnsupported = 62, StaleShardVersion = 63,
    WriteConcernFailed = 64, MultipleErrorsOccurred = 65, ImmutableField = 66, CannotCreateIndex = 67,
    IndexAlreadyExists = 68, AuthSchemaIncompatible = 69, ShardNotFound = 70, ReplicaSetNotFound = 71,
    InvalidOptions = 72, InvalidNamespace = 73, NodeNotFound = 74, WriteConcernLegacyOK = 75,
    NoReplicationEnabled = 76, OperationIncomplete = 77, CommandResultSchemaViolation = 78,
    UnknownReplWriteConcern = 79, RoleDataInconsistent = 80, NoMatchParseContext = 81,
    NoProgressMade = 82, RemoteResultsUnavailable = 83, IndexOptionsConflict = 85,
    IndexKeySpecsConflict = 86, CannotSplit = 87, NetworkTimeout = 89, CallbackCanceled = 90,
    ShutdownInProgress = 91, SecondaryAheadOfPrimary = 92, InvalidReplicaSetConfig = 93,
    NotYetInitialized = 94, NotSecondary = 95, OperationFailed = 96, NoProjectionFound = 97,
    DBPathInUse = 98, UnsatisfiableWriteConcern = 100, OutdatedClient = 101,
    IncompatibleAuditMetadata = 102, NewReplicaSetConfigurationIncompatible = 103,
    NodeNotElectable = 104, IncompatibleShardingMetadata = 105, DistributedClockSkewed = 106,
    LockFailed = 107, InconsistentReplicaSetNames = 108, ConfigurationInProgress = 109,
    CannotInitializeNodeWithData = 110, NotExactValueField = 111, WriteConflict = 112,
    InitialSyncFailure = 113, InitialSyncOplogSourceMissing = 114, CommandNotSupported = 115,
    DocTooLargeForCapped = 116, ConflictingOperationInProgress = 117, NamespaceNotSharded = 118,
    InvalidSyncSource = 119, OplogStartMissing = 120, DocumentValidationFailure = 121,
    NotAReplicaSet = 123, IncompatibleElectionProtocol = 124, CommandFailed = 125,
    RPCProtocolNegotiationFailed = 126, UnrecoverableRollbackError = 127, LockNotFound = 128,
    LockStateChangeFailed = 129, SymbolNotFound = 130, FailedToSatisfyReadPreference = 133,
    ReadConcernMajorityNotAvailableYet = 134, StaleTerm = 135, CappedPositionLost = 136,
    IncompatibleShardingConfigVersion = 137, RemoteOplogStale = 138, JSInterpreterFailure = 139,
    InvalidSSLConfiguration = 140, SSLHandshakeFailed = 141, JSUncatchableError = 142,
    CursorInUse = 143, IncompatibleCatalogManager = 144, PooledConnectionsDropped = 145,
    ExceededMemoryLimit = 146, ZLibError = 147, ReadConcernMajorityNotEnabled = 148,
    NoConfigPrimary = 149, StaleEpoch = 150, OperationCannotBeBatched = 151, OplogOutOfOrder = 152,
    ChunkTooBig = 153, InconsistentShardIdentity = 154, CannotApplyOplogWhilePrimary = 155,
    CanRepairToDowngrade = 157, MustUpgrade = 158, DurationOverflow = 159, MaxStalenessOutOfRange = 160,
    IncompatibleCollationVersion = 161, CollectionIsEmpty = 162, ZoneStillInUse = 163,
    InitialSyncActive = 164, ViewDepthLimitExceeded = 165, CommandNotSupportedOnView = 166,
    OptionNotSupportedOnView = 167, InvalidPipelineOperator = 168, CommandOnShardedViewNotSupportedOnMongod = 169,
    TooManyMatchingDocuments = 170, CannotIndexParallelArrays = 171, TransportSessionClosed = 172,
    TransportSessionNotFound = 173, TransportSessionUnknown = 174, QueryPlanKilled = 175,
    FileOpenFailed = 176, ZoneNotFound = 177, RangeOverlapConflict = 178, WindowsPdhError = 179,
    BadPerfCounterPath = 180, AmbiguousIndexKeyPattern = 181, InvalidViewDefinition = 182,
    ClientMetadataMissingField = 183, ClientMetadataAppNameTooLarge = 184, ClientMetadataDocumentTooLarge = 185,
    ClientMetadataCannotBeMutated = 186, LinearizableReadConcernError = 187,
    IncompatibleServerVersion = 188, PrimarySteppedDown = 189, MasterSlaveConnectionFailure = 190,
    FailPointEnabled = 192, NoShardingEnabled = 193, BalancerInterrupted = 194, ViewPipelineMaxSizeExceeded = 195,
    InvalidIndexSpecificationOption = 197, ReplicaSetMonitorRemoved = 199, ChunkRangeCleanupPending = 200,
    CannotBuildIndexKeys = 201, NetworkInterfaceExceededTimeLimit = 202, ShardingStateNotInitialized = 203,
    TimeProofMismatch = 204, ClusterTimeFailsRateLimiter = 205, NoSuchSession = 206, InvalidUUID = 207,
    TooManyLocks = 208, StaleClusterTime = 209, CannotVerifyAndSignLogicalTime = 210, KeyNotFound = 211,
    IncompatibleRollbackAlgorithm = 212, DuplicateSession = 213, AuthenticationRestrictionUnmet = 214,
    DatabaseDropPending = 215, ElectionInProgress = 216, IncompleteTransactionHistory = 217,
    UpdateOperationFailed = 218, FTDCPathNotSet = 219, FTDCPathAlreadySet = 220, IndexModified = 221,
    CloseChangeStream = 222, IllegalOpMsgFlag = 223, QueryFeatureNotAllowed = 224, TransactionTooOld = 225,
    AtomicityFailure = 226, CannotImplicitlyCreateCollection = 227, SessionTransferIncomplete = 228,
    MustDowngrade = 229, DNSHostNotFound = 230, DNSProtocolError = 231, MaxSubPipelineDepthExceeded = 232,
    TooManyDocumentSequences = 233, RetryChangeStream = 234, InternalErrorNotSupported = 235,
    ForTestingErrorExtraInfo = 236, CursorKilled = 237, NotImplemented = 238, SnapshotTooOld = 239,
    DNSRecordTypeMismatch = 240, ConversionFailure = 241, CannotCreateCollection = 242,
    IncompatibleWithUpgradedServer = 243, BrokenPromise = 245, SnapshotUnavailable = 246,
    ProducerConsumerQueueBatchTooLarge = 247, ProducerConsumerQueueEndClosed = 248,
    StaleDbVersion = 249, StaleChunkHistory = 250, NoSuchTransaction = 251, ReentrancyNotAllowed = 252,
    FreeMonHttpInFlight = 253, FreeMonHttpTemporaryFailure = 254, FreeMonHttpPermanentFailure = 255,
    TransactionCommitted = 256, TransactionTooLarge = 257, UnknownFeatureCompatibilityVersion = 258,
    KeyedExecutorRetry = 259, InvalidResumeToken = 260, TooManyLogicalSessions = 261,
    ExceededTimeLimit = 262, OperationNotSupportedInTransaction = 263, TooManyFilesOpen = 264,
    OrphanedRangeCleanUpFailed = 265, FailPointSetFailed = 266, PreparedTransactionInProgress = 267,
    CannotBackup = 268, DataModifiedByRepair = 269, RepairedReplicaSetNode = 270,
    JSInterpreterFailureWithStack = 271, MigrationConflict = 272,
    ProducerConsumerQueueProducerQueueDepthExceeded = 273, ProducerConsumerQueueConsumed = 274,
    ExchangePassthrough = 275, IndexBuildAborted = 276, AlarmAlreadyFulfilled = 277,
    UnsatisfiableCommitQuorum = 278, ClientDisconnect = 279, ChangeStreamFatalError = 280,
    TransactionCoordinatorSteppingDown = 281, TransactionCoordinatorReachedAbortDecision = 282,
    WouldChangeOwningShard = 283, ForTestingErrorExtraInfoWithExtraInfoInNamespace = 284,
    IndexBuildAlreadyInProgress = 285, ChangeStreamHistoryLost = 286,
    TransactionCoordinatorDeadlineTaskCanceled = 287, ChecksumMismatch = 288,
    WaitForMajorityServiceEarlierOpTimeAvailable = 289, TransactionExceededLifetimeLimitSeconds = 290,
    NoQueryExecutionPlans = 291, QueryExceededMemoryLimitNoDiskUseAllowed = 292,
    InvalidSeedList = 293, InvalidTopologyType = 294, InvalidHeartBeatFrequency = 295,
    TopologySetNameRequired = 296, HierarchicalAcquisitionLevelViolation = 297, InvalidServerType = 298,
    OCSPCertificateStatusRevoked = 299, RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist = 300,
    DataCorruptionDetected = 301, OCSPCertificateStatusUnknown = 302, SplitHorizonChange = 303,
    ShardInvalidatedForTargeting = 304, RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist = 307,
    CurrentConfigNotCommittedYet = 308, ExhaustCommandFinished = 309,
    PeriodicJobIsStopped = 310, TransactionCoordinatorCanceled = 311, OperationIsKilledAndDelisted = 312,
    ResumableRangeDeleterDisabled = 313, ObjectIsBusy = 314, TooStaleToSyncFromSource = 315,
    QueryTrialRunCompleted = 316, ConnectionPoolExpired = 317, ForTestingOptionalErrorExtraInfo = 318,
    MovePrimaryInProgress = 319, TenantMigrationConflict = 320, TenantMigrationCommitted = 321,
    APIVersionError = 322, APIStrictError = 323, APIDeprecationError = 324,
    TenantMigrationAborted = 325, OplogQueryMinTsMissing = 326, NoSuchTenantMigration = 327,
    TenantMigrationAccessBlockerShuttingDown = 328, TenantMigrationInProgress = 329,
    SkipCommandExecution = 330, FailedToRunWithReplyBuilder = 331, CannotDowngrade = 332,
    ServiceExecutorInShutdown = 333, MechanismUnavailable = 334, TenantMigrationForgotten = 335,
    TimeseriesBucketCleared = 336, AuthenticationAbandoned = 337, ReshardCollectionInProgress = 338,
    NoSuchReshardCollection = 339, ReshardCollectionCommitted = 340, ReshardCollectionAborted = 341,
    ReshardingCriticalSectionTimeout = 342, ShardCannotRefreshDueToLocksHeld = 343, AuditingNotEnabled = 344,
    RuntimeAuditConfigurationNotEnabled = 345, ChangeStreamInvalidated = 346, APIMismatchError = 347,
    ChunkMetadataInconsistency = 348, RWConcernDefaultsInconsistency = 349, CollectionUUIDMismatch = 361,
    TransactionTooLargeForCache = 388,
    ReauthenticationRequired = 391, QueryRejectedBySettings = 411, IngressRequestRateLimitExceeded = 462, BSONObjectTooLarge = 10334, DuplicateKey = 11000,
    InterruptedAtShutdown = 11600, Interrupted = 11601, InterruptedDueToReplStateChange = 11602,
    BackgroundOperationInProgressForDatabase = 12586, BackgroundOperationInProgressForNamespace = 12587,
    MergeStageNoMatchingDocument = 13113, DatabaseDifferCase = 13297, StaleConfig = 13388,
    NotWritablePrimary = 10107, NotPrimaryNoSecondaryOk = 13435, NotPrimaryOrSecondary = 13436,
    OutOfDiskSpace = 14031, ClientMarkedKilled = 46841,
}

impl ErrorCode {
    /// A code that has no name of its own (`LocationN`), or any code by number.
    pub const fn location(code: i32) -> Self {
        Self(code)
    }

    /// The number, `code` in replies.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The name, `codeName` in replies.
    pub fn name(self) -> Str {
        match named(self.0) {
            Some(name) => Str::new_static(name),
            None => smol_str::format_smolstr!("Location{}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Bytes that a message has at most: it can name values of clients, and what scripts throw.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A message, cut off where it is longer than [`MESSAGE_BYTES_MAX`].
fn bounded(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or(0));
        message.shrink_to_fit();
    }
    message
}

/// An error as a client sees it: code, message, and the extra fields some codes carry
/// (`keyPattern`/`keyValue` of 11000, `errInfo` of 121, ...).
#[derive(Clone, Debug)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    code: ErrorCode,
    message: String,
    extra: Option<Document>,
    labels: Vec<&'static str>,
}

impl Error {
    /// An error without extra fields; of a long message the first [`MESSAGE_BYTES_MAX`] bytes.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            code,
            message: bounded(message.into()),
            extra: None,
            labels: Vec::new(),
        }))
    }

    /// An error with an unnamed (`LocationN`) code.
    pub fn location(code: i32, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::location(code), message)
    }

    /// `BadValue` (2).
    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadValue, message)
    }

    /// `TypeMismatch` (14).
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::TypeMismatch, message)
    }

    /// `FailedToParse` (9).
    pub fn failed_to_parse(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::FailedToParse, message)
    }

    /// Adds fields that the reply (or write error) carries beside `code` and `errmsg`.
    #[must_use]
    pub fn with_extra(mut self, extra: Document) -> Self {
        self.0.extra = Some(extra);
        self
    }

    /// Adds an error label such as `TransientTransactionError`.
    #[must_use]
    pub fn with_label(mut self, label: &'static str) -> Self {
        if !self.0.labels.contains(&label) {
            self.0.labels.push(label);
        }
        self
    }

    /// Puts `context` and `: ` before the message; code and fields stay.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = bounded(format!("{context}: {}", self.0.message));
        self
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The message, `errmsg` in replies.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Extra reply fields.
    pub fn extra(&self) -> Option<&Document> {
        self.0.extra.as_ref()
    }

    /// Error labels, without duplicates.
    pub fn labels(&self) -> &[&'static str] {
        &self.0.labels
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for Error {}

/// `bail!(CODE, "format", args...)`: returns early with an [`Error`]. `CODE` is an [`ErrorCode`] name or a number.
#[macro_export]
macro_rules! bail {
    ($code:literal, $($arg:tt)*) => {
        return Err($crate::Error::location($code, format!($($arg)*)))
    };
    ($code:ident, $($arg:tt)*) => {
        return Err($crate::Error::new($crate::ErrorCode::$code, format!($($arg)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(ErrorCode::DuplicateKey.number(), 11000);
        assert_eq!(ErrorCode::DuplicateKey.name(), "DuplicateKey");
        assert_eq!(ErrorCode::location(40415).name(), "Location40415");
        assert_eq!(ErrorCode::location(14), ErrorCode::TypeMismatch);
    }

    #[test]
    fn messages_are_bounded_and_cut_between_characters() {
        let long = Error::bad_value("\u{e9}".repeat(MESSAGE_BYTES_MAX));
        assert_eq!(long.message().len(), MESSAGE_BYTES_MAX);
        let longer = long.context("x");
        assert_eq!(longer.message().len(), MESSAGE_BYTES_MAX - 1);
        assert!(longer.message().ends_with('\u{e9}'));
    }
}
