//! `encryptedFields` of `create`: which fields clients encrypt and by what they are asked for.
//!
//! Nestor has no collections for Queryable Encryption, and says so of every description that is right. One that is wrong gets
//! MongoDB's error first, so that a client learns of its own mistake.
//! Source: manual, "Encrypted Fields and Enabled Queries"; specification "Client Side Encryption", `encryptedFields`.

use crate::args::{Arg, At, ExactInt, StrictBool, wrong_type};
use nestor_database::uuid::Uuid;
use nestor_model::{BsonType, DocRef, RawDoc, Result, ValueRef, bail, compare};
use std::cmp::Ordering;

// Fields that nothing reads are checked for their form only.

crate::args! {
    struct EncryptedFields<'a>: "create.encryptedFields" nested {
        #[allow(dead_code)]
        "escCollection" => esc: Option<&'a str>,
        #[allow(dead_code)]
        "eccCollection" => ecc: Option<&'a str>,
        #[allow(dead_code)]
        "ecocCollection" => ecoc: Option<&'a str>,
        "fields" => fields: Vec<RawDoc<'a>>,
        #[allow(dead_code)]
        "strEncodeVersion" => version: Option<ExactInt<0, { i32::MAX as i64 }>>,
    }
}

crate::args! {
    struct Field<'a>: "create.encryptedFields.fields" nested {
        #[allow(dead_code)]
        "keyId" => key_id: Uuid,
        "path" => path: &'a str,
        "bsonType" => bson_type: Option<&'a str>,
        "queries" => queries: Option<Queries<'a>>,
    }
}

crate::args! {
    struct Query<'a>: "create.encryptedFields.fields.queries" nested {
        "queryType" => kind: &'a str,
        #[allow(dead_code)]
        "contention" => contention: Option<ExactInt<0, { i64::MAX }>>,
        #[allow(dead_code)]
        "sparsity" => sparsity: Option<ExactInt<1, 8>>,
        "trimFactor" => trim_factor: Option<ExactInt<0, { i32::MAX as i64 }>>,
        #[allow(dead_code)]
        "precision" => precision: Option<ExactInt<0, { i32::MAX as i64 }>>,
        "min" => min: Option<ValueRef<'a>>,
        "max" => max: Option<ValueRef<'a>>,
        #[allow(dead_code)]
        "strMaxLength" => max_length: Option<ExactInt<1, { i32::MAX as i64 }>>,
        "strMinQueryLength" => min_query_length: Option<ExactInt<1, { i32::MAX as i64 }>>,
        "strMaxQueryLength" => max_query_length: Option<ExactInt<1, { i32::MAX as i64 }>>,
        "caseSensitive" => case_sensitive: Option<StrictBool>,
        "diacriticSensitive" => diacritic_sensitive: Option<StrictBool>,
    }
}

/// A description of queries, or an array of them. Null is neither.
#[derive(Debug)]
struct Queries<'a>(Vec<RawDoc<'a>>);

impl<'a> Arg<'a> for Queries<'a> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Document(DocRef::Raw(one)) => Ok(Some(Self(vec![one]))),
            ValueRef::Array(_) => Ok(<Vec<RawDoc<'a>> as Arg>::parse(value, at)?.map(Self)),
            other => Err(wrong_type(at, other.bson_type(), "[object, array]")),
        }
    }
}

/// The query types that a field supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Equality,
    Range,
    Prefix,
    Suffix,
    Substring,
}

impl Kind {
    fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "equality" => Self::Equality,
            "range" | "rangePreview" => Self::Range,
            "prefix" | "prefixPreview" => Self::Prefix,
            "suffix" | "suffixPreview" => Self::Suffix,
            "substringPreview" => Self::Substring,
            other => bail!(
                BadValue,
                "Enumeration value '{other}' for field 'create.encryptedFields.fields.queries.queryType' is not a valid value."
            ),
        })
    }

    fn is_of_text(self) -> bool {
        matches!(self, Self::Prefix | Self::Suffix | Self::Substring)
    }
}

