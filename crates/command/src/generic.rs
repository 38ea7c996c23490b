//! Arguments that every command takes, read once per command.

use crate::api_strict;
use crate::args::{Arg, At, unknown_field, wrong_type};
use crate::collection_at::CollectionAt;
use crate::facts::{Facts, Flags};
use crate::generic_names::generic_index;
use crate::{read_concern, write_concern};
use nestor_database::concern::read::Level;
use nestor_database::session_id::{Lsid, Owner};
use nestor_database::terms::Terms;
use nestor_database::uuid::Uuid;
use nestor_model::namespace::{ADMIN, CONFIG, LOCAL};
use nestor_model::number::safe_i64;
use nestor_model::value::DocRef;
use nestor_model::{Error, ErrorCode, RawDoc, Result, Timestamp, ValueRef, bail};

/// The arguments.
#[derive(Clone, Debug, Default)]
pub struct Generic<'a> {
    /// `$db`, `lsid`, `txnNumber`, `startTransaction`, `autocommit`, `readConcern`, `writeConcern` and `comment`: what is the
    /// statement's.
    pub terms: Terms<'a>,
    /// A `writeConcern` was given, be it an empty one.
    pub has_write_concern: bool,
    /// `maxTimeMS`; 0 is no limit, as is none, but `getMore` tells them apart.
    pub max_time_ms: Option<u32>,
    /// `$clusterTime.clusterTime`.
    pub cluster_time: Option<Timestamp>,
    /// `apiVersion: "1"` was given.
    pub api_version: bool,
    /// `$readPreference` is content with a secondary.
    pub secondary_ok: bool,
}

impl<'a> Generic<'a> {
    /// Reads the generic arguments of a command, and checks them against what the command takes.
    ///
    /// Sessions belong to `owner`.
    pub fn parse(body: RawDoc<'a>, spec: &Facts, owner: Owner) -> Result<Self> {
        let mut out = Self::default();
        out.terms.ends_transaction = spec.flags.has(Flags::ENDS_TXN);
        let mut seen = 0u64;
        let mut api = Api::default();
        let mut autocommit = None;
        for (i, (name, value)) in body.iter().enumerate() {
            let (Some(index), true) = (generic_index(name), i > 0) else {
                continue;
            };
            let at = At {
                path: spec.name,
                field: name,
            };
            if seen & (1 << index) != 0 {
                bail!(40413, "BSON field '{at}' is a duplicate field");
            }
            seen |= 1 << index;
            match name {
                "$db" => out.terms.db = <&str as Arg>::parse(value, at)?.unwrap_or_default(),
                "lsid" => {
                    let given = GivenSession::read(value, at)?;
                    out.terms.lsid = given.map(|given| given.of(owner, false)).transpose()?;
                }
                "txnNumber" => out.terms.txn_number = txn_number(value, at)?,
                "startTransaction" => {
                    out.terms.start_transaction = strict_bool(value, at)?.unwrap_or(false);
                    if !out.terms.start_transaction {
                        bail!(InvalidOptions, "startTransaction can only be true if specified");
                    }
                }
                "autocommit" => autocommit = strict_bool(value, at)?,
                "readConcern" => out.terms.read_concern = read_concern::parse(value, at)?,
                "writeConcern" => {
                    out.terms.write_concern = write_concern::parse(value, at)?;
                    out.has_write_concern = !value.is_nullish();
                }
                "maxTimeMS" | "maxTimeMSOpOnly" => out.max_time_ms = max_time_ms(value, name)?,
                "comment" => out.terms.comment = Some(value),
                "$clusterTime" => out.cluster_time = cluster_time(value)?,
                "$readPreference" => out.secondary_ok = read_preference(value, at)?,
                "apiVersion" => api.version = <&str as Arg>::parse(value, at)?,
                "apiStrict" => api.strict = strict_bool(value, at)?,
                "apiDeprecationErrors" => api.deprecation_errors = strict_bool(value, at)?,
                // Routers send them to shards, which refuse what is not meant for them: what they ask for is not checked here.
                "shardVersion" | "databaseVersion" if !value.is_nullish() => bail!(
                    NoShardingEnabled,
                    "Cannot accept sharding commands if not started with --shardsvr"
                ),
                "help" if value.truthy() => bail!(CommandNotSupported, "help is not supported"),
                _ => {}
            }
        }
        api.check(body, spec)?;
        out.api_version = api.version.is_some();
        out.terms.strict_api = api.strict == Some(true);
        out.check_transaction(autocommit, spec)?;
        out.check_concerns(spec)?;
        Ok(out)
    }

