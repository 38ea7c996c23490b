//! Vectors value by value.

use super::{Data, Texts, Vector, decimal, digits};
use crate::{Decimal128, Value};

/// Bytes of texts that are held side by side, at most; longer ones are shared and not copied.
const TEXT_MAX: usize = 4096;

/// Makes a [`Vector`] of values that come one after the other. The first that is not null says what form the vector has; it holds
/// [`Data::Values`] from the first on that does not fit.
#[derive(Debug, Default)]
pub struct Builder(Vector);

macro_rules! push {
    ($(#[$doc:meta])* $name:ident, $ty:ty, $form:ident, $value:ident) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $ty) {
            match &mut self.0.data {
                Data::$form(values) => {
                    values.push(value);
                    self.is_set();
                }
                Data::Same(Value::Null, _) => {
                    let mut values = self.begin();
                    values.push(value);
                    self.0.data = Data::$form(values);
                    self.is_set();
                }
                _ => self.push_any(Value::$value(value)),
            }
        }
    };
}

impl Builder {
    push!(
        /// Adds a boolean.
        push_bool, bool, Bool, Bool
    );
    push!(
        /// Adds a [`Value::Int32`].
        push_int32, i32, Int32, Int32
    );
    push!(
        /// Adds a [`Value::Int64`].
        push_int64, i64, Int64, Int64
    );
    push!(
        /// Adds a [`Value::Double`].
        push_double, f64, Double, Double
    );

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a null.
    pub fn push_null(&mut self) {
        let len = self.0.len();
        match &mut self.0.data {
            Data::Same(_, len) => return *len += 1,
            Data::Values(values) => return values.push(Value::Null),
            Data::Bool(values) => values.push(false),
            Data::Int32(values) => values.push(0),
            Data::Int64(values) => values.push(0),
            Data::Double(values) => values.push(0.0),
            Data::Decimal { digits, .. } => digits.push(0),
            Data::Text(texts) => {
                texts.push("");
            }
        }
        let nulls = self.0.nulls.get_or_insert_with(|| vec![false; len]);
        nulls.push(true);
    }

    /// Adds a [`Value::Decimal128`].
    pub fn push_decimal(&mut self, value: Decimal128) {
        let Some((whole, scale)) = digits(value) else {
            return self.push_any(Value::Decimal128(value));
        };
        match &mut self.0.data {
            Data::Decimal { digits, scale: own } if *own == scale => {
                digits.push(whole);
                self.is_set();
            }
            Data::Same(Value::Null, _) => {
                let mut digits = self.begin();
                digits.push(whole);
                self.0.data = Data::Decimal { digits, scale };
                self.is_set();
            }
            _ => self.push_any(Value::Decimal128(value)),
        }
    }

    /// Adds a [`Value::String`].
    pub fn push_text(&mut self, text: &str) {
        if text.len() > TEXT_MAX {
            return self.push_any(Value::String(text.into()));
        }
        if let Data::Same(Value::Null, len) = self.0.data {
            let mut texts = Texts::default();
            (0..len).for_each(|_| _ = texts.push(""));
            self.0.data = Data::Text(texts);
            self.0.nulls = (len > 0).then(|| vec![true; len]);
        }
        let has_room = match &mut self.0.data {
            Data::Text(texts) => texts.push(text),
            _ => false,
        };
        match has_room {
            true => self.is_set(),
            false => self.push_any(Value::String(text.into())),
        }
    }

    /// Adds a value.
    pub fn push(&mut self, value: Value) {
        match value {
            Value::Null => self.push_null(),
            Value::Bool(value) => self.push_bool(value),
            Value::Int32(value) => self.push_int32(value),
            Value::Int64(value) => self.push_int64(value),
            Value::Double(value) => self.push_double(value),
            Value::Decimal128(value) => self.push_decimal(value),
            Value::String(text) if text.len() <= TEXT_MAX => self.push_text(&text),
            value => self.push_any(value),
        }
    }

