//! Server parameters: what `getParameter` answers and `setParameter` changes.
//!
//! One table. A parameter is in it because something reads it, or because clients ask for it and its
//! value is a fact of this server; those are read-only. Numbers and switches are atomics, so that reading
//! one costs a load.

use crate::login::mechanism::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism, SHA1_ITERATIONS, SHA256_ITERATIONS};
use crate::observe::log::Log;
use nestor_model::number::Num;
use nestor_model::{Result, Str, Value, ValueRef, bail, doc};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// When a parameter may be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetAt {
    /// By command and at the start.
    RuntimeAndStartup,
    /// Only by command.
    Runtime,
    /// Only at the start.
    Startup,
    /// Never: a fact.
    Never,
}

impl SetAt {
    /// By `setParameter`.
    pub fn runtime(self) -> bool {
        matches!(self, Self::RuntimeAndStartup | Self::Runtime)
    }
    /// By `--setParameter`.
    pub fn startup(self) -> bool {
        matches!(self, Self::RuntimeAndStartup | Self::Startup)
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Switch(bool),
    /// Default, smallest and largest value.
    Number(i64, i64, i64),
    /// Default and range; kept as the bits of a double.
    Real(f64, Range),
    /// One of these, the first as default; kept as its place.
    Word(&'static [&'static str]),
    Computed,
}

#[derive(Clone, Copy, Debug)]
enum Range {
    AtLeast(f64),
    Above(f64),
    Between(f64, f64),
}