    fn check_transaction(&mut self, autocommit: Option<bool>, spec: &Facts) -> Result<()> {
        if self.terms.txn_number.is_some() && self.terms.lsid.is_none() {
            bail!(
                InvalidOptions,
                "Transaction number requires a session ID to also be specified"
            );
        }
        if self.terms.txn_number.is_some_and(|n| n < 0) {
            bail!(InvalidOptions, "Transaction number cannot be negative");
        }
        match autocommit {
            None if self.terms.start_transaction => {
                bail!(
                    InvalidOptions,
                    "'startTransaction' requires 'autocommit' to also be specified"
                )
            }
            None => {}
            Some(_) if self.terms.txn_number.is_none() => {
                bail!(
                    InvalidOptions,
                    "'autocommit' field requires a transaction number to also be specified"
                )
            }
            Some(true) => bail!(InvalidOptions, "autocommit can only be false if specified"),
            Some(false) => self.terms.in_transaction = true,
        }
        if self.terms.in_transaction && !spec.flags.has(Flags::TXN) {
            bail!(
                OperationNotSupportedInTransaction,
                "Cannot run '{}' in a multi-document transaction.",
                spec.name
            );
        }
        // Commands of `admin` that name no collection, `commitTransaction` and `bulkWrite` among them, are about others.
        let is_of_admin = self.terms.db == ADMIN && matches!(spec.collection, CollectionAt::First);
        if self.terms.in_transaction && (is_of_admin || matches!(self.terms.db, CONFIG | LOCAL)) {
            bail!(
                OperationNotSupportedInTransaction,
                "Cannot run command against the '{}' database in a transaction.",
                self.terms.db
            );
        }
        if self.terms.in_transaction && !self.terms.start_transaction && !self.terms.read_concern.is_default() {
            bail!(
                InvalidOptions,
                "Only the first command in a transaction may specify a readConcern"
            );
        }
        self.check_level()?;
        if self.terms.in_transaction && self.terms.write_concern.is_some() && !spec.flags.has(Flags::ENDS_TXN) {
            bail!(
                InvalidOptions,
                "writeConcern is not allowed within a multi-statement transaction"
            );
        }
        if self.terms.txn_number.is_some() && !self.terms.in_transaction && !spec.flags.has(Flags::RETRYABLE) {
            bail!(
                50768,
                "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and {} is not a retryable write command.",
                spec.name
            );
        }
        Ok(())
    }

    /// Checks the level: some levels are for transactions only, others for everything else.
    fn check_level(&self) -> Result<()> {
        match self.terms.read_concern.level() {
            Level::Serializable if !self.terms.in_transaction => bail!(
                InvalidOptions,
                "readConcern level 'serializable' is for multi-document transactions only"
            ),
            Level::Available | Level::Linearizable if self.terms.in_transaction => bail!(
                InvalidOptions,
                "The readConcern level must be either 'local' (default), 'majority', 'snapshot' or 'serializable' in order to run in a transaction"
            ),
            _ => Ok(()),
        }
    }