    /// Adds the value of a row of a vector.
    pub fn push_from(&mut self, vector: &Vector, row: usize) {
        if vector.is_null(row) {
            return self.push_null();
        }
        match &vector.data {
            Data::Bool(values) => self.push_bool(values[row]),
            Data::Int32(values) => self.push_int32(values[row]),
            Data::Int64(values) => self.push_int64(values[row]),
            Data::Double(values) => self.push_double(values[row]),
            Data::Decimal { digits: own, scale } => match &mut self.0.data {
                Data::Decimal { digits, scale: same } if same == scale => {
                    digits.push(own[row]);
                    self.is_set();
                }
                _ => self.push_decimal(decimal(own[row], *scale)),
            },
            Data::Text(texts) => self.push_text(texts.get(row)),
            Data::Same(value, _) => self.push(value.clone()),
            Data::Values(values) => self.push(values[row].clone()),
        }
    }

    /// Adds the values of the rows at `places` of a vector, or all of them.
    pub fn extend(&mut self, vector: &Vector, places: Option<&[u32]>) {
        if let (Data::Same(Value::Null, len), Data::Same(Value::Null, own)) = (&vector.data, &mut self.0.data) {
            *own += places.map_or(*len, <[u32]>::len);
            return;
        }
        if self.extend_typed(vector, places) {
            return;
        }
        match places {
            None => (0..vector.len()).for_each(|row| self.push_from(vector, row)),
            Some(places) => places.iter().for_each(|row| self.push_from(vector, *row as usize)),
        }
    }

    /// As [`Builder::extend`] where both have numbers of one form and none is null; otherwise nothing is added, and it is `false`.
    fn extend_typed(&mut self, vector: &Vector, places: Option<&[u32]>) -> bool {
        fn more<T: Copy>(own: &mut Vec<T>, values: &[T], places: Option<&[u32]>) {
            match places {
                None => own.extend_from_slice(values),
                Some(places) => own.extend(places.iter().map(|place| values[*place as usize])),
            }
        }
        if vector.nulls.is_some() || self.0.nulls.is_some() {
            return false;
        }
        if places.map_or(vector.len(), <[u32]>::len) == 0 {
            return true;
        }
        if self.is_empty() {
            // An empty vector takes the form of what comes first.
            self.0.data = match &vector.data {
                Data::Int32(_) => Data::Int32(Vec::new()),
                Data::Int64(_) => Data::Int64(Vec::new()),
                Data::Double(_) => Data::Double(Vec::new()),
                Data::Decimal { scale, .. } => Data::Decimal {
                    digits: Vec::new(),
                    scale: *scale,
                },
                _ => return false,
            };
        }
        match (&mut self.0.data, &vector.data) {
            (Data::Int32(own), Data::Int32(values)) => more(own, values, places),
            (Data::Int64(own), Data::Int64(values)) => more(own, values, places),
            (Data::Double(own), Data::Double(values)) => more(own, values, places),
            (Data::Decimal { digits: own, scale: s }, Data::Decimal { digits, scale: t }) if *s == *t => {
                more(own, digits, places);
            }
            _ => return false,
        }
        true
    }

    /// The vector.
    pub fn finish(self) -> Vector {
        self.0
    }

    /// The vector so far.
    pub fn so_far(&self) -> &Vector {
        &self.0
    }

    /// The last row is not null.
    #[inline]
    fn is_set(&mut self) {
        if let Some(nulls) = &mut self.0.nulls {
            nulls.push(false);
        }
    }

    /// The values of the rows so far, which are all null.
    fn begin<T: Clone + Default>(&mut self) -> Vec<T> {
        let len = self.0.len();
        self.0.nulls = (len > 0).then(|| vec![true; len]);
        vec![T::default(); len]
    }

    /// Adds a value that does not fit, and is not null.
    #[cold]
    fn push_any(&mut self, value: Value) {
        if let Data::Values(values) = &mut self.0.data {
            return values.push(value);
        }
        let mut values: Vec<Value> = (0..self.0.len()).map(|row| self.0.value(row)).collect();
        values.push(value);
        self.0 = Data::Values(values).into();
    }
}