macro_rules! parameters {
    ($($(#[$doc:meta])* $variant:ident $name:literal $set_at:ident $kind:expr;)*) => {
        /// A parameter.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Param { $($(#[$doc])* $variant,)* }
        const TABLE: &[(Param, &str, SetAt, Kind)] = &[
            $((Param::$variant, $name, SetAt::$set_at, $kind),)*
        ];
    };
}

parameters! {
    /// Clients may declare a version 2 of the API, which exists for tests of MongoDB alone: not here.
    AcceptApiVersion2 "acceptApiVersion2" Never Kind::Switch(false);
    /// Milliseconds that whoever fails to log in waits for the answer.
    AuthFailedDelayMillis "authFailedDelayMs" RuntimeAndStartup Kind::Number(200, 0, 5_000);
    /// Arrays of mechanisms clients may log in with.
    AuthenticationMechanisms "authenticationMechanisms" Never Kind::Computed;
    /// Version of the form users are stored in.
    AuthSchemaVersion "authSchemaVersion" Never Kind::Number(5, 5, 5);
    /// Blocking stages may spill to disk unless a command says otherwise.
    AllowDiskUseByDefault "allowDiskUseByDefault" RuntimeAndStartup Kind::Switch(true);
    /// A label that management tools leave here, reported by `hello`.
    AutomationServiceDescriptor "automationServiceDescriptor" RuntimeAndStartup Kind::Computed;
    /// A client on this machine may make the first user.
    LocalhostAuthBypass "enableLocalhostAuthBypass" Startup Kind::Switch(true);
    /// Rounds of SCRAM-SHA-1 for new passwords.
    ScramIterationCount "scramIterationCount" RuntimeAndStartup
        Kind::Number(SHA1_ITERATIONS as i64, ITERATIONS_MIN as i64, ITERATIONS_MAX as i64);
    /// Rounds of SCRAM-SHA-256 for new passwords.
    ScramSha256IterationCount "scramSHA256IterationCount" RuntimeAndStartup
        Kind::Number(SHA256_ITERATIONS as i64, ITERATIONS_MIN as i64, ITERATIONS_MAX as i64);
    /// Cursors nobody asks for are closed after this many milliseconds.
    CursorTimeoutMillis "cursorTimeoutMillis" RuntimeAndStartup Kind::Number(600_000, 1, i64::MAX);
    /// Fail points may be set.
    EnableTestCommands "enableTestCommands" Startup Kind::Switch(false);
    /// `featureCompatibilityVersion`, set by a command of its own.
    FeatureCompatibilityVersion "featureCompatibilityVersion" Never Kind::Computed;
    /// Bytes that all operations, messages that have not arrived whole and replies that nobody reads may hold together; 0 for a quarter
    /// of the memory that the process may use.
    OperationMemoryBytes "totalOperationMemoryBytes" RuntimeAndStartup Kind::Number(0, 0, i64::MAX);
    /// Memory of one `$group` before it spills, in bytes.
    GroupMemoryBytes "internalDocumentSourceGroupMaxMemoryBytes" Never
        Kind::Number(104_857_600, 1, i64::MAX);
    /// Memory of one blocking sort before it spills, in bytes.
    SortMemoryBytes "internalQueryMaxBlockingSortMemoryUsageBytes" RuntimeAndStartup
        Kind::Number(104_857_600, 0, i64::MAX);
    /// Memory for keys of one index build before they spill, in megabytes.
    IndexBuildMemoryMegabytes "maxIndexBuildMemoryUsageMegabytes" RuntimeAndStartup
        Kind::Number(200, 50, 1 << 20);
    /// Index builds of filled collections that run at one time; others wait.
    IndexBuildsMax "maxNumActiveUserIndexBuilds" RuntimeAndStartup Kind::Number(3, 0, i64::MAX);
    /// Entries of the plan cache of one collection.
    PlanCacheEntriesMax "internalQueryCacheMaxEntriesPerCollection" RuntimeAndStartup
        Kind::Number(5_000, 0, i32::MAX as i64);
    /// A cached plan is given up when it takes so many times its works.
    PlanCacheEvictionRatio "internalQueryCacheEvictionRatio" RuntimeAndStartup
        Kind::Real(10.0, Range::AtLeast(0.0));
    /// By what the works of an inactive entry of the plan cache grow.
    PlanCacheWorksGrowth "internalQueryCacheWorksGrowthCoefficient" RuntimeAndStartup
        Kind::Real(2.0, Range::Above(1.0));
    /// Queries that `$queryStats` records in a second besides those that take long: none for 0, all for -1.
    QueryStatsRate "internalQueryStatsRateLimit" RuntimeAndStartup Kind::Number(100, -1, i32::MAX as i64);
    /// Units of work of a plan on trial, as a share of the documents.
    PlanTrialCollFraction "internalQueryPlanEvaluationCollFraction" RuntimeAndStartup
        Kind::Real(0.3, Range::Between(0.0, 1.0));
    /// Rows that end a trial of plans.
    PlanTrialResultsMax "internalQueryPlanEvaluationMaxResults" RuntimeAndStartup
        Kind::Number(101, 0, i32::MAX as i64);
    /// Units of work of a plan on trial at least.
    PlanTrialWorks "internalQueryPlanEvaluationWorks" RuntimeAndStartup
        Kind::Number(10_000, 1, i32::MAX as i64);
    /// Cluster times are signed with keys that change this often; there are no signatures yet.
    KeysRotationIntervalSec "KeysRotationIntervalSec" Startup Kind::Number(7_776_000, 1, i64::MAX);
    /// Sessions end when unused for this many minutes.
    SessionTimeoutMinutes "localLogicalSessionTimeoutMinutes" Never Kind::Number(30, 1, i64::MAX);
    /// Debug levels by component of the log.
    LogComponentVerbosity "logComponentVerbosity" RuntimeAndStartup Kind::Computed;
    /// Debug level of the log.
    LogLevel "logLevel" RuntimeAndStartup Kind::Computed;
    /// Commands wait this long for locks within a transaction, in milliseconds.
    TransactionLockMillis "maxTransactionLockRequestTimeoutMillis" RuntimeAndStartup
        Kind::Number(5, -1, i64::MAX);
    /// How the number of long operations that run at a time is found, where it is not set.
    TicketAlgorithm "storageEngineConcurrencyAdjustmentAlgorithm" RuntimeAndStartup
        Kind::Word(&["throughputProbing", "fixedConcurrentTransactions"]);
    /// Milliseconds for which each number is tried.
    TicketIntervalMillis "storageEngineConcurrencyAdjustmentIntervalMillis" RuntimeAndStartup
        Kind::Number(100, 1, 60_000);
    /// How many long operations that read run at a time; 0 for as many as the algorithm finds.
    ReadTickets "storageEngineConcurrentReadTransactions" RuntimeAndStartup Kind::Number(0, 0, 1 << 15);
    /// How many long operations that write run at a time; 0 for as many as the algorithm finds.
    WriteTickets "storageEngineConcurrentWriteTransactions" RuntimeAndStartup Kind::Number(0, 0, 1 << 15);
    /// How many seconds back snapshot reads may ask for any time.
    SnapshotHistorySeconds "minSnapshotHistoryWindowInSeconds" RuntimeAndStartup
        Kind::Number(300, 0, i32::MAX as i64);
    /// Whether reads use columns: `auto` where that costs less, `on` wherever columns have what is read, `off` never. SQL has a setting of its own.
    Columns "nestorColumns" RuntimeAndStartup Kind::Word(&["auto", "on", "off"]);
    /// Seconds between entries that keep the oplog moving: this server writes none.
    PeriodicNoopIntervalSecs "periodicNoopIntervalSecs" Never Kind::Number(10, 10, 10);
    /// Connections and disconnections are not logged.
    Quiet "quiet" RuntimeAndStartup Kind::Switch(false);
    /// Commands that were allowed are audited too.
    AuditAuthorizationSuccess "auditAuthorizationSuccess" RuntimeAndStartup Kind::Switch(false);
    /// Log lines say nothing of what clients store or ask for.
    RedactClientLogData "redactClientLogData" RuntimeAndStartup Kind::Switch(false);
    /// Commands have to name the API version they rely on.
    RequireApiVersion "requireApiVersion" RuntimeAndStartup Kind::Switch(false);
    /// Which nodes a router keeps connections to: there is no router.
    ReplicaSetMatching "ShardingTaskExecutorPoolReplicaSetMatching" Never Kind::Computed;
    /// Transactions end after this many seconds.
    TransactionLifetimeSeconds "transactionLifetimeLimitSeconds" RuntimeAndStartup
        Kind::Number(60, 1, i64::MAX);
    /// Expired documents are deleted.
    TtlMonitorEnabled "ttlMonitorEnabled" RuntimeAndStartup Kind::Switch(true);
    /// Seconds between two deletions of expired documents.
    TtlMonitorSleepSecs "ttlMonitorSleepSecs" RuntimeAndStartup Kind::Number(60, 1, i32::MAX as i64);
}

/// The values.
#[derive(Debug)]
pub struct Parameters {
    numbers: Vec<AtomicI64>,
    automation: Mutex<Str>,
    feature_version: Mutex<Str>,
    /// Counts changes, so that readers can keep what they derive from values.
    changes: AtomicU64,
}

impl Default for Parameters {
    fn default() -> Self {
        let start = |kind: &Kind| match kind {
            Kind::Switch(on) => i64::from(*on),
            Kind::Number(default, ..) => *default,
            Kind::Real(default, _) => default.to_bits() as i64,
            Kind::Word(_) | Kind::Computed => 0,
        };
        Self {
            numbers: TABLE.iter().map(|(.., kind)| AtomicI64::new(start(kind))).collect(),
            automation: Mutex::default(),
            feature_version: Mutex::new(FEATURE_VERSIONS[0].into()),
            changes: AtomicU64::new(0),
        }
    }
}

/// Values `featureCompatibilityVersion` may have; the first is the default.
pub const FEATURE_VERSIONS: [&str; 2] = ["8.0", "8.2"];

/// Whether reads use columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnsUsed {
    /// Where that costs less.
    Auto,
    /// Wherever columns have what is read.
    On,
    /// Never.
    Off,
}

impl Parameters {
    /// How often passwords that are set now are hashed for a mechanism.
    pub fn iterations(&self, mechanism: Mechanism) -> u32 {
        let asked = self.number(match mechanism {
            Mechanism::ScramSha1 => Param::ScramIterationCount,
            Mechanism::ScramSha256 => Param::ScramSha256IterationCount,
        });
        u32::try_from(asked).unwrap_or(mechanism.default_iterations())
    }

    /// The value of a number, or 1 and 0 of a switch.
    pub fn number(&self, parameter: Param) -> i64 {
        self.numbers[parameter as usize].load(Relaxed)
    }

    /// The value of a real number.
    pub fn real(&self, parameter: Param) -> f64 {
        f64::from_bits(self.number(parameter) as u64)
    }

    /// The value of a switch.
    pub fn is_on(&self, parameter: Param) -> bool {
        self.number(parameter) != 0
    }

    /// Sets a number or switch from within, whatever its limits.
    pub fn put(&self, parameter: Param, value: i64) {
        self.numbers[parameter as usize].store(value, Relaxed);
        self.changes.fetch_add(1, Relaxed);
    }

    /// Grows with every change.
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// `featureCompatibilityVersion`.
    pub fn feature_version(&self) -> Str {
        crate::lock(&self.feature_version).clone()
    }

    /// Whether the number of turns of long operations is not looked for.
    pub fn are_tickets_fixed(&self) -> bool {
        self.number(Param::TicketAlgorithm) == 1
    }

    /// Whether reads use columns.
    pub fn columns(&self) -> ColumnsUsed {
        match self.number(Param::Columns) {
            1 => ColumnsUsed::On,
            2 => ColumnsUsed::Off,
            _ => ColumnsUsed::Auto,
        }
    }

    /// Sets `featureCompatibilityVersion`.
    pub fn set_feature_version(&self, version: &str) {
        *crate::lock(&self.feature_version) = version.into();
    }

    /// A value as `getParameter` answers it.
    pub fn value(&self, parameter: Param, log: &Log) -> Value {
        match (parameter, TABLE[parameter as usize].3) {
            (_, Kind::Switch(_)) => self.is_on(parameter).into(),
            (_, Kind::Number(..)) => {
                let number = self.number(parameter);
                i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
            }
            (_, Kind::Real(..)) => self.real(parameter).into(),
            (_, Kind::Word(words)) => usize::try_from(self.number(parameter))
                .ok()
                .and_then(|place| words.get(place))
                .map_or(Value::Null, |word| Value::from(*word)),
            (Param::LogLevel, _) => i32::from(log.verbosity()).into(),
            (Param::LogComponentVerbosity, _) => log.component_verbosity().into(),
            (Param::AutomationServiceDescriptor, _) => crate::lock(&self.automation).clone().into(),
            (Param::FeatureCompatibilityVersion, _) => doc! { "version": self.feature_version() }.into(),
            (Param::AuthenticationMechanisms, _) => {
                let names = Mechanism::ALL.map(|mechanism| Value::from(mechanism.name()));
                names.to_vec().into()
            }
            (Param::ReplicaSetMatching, _) => "disabled".into(),
            _ => Value::Null,
        }
    }

    /// Sets a value as `setParameter` does. Errors leave the old one.
    pub fn set(&self, parameter: Param, value: ValueRef<'_>, log: &Log) -> Result<()> {
        let (_, name, _, kind) = TABLE[parameter as usize];
        match (parameter, kind) {
            (_, Kind::Switch(_)) => self.put(parameter, i64::from(value.truthy())),
            (_, Kind::Number(_, min, max)) => self.put(parameter, whole(name, value, min, max)?),
            (_, Kind::Real(_, range)) => self.put(parameter, real(name, value, range)?.to_bits() as i64),
            (Param::LogLevel, _) => log.set_verbosity(whole(name, value, 0, 5)? as u8),
            (Param::LogComponentVerbosity, _) => match value {
                ValueRef::Document(doc) => log.set_component_verbosity(doc)?,
                other => bail!(
                    TypeMismatch,
                    "log component verbosity is not a BSON object: {}",
                    other.bson_type().alias()
                ),
            },
            (_, Kind::Word(words)) => {
                let word = value.as_str().unwrap_or_default();
                let Some(place) = words.iter().position(|known| *known == word) else {
                    bail!(
                        BadValue,
                        "Invalid value for parameter {name}: it has to be one of {words:?}"
                    );
                };
                self.put(parameter, place as i64);
            }
            (Param::AutomationServiceDescriptor, _) => match value {
                ValueRef::String(text) if text.len() <= 64 => *crate::lock(&self.automation) = text.into(),
                ValueRef::String(_) => bail!(Overflow, "Value for parameter {name} must be no more than 64 bytes"),
                _ => bail!(TypeMismatch, "Value for parameter {name} must be of type 'string'"),
            },
            _ => bail!(IllegalOperation, "{name} cannot be set"),
        }
        self.changes.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Sets a value as `--setParameter name=text` does.
    pub fn set_at_start(&self, name: &str, text: &str, log: &Log) -> Result<()> {
        let Some(parameter) = find(name) else {
            bail!(BadValue, "Unknown --setParameter '{name}'");
        };
        if !set_at(parameter).startup() {
            bail!(BadValue, "Cannot use --setParameter to set '{name}' at startup");
        }
        let parsed = match (text, text.parse::<i64>(), text.parse::<f64>()) {
            ("true", ..) => Value::Bool(true),
            ("false", ..) => Value::Bool(false),
            (_, Ok(number), _) => number.into(),
            (_, _, Ok(number)) => number.into(),
            _ => nestor_model::extjson::parse(text).unwrap_or_else(|_| text.into()),
        };
        if matches!(TABLE[parameter as usize].3, Kind::Switch(_)) && matches!(parsed, Value::String(_)) {
            bail!(
                BadValue,
                "Bad value for parameter '{name}': {text:?} is neither true nor false"
            );
        }
        self.set(parameter, parsed.as_ref(), log)
    }
}

/// The parameter of that name.
pub fn find(name: &str) -> Option<Param> {
    TABLE
        .iter()
        .find(|(_, n, ..)| *n == name)
        .map(|(parameter, ..)| *parameter)
}

/// All parameters with their names.
pub fn all() -> impl Iterator<Item = (Param, &'static str)> {
    TABLE.iter().map(|(parameter, name, ..)| (*parameter, *name))
}

/// When a parameter may be set.
pub fn set_at(parameter: Param) -> SetAt {
    TABLE[parameter as usize].2
}

fn whole(name: &str, value: ValueRef<'_>, min: i64, max: i64) -> Result<i64> {
    let number = match value {
        ValueRef::Bool(v) => i64::from(v),
        ValueRef::Double(v) if v.is_nan() => bail!(BadValue, "Invalid value for parameter {name}: NaN"),
        other => match nestor_model::number::safe_i64(other) {
            Some(number) => number,
            None => bail!(
                BadValue,
                "Failed to set parameter {name}: unable to coerce value to correct type"
            ),
        },
    };
    if number < min {
        bail!(
            BadValue,
            "Invalid value for parameter {name}: {number} is not greater than or equal to {min}"
        );
    }
    if number > max {
        bail!(
            BadValue,
            "Invalid value for parameter {name}: {number} is not less than or equal to {max}"
        );
    }
    Ok(number)
}

fn real(name: &str, value: ValueRef<'_>, range: Range) -> Result<f64> {
    let number = match (value, Num::from_ref(value)) {
        (ValueRef::Bool(v), _) => f64::from(u8::from(v)),
        (_, Some(number)) => number.to_f64(),
        _ => bail!(
            BadValue,
            "Failed to set parameter {name}: unable to coerce value to correct type"
        ),
    };
    let refused = match range {
        _ if number.is_nan() => "a number",
        Range::AtLeast(min) | Range::Between(min, _) if number < min => "greater than or equal to its minimum",
        Range::Above(min) if number <= min => "greater than its lower bound",
        Range::Between(_, max) if number > max => "less than or equal to its maximum",
        _ => return Ok(number),
    };
    bail!(
        BadValue,
        "Invalid value for parameter {name}: {number} is not {refused}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_its_enum() {
        for (i, (parameter, name, ..)) in TABLE.iter().enumerate() {
            assert_eq!(*parameter as usize, i, "{name}");
            assert_eq!(find(name), Some(*parameter));
        }
    }

    #[test]
    fn values_are_coerced_or_refused() {
        let log = Log::default();
        let parameters = Parameters::default();
        let cases: &[(&str, Value, Result<&str, i32>)] = &[
            ("logLevel", 3.into(), Ok("3")),
            ("logLevel", true.into(), Ok("1")),
            ("logLevel", "x".into(), Err(2)),
            ("logLevel", (-1).into(), Err(2)),
            ("quiet", "true".into(), Ok("true")),
            ("quiet", 0.0.into(), Ok("false")),
            ("cursorTimeoutMillis", 5i64.into(), Ok("5")),
            ("cursorTimeoutMillis", 0.into(), Err(2)),
            ("authSchemaVersion", 4.into(), Err(2)),
            ("internalQueryPlanEvaluationWorks", 0.into(), Err(2)),
            ("internalQueryPlanEvaluationMaxResults", 0.into(), Ok("0")),
            ("internalQueryPlanEvaluationCollFraction", 1.into(), Ok("1.0")),
            ("internalQueryPlanEvaluationCollFraction", 1.5.into(), Err(2)),
            ("internalQueryPlanEvaluationCollFraction", f64::NAN.into(), Err(2)),
            ("internalQueryCacheEvictionRatio", 0.0.into(), Ok("0.0")),
            ("internalQueryCacheEvictionRatio", (-0.5).into(), Err(2)),
            ("internalQueryCacheWorksGrowthCoefficient", 1.0.into(), Err(2)),
            ("internalQueryCacheWorksGrowthCoefficient", "x".into(), Err(2)),
            ("automationServiceDescriptor", "label".into(), Ok("\"label\"")),
            (
                "storageEngineConcurrencyAdjustmentAlgorithm",
                "fixedConcurrentTransactions".into(),
                Ok("\"fixedConcurrentTransactions\""),
            ),
            ("storageEngineConcurrencyAdjustmentAlgorithm", "magic".into(), Err(2)),
            ("storageEngineConcurrencyAdjustmentAlgorithm", 1.into(), Err(2)),
            ("nestorColumns", "on".into(), Ok("\"on\"")),
            ("nestorColumns", "On".into(), Err(2)),
        ];
        for (name, value, expected) in cases {
            let parameter = find(name).unwrap();
            let got = parameters
                .set(parameter, value.as_ref(), &log)
                .map(|()| format!("{:?}", parameters.value(parameter, &log)))
                .map_err(|e| e.code().number());
            assert_eq!(got, expected.map(str::to_owned), "{name} = {value:?}");
        }
    }

    #[test]
    fn command_line_values_are_text() {
        let log = Log::default();
        let parameters = Parameters::default();
        parameters.set_at_start("enableTestCommands", "1", &log).unwrap();
        assert!(parameters.is_on(Param::EnableTestCommands));
        parameters
            .set_at_start("internalQueryCacheEvictionRatio", "2.5", &log)
            .unwrap();
        assert!((parameters.real(Param::PlanCacheEvictionRatio) - 2.5).abs() < f64::EPSILON);
        parameters.set_at_start("quiet", "true", &log).unwrap();
        assert!(parameters.is_on(Param::Quiet));
        for (name, text) in [("noSuchThing", "1"), ("authSchemaVersion", "5"), ("quiet", "perhaps")] {
            assert!(parameters.set_at_start(name, text, &log).is_err(), "{name}={text}");
        }
    }
}
