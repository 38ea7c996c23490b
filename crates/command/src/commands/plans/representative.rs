//! The query that stands for all of its shape, from which the shape of query settings is made.

use crate::commands::query::aggregate::{self, AggregateArgs};
use crate::commands::query::distinct::{self, DistinctArgs};
use crate::commands::query::find::{self, FindArgs};
use crate::context::Context;
use crate::facts::Preparation;
use nestor_database::read;
use nestor_database::read::Target;
use nestor_database::shape::Shape;
use nestor_model::{ArrayRef, Document, RawDoc, Result, ValueRef, bail};
use nestor_query::stage::{ParseContext, Pipeline, Place};

/// The shape of a query, once it is known to be a good query.
///
/// Errors: 7746402 for other commands, 7746606 for lookups by `_id`, which nothing can be set for, 8584900 and 8584901
/// for the server's own databases and collections, and those of the query.
pub(super) fn shape_of(context: &Context<'_>, query: RawDoc<'_>) -> Result<Document> {
    let query = Representative::parse(query)?;
    let ns = &query.shape.ns;
    if ns.is_internal() {
        bail!(
            8_584_900,
            "{} queries on the internal database '{}' cannot have query settings",
            query.shape.command,
            ns.db
        );
    }
    if ns.coll.starts_with("system.") {
        bail!(
            8_584_901,
            "queries on the system collection '{}' cannot have query settings",
            ns.coll
        );
    }
    query.check(context)?;
    Ok(query.shape.document())
}

/// The shape of a query that settings were stored for.
///
/// Errors: those of its arguments.
pub(super) fn stored_shape(query: RawDoc<'_>) -> Result<Document> {
    Ok(Representative::parse(query)?.shape.document())
}

/// A query with its `$db`, which stands for all of its shape.
struct Representative<'a> {
    shape: Shape<'a>,
    /// It is a lookup by `_id`.
    is_express: bool,
}

impl<'a> Representative<'a> {
    fn parse(query: RawDoc<'a>) -> Result<Self> {
        let Some((name, _)) = query.iter().next() else {
            bail!(7_746_402, "QueryShape can not be computed for an empty command");
        };
        let known = [&find::SPEC, &aggregate::SPEC, &distinct::SPEC];
        let preparation = known
            .iter()
            .find(|spec| spec.name == name)
            .and_then(|spec| spec.preparation);
        let Some(preparation) = preparation else {
            bail!(7_746_402, "QueryShape can not be computed for command: {name}");
        };
        let Some(db) = query.get("$db").filter(|db| !db.is_nullish()) else {
            bail!(40414, "BSON field '{name}.$db' is missing but a required field");
        };
        let ValueRef::String(db) = db else {
            return Err(crate::args::wrong_type(
                format_args!("{name}.$db"),
                db.bson_type(),
                "string",
            ));
        };
        nestor_database::names::check_database(db)?;
        let by_name = |target| match target {
            Target::Name(coll) => nestor_database::names::collection(db, coll),
            Target::Uuid(_) => bail!(InvalidNamespace, "collection name has invalid type binData"),
        };
        let mut is_express = false;
        let shape = match preparation {
            Preparation::Find => {
                let args = FindArgs::parse(query, &[])?;
                is_express = find::express_id(&args).is_some();
                find::shape(&args, by_name(args.target)?)
            }
            Preparation::Distinct => {
                let args = DistinctArgs::parse(query, &[])?;
                distinct::shape_on(&args, by_name(args.target)?)
            }
            _ => aggregate::shape(db, &AggregateArgs::parse(query, &[])?)?,
        };
        Ok(Self { shape, is_express })
    }

    /// Parses the filter or pipeline, to find what is wrong with it.
    fn check(&self, context: &Context<'_>) -> Result<()> {
        if self.is_express {
            bail!(
                7_746_606,
                "setQuerySettings command cannot be used on find queries that are lookups by _id"
            );
        }
        let words = &self.shape.words;
        let (_, mut scope) = context.operation(words.variables)?;
        match words.pipeline {
            Some(pipeline) => {
                let mut place = ParseContext::new(&mut scope, self.shape.ns.clone(), Place::Top);
                Pipeline::parse(ArrayRef::Raw(pipeline), &mut place)?;
            }
            None => {
                read::parse_filter(words.filter, &mut scope)?;
            }
        }
        Ok(())
    }
}
