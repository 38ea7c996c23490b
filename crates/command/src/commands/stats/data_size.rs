//! `dataSize`: bytes and number of documents, of a collection or of a range of one.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{Namespace, RawDoc, RawWriter, Result, ValueRef, bail, compare};
use nestor_storage::{View, record};
use std::time::Instant;

/// The command.
pub const SPEC: CommandSpec = Facts::namespace("dataSize", "Bytes of a collection or a range of it.")
    .aliases(&["datasize"])
    .flags(Flags::LONG.and(Flags::PRIMARY_READ))
    .needs(Needs::collection(Action::Find))
    .runs(run);

crate::args! {
    /// Arguments of `dataSize`.
    pub struct DataSizeArgs<'a>: "dataSize" command {
        "dataSize" => ns: &'a str,
        "keyPattern" => key_pattern: Option<RawDoc<'a>>,
        "min" => min: Option<RawDoc<'a>>,
        "max" => max: Option<RawDoc<'a>>,
        "estimate" => estimate: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DataSizeArgs::parse(context.body, context.sequences)?;
    let started = Instant::now();
    let ns = Namespace::parse(args.ns);
    if ns.coll.is_empty() {
        bail!(InvalidNamespace, "Invalid namespace specified '{}'", args.ns);
    }
    let bounds = bounds(&args)?;
    let snapshot = context.read_snapshot()?;
    let (mut bytes, mut count) = (0i64, 0i64);
    if let Some(collection) = snapshot.catalog().get(&ns) {
        if collection.is_view() {
            bail!(CommandNotSupportedOnView, "Namespace {ns} is a view, not a collection");
        }
        match bounds {
            None => (count, bytes) = nestor_database::oplog::sizes(&context.service.engine, collection)?,
            Some((field, min, max)) => {
                context.check_all_rows(collection)?;
                context.check_plain(collection, "the size of a range would tell of values")?;
                let mut cursor = snapshot.cursor(collection.records);
                let mut more = cursor.first()?;
                let mut interrupt = context.interrupt.paced();
                while more {
                    interrupt.check()?;
                    let doc = record::document(cursor.value()?);
                    let value = doc.get(field).unwrap_or(ValueRef::Null);
                    if compare(value, min).is_ge() && compare(value, max).is_lt() {
                        bytes += doc.len() as i64;
                        count += 1;
                    }
                    more = cursor.next()?;
                }
            }
        }
    }
    reply.append("estimate", args.estimate);
    reply.append("size", bytes);
    reply.append("numObjects", count);
    reply.append("millis", started.elapsed().as_millis() as i64);
    Ok(())
}

/// The field and its range, from inclusive to exclusive. An index with this key must exist in MongoDB; here any single
/// field will do.
fn bounds<'a>(args: &DataSizeArgs<'a>) -> Result<Option<(&'a str, ValueRef<'a>, ValueRef<'a>)>> {
    let (min, max) = match (args.min, args.max) {
        (Some(min), Some(max)) if !min.is_empty() && !max.is_empty() => (min, max),
        (Some(min), _) if !min.is_empty() => bail!(BadValue, "only one of min or max specified"),
        (_, Some(max)) if !max.is_empty() => bail!(BadValue, "only one of min or max specified"),
        _ => return Ok(None),
    };
    let (Some((field, low)), Some((other, high))) = (min.iter().next(), max.iter().next()) else {
        return Ok(None);
    };
    if field != other || min.iter().count() != 1 || max.iter().count() != 1 {
        bail!(NotImplemented, "dataSize over several fields is not supported");
    }
    Ok(Some((field, low, high)))
}
