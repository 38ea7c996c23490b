use super::*;
use nestor_model::{Array, Binary, Decimal128, Document, ObjectId, Regex, Timestamp, Value, compare, doc};

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|b| format!("{b:02X} "))
        .collect::<String>()
        .trim_end()
        .into()
}

#[test]
fn worked_examples() {
    let enc = |v: Value| hex(&encode(&v));
    assert_eq!(enc(Value::Null), "20");
    assert_eq!(enc("a".into()), "30 61 00 00");
    assert_eq!(enc("a\0b".into()), "30 61 00 FF 62 00 00");
    let mut key = KeyWriter::new();
    key.push("a", true);
    assert_eq!(hex(key.key()), "CF 9E FF FF");
    assert_eq!(enc(1.into()), "2B 7F F0");
    assert_eq!(enc((-1).into()), "29 80 0F");
    assert_eq!(enc(doc! { "a": Value::Null }.into()), "38 20 61 00 00 20 00");
    assert_eq!(enc(vec![Value::Bool(true)].into()), "40 59 00");
    let binary = Binary {
        subtype: 5,
        bytes: b"x".as_slice().into(),
    };
    assert_eq!(enc(binary.into()), "48 01 05 78");
    assert_eq!(enc(1000.into()), "2B 81 8F A0");
    assert_eq!(enc(0.5.into()), "2B 7F E0");
    let beyond = enc(((1i64 << 53) + 1).into());
    assert!(
        beyond.starts_with("2B 87 41 01 01 01 01 01 01 01 40 10 01 BC 16 D6 74 EC 80 0D E0 B6 B3 A7 64 00 00"),
        "{beyond}"
    );
}

#[test]
fn type_bit_examples() {
    let bits = |v: Value| {
        let mut key = KeyWriter::new();
        key.push(&v, false);
        hex(key.type_bits())
    };
    assert_eq!(bits(vec!["a".into(), 1.into(), Value::Int64(1)].into()), "10");
    let one_fifty = number::assemble(false, 150, -2).unwrap();
    assert_eq!(bits(one_fifty.into()), "02 FE FF");
    assert_eq!(bits(7.into()), "");
    assert_eq!(bits(7.5.into()), "");
    assert_eq!(bits("x".into()), "");
}

/// xorshift: explicit seeds, the same run everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn decimal(negative: bool, coefficient: u128, exponent: i32) -> Value {
    number::assemble(negative, coefficient, exponent).unwrap().into()
}

/// Numbers around every boundary: powers of two and ten, limits of types, neighbours of each other.
fn random_number(r: &mut Random) -> Value {
    let anchor: i64 = match r.below(6) {
        0 => r.below(20) as i64 - 10,
        1 => 1 << r.below(63),
        2 => -(1 << r.below(63)),
        3 => i64::MAX - r.below(3) as i64,
        4 => i64::MIN + r.below(3) as i64,
        _ => 10i64.pow(r.below(19) as u32),
    };
    let near = anchor.wrapping_add(r.below(5) as i64 - 2);
    match r.below(12) {
        0 => Value::Int32(near as i32),
        1 | 2 => Value::Int64(near),
        3 => Value::Double(near as f64),
        4 => Value::Double(f64::from_bits(
            (near as f64).to_bits().wrapping_add(r.below(3)).wrapping_sub(1),
        )),
        5 => Value::Double(
            [
                0.1,
                -0.0,
                0.0,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                f64::MIN_POSITIVE,
                5e-324,
            ][r.below(8) as usize],
        ),
        6 => Value::Double(f64::from_bits(r.next())),
        7 => Decimal128::from_i64(near).into(),
        8 => {
            // The neighbourhood of a double, in 34 digits.
            let d = Decimal128::from_f64_exact([0.1, 1e300, 5e-324, near as f64, 2.5][r.below(5) as usize]);
            match number::parts(d) {
                number::Parts::Finite {
                    negative,
                    coefficient,
                    exponent,
                } if coefficient > 10 => {
                    let coefficient = coefficient + u128::from(r.below(3)) - 1;
                    decimal(negative, coefficient.min(10u128.pow(34) - 1), exponent)
                }
                _ => d.into(),
            }
        }
        9 => decimal(r.below(2) == 0, u128::from(r.below(1000)), r.below(12288) as i32 - 6176),
        10 => decimal(
            r.below(2) == 0,
            u128::from(near.unsigned_abs()) * 10u128.pow(r.below(10) as u32),
            r.below(20) as i32 - 10,
        ),
        _ => Decimal128::from_bytes((u128::from(r.next()) << 64 | u128::from(r.next())).to_le_bytes()).into(),
    }
}

fn random_text(r: &mut Random) -> String {
    (0..r.below(4))
        .map(|_| ['\0', 'a', 'b', '\u{1}', 'é', '\u{10FFFF}'][r.below(6) as usize])
        .collect()
}

