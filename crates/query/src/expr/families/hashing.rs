//! `$toHashedIndexKey`, `$hash`, `$hexHash`.

use super::binary::hex;
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use md5::{Digest, Md5};
use nestor_model::number::{Num, f64_to_i64_exact};
use nestor_model::{Binary, Error, RawDoc, RawWriter, Result, Value, ValueRef};
use sha2::Sha256;

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$toHashedIndexKey", 1, to_hashed_index_key),
    OpDef::custom("$hash", parse_hash),
    OpDef::custom("$hexHash", parse_hash),
];

fn to_hashed_index_key<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    Ok(hashed_index_key(value.as_ref()).into())
}

/// The key that a hashed index stores for a value: eight bytes of an MD5 over type class and contents. Numbers hash
/// by their whole part, so equal ones of different types hash alike. A missing value hashes as null.
pub fn hashed_index_key(value: ValueRef<'_>) -> i64 {
    let value = if value.is_missing() { ValueRef::Null } else { value };
    let mut md5 = Md5::new();
    md5.update(0i32.to_le_bytes());
    let mut writer = RawWriter::new();
    writer.append("", value);
    let doc = writer.into_doc();
    if let Some(element) = doc.as_raw().elements().next() {
        update(&mut md5, element.value(), element.value_bytes(), None);
    }
    let digest = md5.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

fn update(md5: &mut Md5, value: ValueRef<'_>, bytes: &[u8], name: Option<&str>) {
    let class = match value {
        ValueRef::MinKey => -1,
        ValueRef::Undefined => 0,
        other => i32::from(nestor_model::order::canonical_class(other.bson_type())),
    };
    md5.update(class.to_le_bytes());
    if let Some(name) = name {
        md5.update(name.as_bytes());
        md5.update([0]);
    }
    match value {
        ValueRef::Document(nestor_model::DocRef::Raw(doc)) => update_document(md5, doc),
        ValueRef::Array(nestor_model::ArrayRef::Raw(doc)) => update_document(md5, doc),
        ValueRef::CodeWithScope { scope, code } => {
            // The code as a string value, then the scope as a document.
            md5.update((code.len() as i32 + 1).to_le_bytes());
            md5.update(code.as_bytes());
            md5.update([0]);
            if let nestor_model::DocRef::Raw(doc) = scope {
                update_document(md5, doc);
            }
        }
        other => match Num::from_ref(other) {
            Some(number) => md5.update(whole_part(number).to_le_bytes()),
            None => md5.update(bytes),
        },
    }
}

fn update_document(md5: &mut Md5, doc: RawDoc<'_>) {
    for element in doc.elements() {
        update(md5, element.value(), element.value_bytes(), Some(element.name()));
    }
    // The end of the document counts as an element without a name.
    md5.update(0i32.to_le_bytes());
    md5.update([0]);
}

fn whole_part(number: Num) -> i64 {
    match number {
        Num::Int32(v) => i64::from(v),
        Num::Int64(v) => v,
        Num::Double(v) if v.is_nan() => 0,
        // `as` saturates, which is what is wanted beyond the range.
        Num::Double(v) => f64_to_i64_exact(v.trunc()).unwrap_or(v as i64),
        Num::Decimal(v) if v.is_nan() => 0,
        Num::Decimal(v) => v
            .to_i64_truncated()
            .unwrap_or(if v.is_negative() { i64::MIN } else { i64::MAX }),
    }
}

/// Arguments: input, algorithm.
fn parse_hash(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 9,
        unknown: 9,
        fields: &[("input", Some(9)), ("algorithm", Some(9))],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, if name == "$hash" { hash } else { hex_hash }, args)
}

fn hash<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(digest(args, env, "$hash")?.map_or(Val::NULL, |bytes| {
        Value::from(Binary {
            subtype: 0,
            bytes: bytes.into(),
        })
        .into()
    }))
}

fn hex_hash<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(digest(args, env, "$hexHash")?.map_or(Val::NULL, |bytes| hex(&bytes).into()))
}