    /// Refuses a read or write concern that the command does not take.
    pub fn check_concerns(&self, spec: &Facts) -> Result<()> {
        if self.has_write_concern && !spec.flags.has(Flags::WRITE_CONCERN) {
            bail!(InvalidOptions, "Command {} does not support writeConcern", spec.name);
        }
        let read_concern = &self.terms.read_concern;
        let is_taken = read_concern.is_local()
            || spec.flags.has(Flags::READ_CONCERN)
            || (self.terms.in_transaction && spec.flags.has(Flags::TXN_READ_CONCERN))
            || (read_concern.at_cluster_time.is_some() && spec.flags.has(Flags::SESSION_READ_CONCERN));
        if !is_taken {
            bail!(
                InvalidOptions,
                "Command {} does not support {{ readConcern: {{ level: \"{}\", provenance: \"clientSupplied\" }} }} :: caused by :: read concern not supported",
                spec.name,
                read_concern.level_name()
            );
        }
        Ok(())
    }
}

fn strict_bool(value: ValueRef<'_>, at: At<'_>) -> Result<Option<bool>> {
    Ok(crate::args::StrictBool::parse(value, at)?.map(|b| b.0))
}

fn txn_number(value: ValueRef<'_>, at: At<'_>) -> Result<Option<i64>> {
    Ok(crate::args::Long::parse(value, at)?.map(|n| n.0))
}

/// A session as a client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenSession {
    id: Uuid,
    owner: Option<Owner>,
}

impl GivenSession {
    /// Reads `{id: UUID}`, or `{id: UUID, uid: digest}`; null counts as absent.
    pub fn read(value: ValueRef<'_>, at: At<'_>) -> Result<Option<Self>> {
        let doc = match value {
            ValueRef::Document(DocRef::Raw(doc)) => doc,
            ValueRef::Null | ValueRef::Undefined => return Ok(None),
            other => return Err(wrong_type(at, other.bson_type(), "object")),
        };
        if let Some(id) = only_id(doc) {
            return Ok(Some(Self { id, owner: None }));
        }
        let (mut id, mut owner) = (None, None);
        let path = at.to_string();
        for (name, value) in doc.iter() {
            let at = At {
                path: &path,
                field: name,
            };
            match name {
                "id" if id.is_some() => bail!(40413, "BSON field '{at}' is a duplicate field"),
                "uid" if owner.is_some() => bail!(40413, "BSON field '{at}' is a duplicate field"),
                "id" => id = Uuid::parse(value, at)?,
                "uid" => owner = digest(value, at)?,
                "txnNumber" | "txnUUID" => bail!(InvalidOptions, "internal sessions are not supported"),
                other => return Err(unknown_field(&path, other)),
            }
        }
        match id {
            Some(id) => Ok(Some(Self { id, owner })),
            None => bail!(40414, "BSON field '{path}.id' is missing but a required field"),
        }
    }

    /// The session, which belongs to `owner` unless it was said to be another's.
    ///
    /// Error: 13 when it was, and `owner` may not speak of sessions of others.
    pub fn of(self, owner: Owner, may_name_others: bool) -> Result<Lsid> {
        let (id, given) = (self.id, self.owner.unwrap_or(owner));
        if given != owner && !may_name_others {
            bail!(Unauthorized, "Unauthorized to set user digest in LogicalSessionId");
        }
        Ok(Lsid { id, owner: given })
    }
}

/// The session of `{id: UUID}`, as all drivers send it: nothing in it can be wrong, so no path for an error is made.
fn only_id(doc: RawDoc<'_>) -> Option<Uuid> {
    let mut fields = doc.iter();
    match (fields.next()?, fields.next()) {
        (("id", ValueRef::Binary { subtype: 4, bytes }), None) => bytes.try_into().ok().map(Uuid),
        _ => None,
    }
}

/// Reads the digest of a session's owner: 32 bytes.
pub fn digest(value: ValueRef<'_>, at: At<'_>) -> Result<Option<Owner>> {
    match value {
        ValueRef::Binary { bytes, .. } => match bytes.try_into() {
            Ok(digest) => Ok(Some(Owner(digest))),
            Err(_) => bail!(
                UnsupportedFormat,
                "Unsupported SHA256Block buffer length: {}",
                bytes.len()
            ),
        },
        ValueRef::Null | ValueRef::Undefined => Ok(None),
        other => Err(wrong_type(at, other.bson_type(), "binData")),
    }
}