fn random_value(r: &mut Random, depth: u32) -> Value {
    match r.below(if depth == 0 { 17 } else { 20 }) {
        0 => Value::MinKey,
        1 => Value::MaxKey,
        2 => Value::Null,
        3 => Value::Undefined,
        4 => Value::Bool(r.below(2) == 0),
        5 | 6 => random_number(r),
        7 => random_text(r).as_str().into(),
        8 => Value::Symbol(random_text(r).into()),
        9 => {
            let len = [0, 1, 2, 254, 255, 256][r.below(6) as usize];
            Value::Binary(Binary {
                subtype: r.below(3) as u8,
                bytes: vec![r.below(3) as u8; len].into(),
            })
        }
        10 => Value::ObjectId(ObjectId([r.below(3) as u8 * 127; 12])),
        11 => Value::DateTime([i64::MIN, -1, 0, 1, i64::MAX][r.below(5) as usize]),
        12 => Timestamp::from_u64([0, 1, 1 << 32, u64::MAX][r.below(4) as usize]).into(),
        13 => Value::Regex(Box::new(Regex {
            pattern: random_text(r).replace('\0', "").into(),
            options: if r.below(2) == 0 { "" } else { "i" }.into(),
        })),
        14 => Value::DbPointer(Box::new((random_text(r).into(), ObjectId([r.below(2) as u8; 12])))),
        15 => Value::Code(random_text(r).into()),
        16 => Value::CodeWithScope(Box::new((random_text(r).into(), random_document(r, 0)))),
        17 | 18 => Value::Document(random_document(r, depth - 1)),
        _ => Value::Array(Array::new(
            (0..r.below(4)).map(|_| random_value(r, depth - 1)).collect(),
        )),
    }
}

fn random_document(r: &mut Random, depth: u32) -> Document {
    let mut doc = Document::new();
    for _ in 0..r.below(4) {
        let name = ["", "a", "ab", "b"][r.below(4) as usize];
        doc.push(name, random_value(r, depth));
    }
    doc
}

/// Byte order is the order of values, ascending and descending, and decoding gives back exactly what went in.
fn check_pair(a: &Value, b: &Value, seed: u64) {
    let expected = compare(a, b);
    for descending in [false, true] {
        let (mut x, mut y) = (KeyWriter::new(), KeyWriter::new());
        x.push(a, descending);
        y.push(b, descending);
        let order = if descending { expected.reverse() } else { expected };
        assert_eq!(
            x.key().cmp(y.key()),
            order,
            "seed {seed}: {a:?} against {b:?}: {} {}",
            hex(x.key()),
            hex(y.key())
        );
        let (back, len) = decode(x.key(), x.type_bits(), &[descending]).unwrap();
        assert_eq!(len, x.key().len());
        assert!(back[0].identical(a), "seed {seed}: {a:?} came back as {:?}", back[0]);
        assert_eq!(part_bytes(x.key(), &[descending]).unwrap(), len);
    }
}

#[test]
fn numbers_keep_their_order() {
    for seed in [1, 0xDECAF, 0x5EED_5EED] {
        let mut r = Random(seed);
        let numbers: Vec<Value> = (0..150).map(|_| random_number(&mut r)).collect();
        for a in &numbers {
            for b in &numbers {
                check_pair(a, b, seed);
            }
        }
    }
}

#[test]
fn values_of_all_types_keep_their_order() {
    for seed in [2, 0xBEEF, 0xFACADE] {
        let mut r = Random(seed);
        let values: Vec<Value> = (0..150).map(|_| random_value(&mut r, 2)).collect();
        for a in &values {
            for b in &values {
                check_pair(a, b, seed);
            }
        }
    }
}

#[test]
fn parts_of_a_compound_key_order_one_after_the_other() {
    let mut r = Random(77);
    let pairs: Vec<(Value, Value)> = (0..200)
        .map(|_| (random_value(&mut r, 1), random_value(&mut r, 1)))
        .collect();
    let directions = [true, false];
    let key = |(a, b): &(Value, Value)| {
        let mut key = KeyWriter::new();
        key.push(a, directions[0]);
        key.push(b, directions[1]);
        (key.key().to_vec(), key.type_bits().to_vec())
    };
    for x in &pairs {
        let (xk, xt) = key(x);
        let (back, _) = decode(&xk, &xt, &directions).unwrap();
        assert!(
            back[0].identical(&x.0) && back[1].identical(&x.1),
            "{x:?} came back as {back:?}"
        );
        for y in &pairs {
            let expected = compare(&x.0, &y.0).reverse().then_with(|| compare(&x.1, &y.1));
            assert_eq!(xk.cmp(&key(y).0), expected, "{x:?} against {y:?}");
        }
    }
}

#[test]
fn marks_before_and_behind_a_prefix() {
    // Whatever follows a part lies between part + 00 and part + FF.
    let mut r = Random(5);
    for _ in 0..500 {
        let mut key = KeyWriter::new();
        key.push("p", false);
        let (mut low, mut high) = (key.key().to_vec(), key.key().to_vec());
        low.push(0);
        high.push(0xFF);
        let descending = r.below(2) == 0;
        key.push(&random_value(&mut r, 1), descending);
        assert!(low.as_slice() < key.key() && key.key() < high.as_slice());
    }
}

#[test]
fn broken_keys_are_errors() {
    let mut r = Random(9);
    for _ in 0..2000 {
        let mut key = KeyWriter::new();
        key.push(&random_value(&mut r, 2), false);
        let cut = &key.key()[..r.below(key.key().len() as u64) as usize];
        assert!(decode(cut, key.type_bits(), &[false]).is_err());
        // Any bytes at all decode or fail, but do not panic.
        let noise: Vec<u8> = (0..r.below(40)).map(|_| r.next() as u8).collect();
        let _ = decode(&noise, &noise, &[r.below(2) == 0]);
        let _ = decode(key.key(), &noise, &[false]);
    }
}
