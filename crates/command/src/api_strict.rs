//! Fields and stages outside of API version 1, which a client that declares `apiStrict: true` may not use.
//!
//! Which commands and fields of commands are in it stands in the table of commands
//! ([`Flags::API_V1`](crate::facts::Flags::API_V1), [`Facts::outside_api`]).
//! Source: manual, "Stable API" and the sections of that name in "find", "create", "createIndexes", "aggregate".

use crate::args::RawArray;
use crate::facts::Facts;
use nestor_model::{RawDoc, Result, ValueRef, bail};
use nestor_planner::kinds;

/// Refuses a field of a command. Whether it is set or given its default makes no difference.
pub fn check_fields(facts: &Facts, body: RawDoc<'_>) -> Result<()> {
    for field in facts.outside_api {
        // The first field is the command itself.
        if body.iter().skip(1).any(|(name, _)| name == *field) {
            bail!(
                APIStrictError,
                "BSON field '{}.{field}' is not allowed with apiStrict:true.",
                facts.name
            );
        }
    }
    Ok(())
}

/// Refuses options and kinds of an index that `createIndexes` is asked for.
pub fn check_index(spec: RawDoc<'_>) -> Result<()> {
    for option in ["background", "bucketSize", "sparse", "storageEngine"] {
        if spec.get(option).is_some() {
            bail!(
                APIStrictError,
                "The index option '{option}' is not allowed with apiStrict:true."
            );
        }
    }
    let Some(ValueRef::Document(key)) = spec.get("key") else {
        return Ok(());
    };
    for (_, kind) in key.iter() {
        if let Some(kind) = kind.as_str().filter(|kind| kinds::is_outside_api(kind)) {
            bail!(
                APIStrictError,
                "Indexes of type '{kind}' are not allowed with apiStrict:true."
            );
        }
    }
    Ok(())
}

/// Refuses stages of a pipeline.
pub fn check_pipeline(pipeline: RawArray<'_>) -> Result<()> {
    for stage in pipeline.iter() {
        let ValueRef::Document(stage) = stage else { continue };
        let Some((name, value)) = stage.iter().next() else {
            continue;
        };
        let is_outside = match name {
            "$currentOp" | "$indexStats" | "$listLocalSessions" | "$listSessions" | "$planCacheStats" | "$search"
            | "$sql" | "$searchMeta" | "$vectorSearch" => true,
            "$collStats" => match value {
                ValueRef::Document(options) => options.iter().any(|(option, _)| option != "count"),
                _ => true,
            },
            "$changeStream" => match value {
                ValueRef::Document(options) => ["showExpandedEvents", "showSystemEvents", "showRawUpdateDescription"]
                    .iter()
                    .any(|option| options.get(option).is_some()),
                _ => false,
            },
            _ => false,
        };
        if is_outside {
            bail!(
                APIStrictError,
                "stage {name} is not allowed with 'apiStrict: true' in API Version 1"
            );
        }
    }
    Ok(())
}
