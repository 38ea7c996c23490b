//! Seeded randomness for generators.

use nestor_model::{Array, Decimal128, Document, Str, Value};

/// A splitmix64 sequence. The same seed gives the same values for good.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `items`.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// A scalar, mostly a small number, often at the edge of its type.
    pub fn scalar(&mut self) -> Value {
        match self.below(14) {
            0..=3 => Value::Int32(self.below(4) as i32),
            4 => Value::Int64(self.below(3) as i64),
            5 => Value::Double(self.below(3) as f64),
            6 => Value::Null,
            7 => Value::String(Str::from(*self.pick(&["", "a", "bb"]))),
            8 => Value::Bool(self.one_in(2)),
            9 => Value::Double(*self.pick(&[-0.0, 0.5, f64::NAN, f64::INFINITY])),
            10 => Value::Decimal128(Decimal128::from_i64(self.below(3) as i64)),
            11 => self
                .pick(&[
                    Value::Int32(i32::MAX),
                    Value::Int64(i64::MAX),
                    Value::Int32(i32::MIN),
                    Value::Int64(i64::MIN),
                ])
                .clone(),
            12 => Value::DateTime(self.below(3) as i64),
            _ => self.pick(&[Value::MinKey, Value::MaxKey, Value::Undefined]).clone(),
        }
    }

    /// A value with at most `depth` levels inside; names are few, so that paths meet.
    pub fn value(&mut self, depth: usize) -> Value {
        match self.below(6) {
            0 | 1 if depth > 0 => self.document(depth - 1).into(),
            2 | 3 if depth > 0 => {
                let length = self.below(4);
                Value::Array((0..length).map(|_| self.value(depth - 1)).collect::<Array>())
            }
            _ => self.scalar(),
        }
    }

    /// A document whose values have at most `depth` levels inside. Names are distinct.
    pub fn document(&mut self, depth: usize) -> Document {
        let mut doc = Document::new();
        for name in ["c", "a", "1", "b", "0", "d"] {
            if self.one_in(3) {
                let value = self.value(depth);
                doc.push(name, value);
            }
        }
        doc
    }
}