/// The digest; `None` for null. Errors: 2 an unknown algorithm, 14 an input or algorithm of another type.
fn digest<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str) -> Result<Option<Vec<u8>>> {
    let input = args[0].eval_ref(env)?;
    let algorithm = args[1].eval_ref(env)?;
    let ValueRef::String(algorithm) = algorithm.as_ref() else {
        return Err(Error::type_mismatch(format!(
            "{op} requires 'algorithm' to be a string, found {}",
            algorithm.as_ref().bson_type().alias()
        )));
    };
    let bytes = match input.as_ref() {
        ValueRef::String(text) => text.as_bytes(),
        ValueRef::Binary { bytes, .. } => bytes,
        other if other.is_nullish() => return Ok(None),
        other => {
            return Err(Error::type_mismatch(format!(
                "{op} requires 'input' to be a string or BinData, found {}",
                other.bson_type().alias()
            )));
        }
    };
    match algorithm {
        "md5" => Ok(Some(Md5::digest(bytes).to_vec())),
        "sha256" => Ok(Some(Sha256::digest(bytes).to_vec())),
        "xxh64" => Ok(Some(xxh64(bytes).to_be_bytes().to_vec())),
        other => Err(error(
            2,
            format!("{op}: unknown algorithm '{other}'; it must be md5, sha256 or xxh64"),
        )),
    }
}

/// XXH64 with seed 0. Source: the xxHash specification.
fn xxh64(bytes: &[u8]) -> u64 {
    const P1: u64 = 0x9E37_79B1_85EB_CA87;
    const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
    const P3: u64 = 0x1656_67B1_9E37_79F9;
    const P4: u64 = 0x85EB_CA77_C2B2_AE63;
    const P5: u64 = 0x27D4_EB2F_1656_67C5;
    let round = |acc: u64, lane: u64| acc.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1);
    let lane = |chunk: &[u8]| {
        let mut wide = [0; 8];
        wide[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(wide)
    };
    let (mut hash, mut rest) = (P5, bytes);
    if bytes.len() >= 32 {
        let mut accs = [P1.wrapping_add(P2), P2, 0, 0u64.wrapping_sub(P1)];
        let mut stripes = bytes.chunks_exact(32);
        for stripe in &mut stripes {
            for (acc, chunk) in accs.iter_mut().zip(stripe.chunks_exact(8)) {
                *acc = round(*acc, lane(chunk));
            }
        }
        rest = stripes.remainder();
        let [a, b, c, d] = accs;
        hash = a
            .rotate_left(1)
            .wrapping_add(b.rotate_left(7))
            .wrapping_add(c.rotate_left(12))
            .wrapping_add(d.rotate_left(18));
        for acc in accs {
            hash = (hash ^ round(0, acc)).wrapping_mul(P1).wrapping_add(P4);
        }
    }
    hash = hash.wrapping_add(bytes.len() as u64);
    let mut eights = rest.chunks_exact(8);
    for chunk in &mut eights {
        hash = (hash ^ round(0, lane(chunk)))
            .rotate_left(27)
            .wrapping_mul(P1)
            .wrapping_add(P4);
    }
    let mut rest = eights.remainder();
    if let Some((four, after)) = rest.split_at_checked(4) {
        hash = (hash ^ lane(four).wrapping_mul(P1))
            .rotate_left(23)
            .wrapping_mul(P2)
            .wrapping_add(P3);
        rest = after;
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5))
            .rotate_left(11)
            .wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn hashes() {
        check(
            r#"{"n": null}"#,
            &[
                // Source: manual, _hashBSONElement.
                (
                    r#"{"$toHashedIndexKey": {"$toDate": "2013-02-12T22:12:57.211Z"}}"#,
                    "Long(-4185544074338741873)",
                ),
                (
                    r#"{"$eq": [{"$toHashedIndexKey": 2.9}, {"$toHashedIndexKey": 2}]}"#,
                    "true",
                ),
                (
                    r#"{"$hexHash": {"input": "", "algorithm": "md5"}}"#,
                    r#""D41D8CD98F00B204E9800998ECF8427E""#,
                ),
                // Source: manual, $hash.
                (
                    r#"{"$hash": {"input": "hello", "algorithm": "xxh64"}}"#,
                    "BinData(0, 26c7827d889f6da3)",
                ),
                (
                    r#"{"$hash": {"input": "report.pdf", "algorithm": "sha256"}}"#,
                    "BinData(0, 6466e450a16b77b865c5829d6b6c56d9f892956475642dbeb9ccc4340fe01b15)",
                ),
                (r#"{"$hash": {"input": "$n", "algorithm": "md5"}}"#, "null"),
                (r#"{"$hash": {"input": "a", "algorithm": "crc"}}"#, "error 2"),
                (r#"{"$hash": {"input": 1, "algorithm": "md5"}}"#, "error 14"),
            ],
        );
    }

    #[test]
    fn long_inputs_take_the_striped_path() {
        // Source: the xxHash test vectors.
        assert_eq!(super::xxh64(b""), 0xEF46_DB37_51D8_E999);
        assert_eq!(
            super::xxh64(b"Call me Ishmael. Some years ago--never mind how long precisely-"),
            0x02A2_E854_70D6_FD96
        );
    }
}