/// `maxTimeMS`: a whole number from 0 to the largest 32-bit integer; null is no limit.
pub fn max_time_ms(value: ValueRef<'_>, name: &str) -> Result<Option<u32>> {
    let number = match value {
        ValueRef::Null | ValueRef::Undefined => return Ok(None),
        ValueRef::Double(v) if v.fract() != 0.0 || !v.is_finite() => None,
        ValueRef::Decimal128(v) => v.to_i64_exact(),
        other => match safe_i64(other) {
            Some(v) => Some(v),
            None => return Err(wrong_type(name, other.bson_type(), crate::args::NUMBER_TYPES)),
        },
    };
    match number {
        None => bail!(FailedToParse, "{name} has non-integral value"),
        Some(v) if (0..=i64::from(i32::MAX)).contains(&v) => Ok(Some(v as u32)),
        Some(v) => bail!(BadValue, "{v} value for {name} is out of range [0, {}]", i32::MAX),
    }
}

fn cluster_time(value: ValueRef<'_>) -> Result<Option<Timestamp>> {
    let doc = match value {
        ValueRef::Document(doc) => doc,
        other => return Err(wrong_type("$clusterTime", other.bson_type(), "object")),
    };
    match doc.get("clusterTime") {
        Some(ValueRef::Timestamp(time)) => Ok(Some(time)),
        Some(other) => Err(wrong_type("$clusterTime.clusterTime", other.bson_type(), "timestamp")),
        None => Err(Error::new(
            ErrorCode::NoSuchKey,
            "Missing expected field \"clusterTime\"",
        )),
    }
}

/// Whether a secondary will do. Which member it is the driver has chosen.
fn read_preference(value: ValueRef<'_>, at: At<'_>) -> Result<bool> {
    let doc = match value {
        ValueRef::Document(doc) => doc,
        ValueRef::Null | ValueRef::Undefined => return Ok(false),
        other => return Err(wrong_type(at, other.bson_type(), "object")),
    };
    let mode = match doc.get("mode") {
        Some(ValueRef::String(mode)) => mode,
        Some(other) => return Err(wrong_type("$readPreference.mode", other.bson_type(), "string")),
        None => bail!(
            40414,
            "BSON field '$readPreference.mode' is missing but a required field"
        ),
    };
    match mode {
        "primary" | "primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest" => {}
        other => bail!(
            FailedToParse,
            "Enumeration value '{other}' for field '$readPreference.mode' is not a valid value."
        ),
    }
    if mode == "primary"
        && doc
            .get("tags")
            .is_some_and(|tags| tags.as_array().is_some_and(|a| !a.is_empty()))
    {
        bail!(BadValue, "Only empty tags are allowed with primary read preference");
    }
    Ok(mode != "primary")
}

#[derive(Default)]
struct Api<'a> {
    version: Option<&'a str>,
    strict: Option<bool>,
    deprecation_errors: Option<bool>,
}

impl Api<'_> {
    fn check(&self, body: RawDoc<'_>, spec: &Facts) -> Result<()> {
        let Some(version) = self.version else {
            if self.strict.is_some() || self.deprecation_errors.is_some() {
                bail!(
                    4886600,
                    "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion"
                );
            }
            return Ok(());
        };
        if version != "1" {
            bail!(APIVersionError, "API version must be \"1\"");
        }
        if self.strict == Some(true) {
            check_strict(body, spec)?;
        }
        Ok(())
    }
}

/// Refuses what is not in API version 1: the command, or a field of it.
pub fn check_strict(body: RawDoc<'_>, spec: &Facts) -> Result<()> {
    if !spec.flags.has(Flags::API_V1) {
        let name = body.iter().next().map_or(spec.name, |(name, _)| name);
        bail!(
            APIStrictError,
            "Provided apiStrict:true, but the command {name} is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api"
        );
    }
    api_strict::check_fields(spec, body)
}