/// Checks a description.
///
/// Errors: those of arguments, 2 and 9 for numbers, 9783412 for no kind of query, 9783413 for more than two, 9783414 for two
/// that do not go together, and those of each kind.
pub fn check(description: RawDoc<'_>) -> Result<()> {
    for field in EncryptedFields::parse(description, &[])?.fields {
        let field = Field::parse(field, &[])?;
        let Some(Queries(written)) = &field.queries else {
            continue;
        };
        if written.is_empty() {
            bail!(
                9783412,
                "the queries of the encrypted field '{}' must not be empty",
                field.path
            );
        }
        let queries = written
            .iter()
            .map(|query| Query::parse(*query, &[]))
            .collect::<Result<Vec<_>>>()?;
        let mut kinds = Vec::with_capacity(queries.len());
        for query in &queries {
            let kind = Kind::parse(query.kind)?;
            check_query(kind, query, &field)?;
            kinds.push(kind);
        }
        match kinds.as_slice() {
            [_] | [Kind::Prefix, Kind::Suffix] | [Kind::Suffix, Kind::Prefix] => {}
            [_, _] => bail!(
                9783414,
                "the kinds of queries of the encrypted field '{}' do not go together",
                field.path
            ),
            _ => bail!(
                9783413,
                "the encrypted field '{}' has more than two kinds of queries",
                field.path
            ),
        }
    }
    Ok(())
}

fn check_query(kind: Kind, query: &Query<'_>, field: &Field<'_>) -> Result<()> {
    match kind {
        Kind::Equality => Ok(()),
        Kind::Range => check_range(query, field),
        text => {
            debug_assert!(text.is_of_text(), "the other two kinds are above");
            check_text(query, field)
        }
    }
}

/// Errors: 9783400 for fields that are no strings, 9783402 to 9783405 for what is missing, 9783406 for lengths that cross.
fn check_text(query: &Query<'_>, field: &Field<'_>) -> Result<()> {
    if field.bson_type != Some("string") {
        bail!(
            9783400,
            "queries of type {} are for strings: '{}'",
            query.kind,
            field.path
        );
    }
    let Some(ExactInt(shortest)) = query.min_query_length else {
        bail!(9783402, "strMinQueryLength is missing for '{}'", field.path);
    };
    let Some(ExactInt(longest)) = query.max_query_length else {
        bail!(9783403, "strMaxQueryLength is missing for '{}'", field.path);
    };
    if query.case_sensitive.is_none() {
        bail!(9783404, "caseSensitive is missing for '{}'", field.path);
    }
    if query.diacritic_sensitive.is_none() {
        bail!(9783405, "diacriticSensitive is missing for '{}'", field.path);
    }
    if shortest > longest {
        bail!(
            9783406,
            "strMinQueryLength is above strMaxQueryLength for '{}'",
            field.path
        );
    }
    Ok(())
}

/// Errors: 6775201 for fields that are no numbers or dates, 7018200 for bounds of another type, 6720005 for bounds that cross,
/// 8574000 for a trim factor of more bits than the type has.
fn check_range(query: &Query<'_>, field: &Field<'_>) -> Result<()> {
    let (bson_type, bits) = match field.bson_type {
        Some("int") => (BsonType::Int, 32),
        Some("long") => (BsonType::Long, 64),
        Some("double") => (BsonType::Double, 64),
        Some("date") => (BsonType::Date, 64),
        Some("decimal") => (BsonType::Decimal, 128),
        _ => bail!(
            6775201,
            "queries of type range are for numbers and dates: '{}'",
            field.path
        ),
    };
    for bound in [query.min, query.max].into_iter().flatten() {
        if bound.bson_type() != bson_type {
            bail!(
                7018200,
                "the bounds of the encrypted field '{}' must be of its type, not {}",
                field.path,
                bound.bson_type().alias()
            );
        }
    }
    if let (Some(min), Some(max)) = (query.min, query.max) {
        if compare(min, max) != Ordering::Less {
            bail!(
                6720005,
                "min must be below max for the encrypted field '{}'",
                field.path
            );
        }
    }
    match query.trim_factor {
        Some(ExactInt(trim)) if trim >= bits => bail!(
            8574000,
            "trimFactor must be less than the {bits} bits of the encrypted field '{}'",
            field.path
        ),
        _ => Ok(()),
    }
}
