//! `encrypt` and `encryptMetadata`: what client-side field level encryption says in schemas.
//!
//! Drivers that have the keys encrypt and decrypt; the server sees that what has to be encrypted is. A value is encrypted when it is binary
//! of subtype 6, whose first byte says how and whose eighteenth of which type it was:
//!
//! ```text
//! 1 byte   1 deterministic, 2 random
//! 16       UUID of the key
//! 1        type of the plain value
//! ..       cipher text
//! ```
//!
//! Source: manual, "CSFLE Encryption Schemas"; driver specification "BSON Binary Subtype 6".

use super::operand::{object, string, types, wrong};
use crate::types::TypeSet;
use nestor_model::{BsonType, Result, Value, ValueRef, bail};

/// Binary subtype of encrypted values.
const SUBTYPE: u8 = 6;
/// Where the type of the plain value stands.
const TYPE_AT: usize = 17;
/// Ways in which drivers encrypt.
const ALGORITHMS: [&str; 2] = [
    "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic",
    "AEAD_AES_256_CBC_HMAC_SHA_512-Random",
];

/// A value has to be encrypted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encrypted {
    /// Of which type the plain value has to be.
    types: Option<TypeSet>,
}

impl Encrypted {
    /// Reads `encrypt`.
    ///
    /// Errors: 14 for fields of other types, 9 for unknown ones, algorithms and types of which nothing can be encrypted.
    pub(super) fn parse(value: ValueRef<'_>) -> Result<Self> {
        let mut out = Self::default();
        for (name, value) in object("encrypt", value)? {
            match name {
                "bsonType" => {
                    let given = types("encrypt.bsonType", value, TypeSet::alias)?;
                    let never = [BsonType::MinKey, BsonType::MaxKey, BsonType::Null, BsonType::Undefined];
                    if never.into_iter().any(|kind| given.contains(kind)) {
                        bail!(
                            FailedToParse,
                            "$jsonSchema keyword 'encrypt.bsonType' names a type whose values cannot be encrypted"
                        );
                    }
                    out.types = Some(given);
                }
                other => check_option("encrypt", other, value)?,
            }
        }
        Ok(out)
    }

    /// Whether `value` is encrypted as it has to be.
    pub(super) fn allows(self, value: ValueRef<'_>) -> bool {
        let ValueRef::Binary {
            subtype: SUBTYPE,
            bytes,
        } = value
        else {
            return false;
        };
        let Some(types) = self.types else { return true };
        let number = bytes.get(TYPE_AT).map(|byte| Value::Int32(i32::from(*byte)));
        let plain = number.and_then(|number| TypeSet::parse(number.as_ref()).ok());
        plain.is_some_and(|plain| types.has_all(plain))
    }
}

/// Checks `encryptMetadata`, which says what schemas below have in common and nothing of values.
///
/// Errors: as of `encrypt`.
pub(super) fn check_metadata(value: ValueRef<'_>) -> Result<()> {
    for (name, value) in object("encryptMetadata", value)? {
        check_option("encryptMetadata", name, value)?;
    }
    Ok(())
}

fn check_option(keyword: &str, name: &str, value: ValueRef<'_>) -> Result<()> {
    match name {
        "algorithm" => {
            let algorithm = string("algorithm", value)?;
            if !ALGORITHMS.contains(&algorithm.as_str()) {
                bail!(
                    FailedToParse,
                    "unknown algorithm '{algorithm}' of $jsonSchema keyword '{keyword}'"
                );
            }
            Ok(())
        }
        // A pointer to the field that names the key, or the keys' UUIDs.
        "keyId" => match value {
            ValueRef::String(pointer) if pointer.starts_with('/') => Ok(()),
            ValueRef::Array(keys) if !keys.is_empty() => {
                let is_uuid =
                    |key: ValueRef<'_>| matches!(key, ValueRef::Binary { subtype: 4, bytes } if bytes.len() == 16);
                match keys.iter().all(is_uuid) {
                    true => Ok(()),
                    false => Err(wrong("keyId", "an array of UUIDs", value)),
                }
            }
            other => Err(wrong("keyId", "an array of UUIDs or a JSON pointer", other)),
        },
        other => bail!(
            FailedToParse,
            "unknown field '{other}' of $jsonSchema keyword '{keyword}'"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use nestor_model::{Document, Value, ValueRef, extjson};

    fn schema(text: &str) -> nestor_model::Result<Schema> {
        Schema::parse(extjson::parse_document(text).expect("valid JSON").as_ref())
    }

    fn encrypted(kind: u8) -> Vec<u8> {
        let mut bytes = vec![1; 17];
        bytes.extend([kind, 9, 9, 9]);
        bytes
    }

    #[test]
    fn values_have_to_be_encrypted() {
        let text = schema(r#"{"properties":{"ssn":{"encrypt":{"bsonType":"string","algorithm":"AEAD_AES_256_CBC_HMAC_SHA_512-Random","keyId":"/key"}}}}"#)
            .expect("a schema");
        let any = schema(r#"{"properties":{"ssn":{"encrypt":{}}}}"#).expect("a schema");
        let (string, date, short) = (encrypted(2), encrypted(9), vec![1; 5]);
        for (subtype, bytes, of_text, of_any) in [
            (6, &string, true, true),
            (6, &date, false, true),
            (6, &short, false, true),
            (0, &string, false, false),
        ] {
            let value = ValueRef::Binary { subtype, bytes };
            let mut doc = Document::new();
            doc.push("ssn", value);
            assert_eq!(
                text.matches(doc.as_ref().into()).expect("no error"),
                of_text,
                "{value:?}"
            );
            assert_eq!(any.matches(doc.as_ref().into()).expect("no error"), of_any, "{value:?}");
        }
        let mut plain = Document::new();
        plain.push("ssn", Value::from("123-45-6789"));
        assert!(!any.matches(plain.as_ref().into()).expect("no error"));
        assert!(
            any.matches(Document::new().as_ref().into()).expect("no error"),
            "it need not be there"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, code) in [
            (r#"{"encrypt":1}"#, 14),
            (r#"{"encrypt":{"bsonType":1}}"#, 14),
            (r#"{"encrypt":{"bsonType":"nothing"}}"#, 2),
            (r#"{"encrypt":{"bsonType":"null"}}"#, 9),
            (r#"{"encrypt":{"algorithm":"rot13"}}"#, 9),
            (r#"{"encrypt":{"algorithm":1}}"#, 14),
            (r#"{"encrypt":{"keyId":"no pointer"}}"#, 14),
            (r#"{"encrypt":{"keyId":[]}}"#, 14),
            (r#"{"encrypt":{"keyId":[1]}}"#, 14),
            (r#"{"encrypt":{"unknown":1}}"#, 9),
            (r#"{"encrypt":{},"bsonType":"string"}"#, 9),
            (r#"{"encryptMetadata":{"bsonType":"string"}}"#, 9),
            (r#"{"encryptMetadata":1}"#, 14),
        ] {
            assert_eq!(schema(text).expect_err(text).code().number(), code, "{text}");
        }
        schema(r#"{"encryptMetadata":{"algorithm":"AEAD_AES_256_CBC_HMAC_SHA_512-Random","keyId":"/k"},"bsonType":"object"}"#)
            .expect("a schema");
    }
}
