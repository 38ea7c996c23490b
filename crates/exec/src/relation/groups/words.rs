//! Groups whose columns have values of one simple type each, told apart by words of 64 bits.
//!
//! ```text
//! one column        word
//! several, or sets  null columns (32) · set (32) | word | word ...
//! ```
//!
//! The word of a null is 0, as is that of a column that the group's set has not. Of one column of texts, whose words are their numbers, groups are
//! found by place, and nothing is hashed but a text that a pool shows for the first time.

use super::Within;
use crate::interner::{Interner, Recent};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nestor_model::Value;
use nestor_model::vector::{Data, NO_ROW, Seed, Vector, decimal, digits};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Columns that there are bits for, at most.
const COLUMNS_MAX: usize = 32;

/// Bytes of a group besides its words.
const GROUP_BYTES: usize = 16;

/// Groups by number, in the order in which their first rows came.
pub(crate) struct Words {
    seed: Seed,
    sets: Vec<Vec<usize>>,
    columns: Vec<Column>,
    found: Found,
    /// The words of the groups, [`Words::stride`] of each.
    words: Vec<u64>,
}

/// Where groups are found.
enum Found {
    /// By the only word, or for null.
    One(HashTable<(u64, u32)>, Option<u32>),
    /// By the number that the only word is, or for null.
    Numbered(Vec<u32>, Option<u32>),
    /// By all words: half of their hash and the group, so that a table that grows looks at nothing else.
    Many(HashTable<(u32, u32)>),
}

/// A column of groups.
#[derive(Default)]
struct Column {
    form: Form,
    /// Whole numbers of both widths are alike.
    is_wide: bool,
    texts: Interner,
}

/// What the words of a column are.
#[derive(Clone, Copy, PartialEq, Default)]
enum Form {
    /// There was none yet.
    #[default]
    Nothing,
    Bool,
    Int32,
    Int64,
    /// Digits, with such a scale.
    Decimal(u8),
    /// Numbers of texts.
    Text,
}

/// The words of a column of a chunk, and which of its rows are null.
struct WordsOf<'v> {
    words: Vec<u64>,
    nulls: Option<Cow<'v, [bool]>>,
}

impl Column {
    /// The form of the values of a vector; `None` for what has no words, nothing for nulls.
    fn form(&self, vector: &Vector) -> Option<Form> {
        Some(match &vector.data {
            Data::Same(Value::Null, _) => Form::Nothing,
            Data::Bool(_) | Data::Same(Value::Bool(_), _) => Form::Bool,
            Data::Int32(_) | Data::Same(Value::Int32(_), _) if self.is_wide => Form::Int64,
            Data::Int32(_) | Data::Same(Value::Int32(_), _) => Form::Int32,
            Data::Int64(_) | Data::Same(Value::Int64(_), _) => Form::Int64,
            Data::Decimal { scale, .. } => Form::Decimal(*scale),
            Data::Same(Value::Decimal128(value), _) => Form::Decimal(digits(*value)?.1),
            Data::Text(_) | Data::Same(Value::String(_), _) => Form::Text,
            Data::Double(_) | Data::Values(_) | Data::Same(..) => return None,
        })
    }

    /// The words of a vector; `None` when its values have none that tells them apart from those before.
    fn words<'v>(&mut self, vector: &'v Vector, seed: &Seed) -> Option<WordsOf<'v>> {
        let rows = vector.len();
        let form = self.form(vector)?;
        if form == Form::Nothing {
            return Some(WordsOf {
                words: vec![0; rows],
                nulls: Some(Cow::Owned(vec![true; rows])),
            });
        }
        if self.form == Form::Nothing {
            self.form = form;
        }
        if self.form != form {
            return None;
        }
        let nulls = vector.nulls.as_deref();
        let mut words = match &vector.data {
            Data::Text(texts) => self.texts.words(texts, nulls, seed)?,
            Data::Same(Value::String(text), _) => vec![u64::from(self.texts.number(text, seed)?); rows],
            _ => self.numbers(vector)?,
        };
        if let Some(nulls) = nulls {
            words
                .iter_mut()
                .zip(nulls)
                .filter(|(_, is_null)| **is_null)
                .for_each(|(word, _)| *word = 0);
        }
        Some(WordsOf {
            words,
            nulls: nulls.map(Cow::Borrowed),
        })
    }

    /// The words of values that are no texts.
    fn numbers(&self, vector: &Vector) -> Option<Vec<u64>> {
        let of_int32 = |value: &i32| match self.is_wide {
            true => i64::from(*value).cast_unsigned(),
            false => u64::from(value.cast_unsigned()),
        };
        Some(match &vector.data {
            Data::Bool(values) => values.iter().map(|value| u64::from(*value)).collect(),
            Data::Int32(values) => values.iter().map(of_int32).collect(),
            Data::Int64(values) => values.iter().map(|value| value.cast_unsigned()).collect(),
            Data::Decimal { digits, .. } => digits.iter().map(|digits| digits.cast_unsigned()).collect(),
            Data::Same(value, rows) => {
                let word = match value {
                    Value::Bool(value) => u64::from(*value),
                    Value::Int32(value) => of_int32(value),
                    Value::Int64(value) => value.cast_unsigned(),
                    Value::Decimal128(value) => digits(*value)?.0.cast_unsigned(),
                    _ => return None,
                };
                vec![word; *rows]
            }
            Data::Double(_) | Data::Text(_) | Data::Values(_) => return None,
        })
    }

    /// The words of values that are only looked for, and which of them no group has; `None` when there is none that tells them apart.
    fn known(&self, vector: &Vector, seed: &Seed, recent: &mut Recent) -> Option<(Vec<u64>, Option<Vec<bool>>)> {
        let rows = vector.len();
        let form = self.form(vector)?;
        if form == Form::Nothing || self.form == Form::Nothing {
            return Some((vec![0; rows], Some(vec![true; rows])));
        }
        if self.form != form {
            return None;
        }
        Some(match &vector.data {
            Data::Text(texts) => {
                let (words, is_unknown) = self.texts.known(texts, seed, recent);
                (words, Some(is_unknown))
            }
            Data::Same(Value::String(text), _) => match self.texts.known_number(text, seed) {
                Some(number) => (vec![u64::from(number); rows], None),
                None => (vec![0; rows], Some(vec![true; rows])),
            },
            _ => (self.numbers(vector)?, None),
        })
    }

    fn value(&self, word: u64) -> Value {
        match self.form {
            Form::Nothing => Value::Null,
            Form::Bool => Value::Bool(word != 0),
            Form::Int32 => Value::Int32(word as i32),
            Form::Int64 => Value::Int64(word.cast_signed()),
            Form::Decimal(scale) => Value::Decimal128(decimal(word.cast_signed(), scale)),
            Form::Text => Value::String(self.texts.texts().get(word as usize).into()),
        }
    }
}

impl Words {
    /// No groups by so many columns, in these sets or without any within groups of others; `None` for too many columns, or none.
    pub fn new(width: usize, sets: &[Vec<usize>]) -> Option<Self> {
        if width == 0 || width > COLUMNS_MAX {
            return None;
        }
        let is_one = width == 1 && matches!(sets, [set] if set.len() == 1);
        Some(Self {
            seed: Seed::default(),
            sets: sets.to_vec(),
            columns: (0..width).map(|_| Column::default()).collect(),
            found: match is_one {
                true => Found::One(HashTable::new(), None),
                false => Found::Many(HashTable::new()),
            },
            words: Vec::new(),
        })
    }

    /// No keys of so many columns, which are looked for by others; whole numbers of both widths are alike.
    pub fn of_keys(width: usize) -> Option<Self> {
        let mut own = Self::new(width, &[(0..width).collect()])?;
        own.columns.iter_mut().for_each(|column| column.is_wide = true);
        Some(own)
    }

    /// The whole numbers of a column, if these are what it has and no group is null.
    pub fn whole_numbers(&self, column: usize) -> Option<impl Iterator<Item = i64> + Clone + '_> {
        let is_whole = self
            .columns
            .get(column)
            .is_some_and(|column| column.form == Form::Int64);
        let all = self.words.chunks_exact(self.stride());
        is_whole.then(|| all.map(move |words| words[words.len() - self.columns.len() + column].cast_signed()))
    }

    /// Words of a group.
    fn stride(&self) -> usize {
        match self.found {
            Found::One(..) | Found::Numbered(..) => 1,
            Found::Many(_) => 1 + self.columns.len(),
        }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.words.len() / self.stride()
    }

    /// The words of a group, and of its columns only.
    fn of(&self, group: usize) -> (&[u64], &[u64]) {
        let stride = self.stride();
        let words = &self.words[group * stride..(group + 1) * stride];
        (words, &words[stride - self.columns.len()..])
    }

    /// What a group is within.
    pub fn set(&self, group: usize) -> u32 {
        match self.found {
            Found::One(..) | Found::Numbered(..) => 0,
            Found::Many(_) => self.of(group).0[0] as u32,
        }
    }

    /// Whether a group is made of a column.
    pub fn has(&self, group: usize, column: usize) -> bool {
        let set = self.sets.get(self.set(group) as usize);
        self.sets.is_empty() || set.is_some_and(|set| set.contains(&column))
    }

    fn is_null(&self, group: usize, column: usize) -> bool {
        match &self.found {
            Found::One(_, null) | Found::Numbered(_, null) => *null == Some(group as u32),
            Found::Many(_) => self.of(group).0[0] >> (32 + column) & 1 == 1 || !self.has(group, column),
        }
    }

    /// The values of a group's columns.
    pub fn values(&self, group: usize) -> Vec<Value> {
        (0..self.columns.len())
            .map(|column| self.value(group, column))
            .collect()
    }

    /// The columns of the groups from one to another.
    pub fn columns(&self, from: usize, to: usize) -> Vec<Arc<Vector>> {
        // Bits of nulls are enough where each group has all columns.
        let has_all = matches!(&*self.sets, [set] if (0..self.columns.len()).all(|column| set.contains(&column)));
        let each = self.columns.iter().enumerate().map(|(at, column)| {
            let words = (from..to).map(|group| self.of(group).1[at]);
            let nulls: Vec<bool> = match &self.found {
                Found::Many(_) if has_all => {
                    let heads = (from..to).map(|group| self.of(group).0[0]);
                    heads.map(|head| head >> (32 + at) & 1 == 1).collect()
                }
                _ => (from..to).map(|group| self.is_null(group, at)).collect(),
            };
            let data = match column.form {
                Form::Nothing => return Arc::new(Vector::same(Value::Null, to - from)),
                Form::Text => {
                    let number = |(word, is_null): (u64, &bool)| if *is_null { NO_ROW } else { word as u32 };
                    Data::Text(column.texts.texts().picked(words.zip(&nulls).map(number).collect()))
                }
                Form::Bool => Data::Bool(words.map(|word| word != 0).collect()),
                Form::Int32 => Data::Int32(words.map(|word| word as i32).collect()),
                Form::Int64 => Data::Int64(words.map(u64::cast_signed).collect()),
                Form::Decimal(scale) => Data::Decimal {
                    digits: words.map(u64::cast_signed).collect(),
                    scale,
                },
            };
            let nulls = nulls.contains(&true).then_some(nulls);
            Arc::new(Vector { data, nulls })
        });
        each.collect()
    }

    /// The group of a set without columns.
    pub fn add_empty(&mut self, set: u32) {
        let mut key = vec![0; self.stride()];
        key[0] = u64::from(set);
        self.many(&key, &mut Vec::new());
    }

    /// Adds the group of each row, by what it is within and its values in some columns; returns how many bytes new ones take, `None` when
    /// some value has no word.
    pub(in crate::relation) fn number(
        &mut self,
        within: Within<'_>,
        (columns, keys, rows): (&[usize], &[Arc<Vector>], usize),
        numbers: &mut Vec<u32>,
    ) -> Option<usize> {
        let before = self.bytes();
        let mut of_columns = Vec::with_capacity(columns.len());
        for column in columns {
            of_columns.push(self.columns[*column].words(&keys[*column], &self.seed)?);
        }
        if let Found::Many(_) = self.found {
            let stride = self.stride();
            let mut all = vec![0; rows * stride];
            let each = all.chunks_exact_mut(stride);
            each.enumerate()
                .for_each(|(row, key)| key[0] = u64::from(within.of(row)));
            for (column, of) in columns.iter().zip(&of_columns) {
                let each = all.chunks_exact_mut(stride);
                each.zip(&of.words).for_each(|(key, word)| key[1 + column] = *word);
                if let Some(nulls) = &of.nulls {
                    let each = all.chunks_exact_mut(stride);
                    each.zip(&**nulls)
                        .for_each(|(key, is_null)| key[0] |= u64::from(*is_null) << (32 + column));
                }
            }
            self.many(&all, numbers);
        } else if let Some(WordsOf { words, nulls }) = of_columns.first() {
            if let (Found::One(table, null), Form::Text) = (&self.found, self.columns[0].form)
                && table.is_empty()
            {
                self.found = Found::Numbered(Vec::new(), *null);
            }
            self.one(words, nulls.as_deref(), numbers);
        }
        Some(self.bytes() - before)
    }

    /// As [`Words::number`], for keys of all columns in the only set; `false` when some value has no word.
    pub fn number_all(&mut self, keys: &[Arc<Vector>], rows: usize, numbers: &mut Vec<u32>) -> bool {
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        self.number(Within::Set(0), (&columns, keys, rows), numbers).is_some()
    }

    /// Which of some columns has the most different values, and divides rows best by these; `None` where each has few.
    pub fn dividing(&self, columns: impl Iterator<Item = usize>) -> Option<usize> {
        /// Of fewer different values none divides alone.
        const VALUES_MIN: usize = 64;
        let counted = columns.map(|column| (self.distinct(column), column)).max();
        counted
            .filter(|(values, _)| *values >= VALUES_MIN)
            .map(|(_, column)| column)
    }

    /// How many different values groups have in a column.
    fn distinct(&self, column: usize) -> usize {
        match self.columns[column].form {
            Form::Text => self.columns[column].texts.texts().len(),
            _ => {
                let words = (0..self.len()).map(|group| self.of(group).1[column]);
                words.collect::<HashSet<u64>>().len()
            }
        }
    }

    /// The value that a group has in a column.
    pub fn value(&self, group: usize, column: usize) -> Value {
        match self.is_null(group, column) {
            true => Value::Null,
            false => self.columns[column].value(self.of(group).1[column]),
        }
    }

    /// Of each row the group that has its values, [`NO_ROW`] where there is none; `None` when some value has no word. Nulls are values that groups
    /// have, or there is no group with one. Whoever looks for several chunks keeps `recent` from one to the next, as long as there are no new groups.
    pub fn look_up(
        &self,
        keys: &[Arc<Vector>],
        rows: usize,
        nulls_are_values: bool,
        recent: &mut Vec<Recent>,
    ) -> Option<Vec<u32>> {
        recent.resize_with(self.columns.len(), Recent::default);
        let mut is_unknown = vec![false; rows];
        // Of each row a bit for each column that is null.
        let mut heads: Vec<u64> = vec![0; if nulls_are_values { rows } else { 0 }];
        let mut all = Vec::with_capacity(keys.len());
        for (at, (column, key)) in self.columns.iter().zip(keys).enumerate() {
            let (mut words, mut unknown) = column.known(key, &self.seed, &mut recent[at])?;
            let is_nothing = matches!(key.data, Data::Same(Value::Null, _));
            if nulls_are_values && (is_nothing || key.nulls.is_some()) {
                let is_null = |row: usize| is_nothing || key.nulls.as_ref().is_some_and(|nulls| nulls[row]);
                for row in (0..rows).filter(|row| is_null(*row)) {
                    words[row] = 0;
                    heads[row] |= 1 << (32 + at);
                    unknown.iter_mut().for_each(|unknown| unknown[row] = false);
                }
            }
            let nulls = key.nulls.as_ref().filter(|_| !nulls_are_values);
            for unknown in [unknown.as_ref(), nulls].into_iter().flatten() {
                is_unknown
                    .iter_mut()
                    .zip(unknown)
                    .for_each(|(own, other)| *own |= other);
            }
            all.push(words);
        }
        let stride = self.stride();
        let mut key = vec![0; stride];
        let mut numbers = Vec::with_capacity(rows);
        for (row, is_unknown) in is_unknown.into_iter().enumerate() {
            numbers.push(match &self.found {
                _ if is_unknown => NO_ROW,
                Found::One(_, null) | Found::Numbered(_, null) if heads.get(row).is_some_and(|head| *head != 0) => {
                    null.unwrap_or(NO_ROW)
                }
                Found::One(table, _) => {
                    let word = all[0][row];
                    let hash = self.seed.whole(word.cast_signed());
                    table
                        .find(hash, |(own, _)| *own == word)
                        .map_or(NO_ROW, |known| known.1)
                }
                Found::Numbered(table, _) => table.get(all[0][row] as usize).copied().unwrap_or(NO_ROW),
                Found::Many(table) => {
                    key[0] = heads.get(row).copied().unwrap_or(0);
                    key[1..].iter_mut().zip(&all).for_each(|(own, words)| *own = words[row]);
                    let half = hash_of(&self.seed, &key);
                    let is_same = |(own, group): &(u32, u32)| {
                        let from = *group as usize * stride;
                        *own == half && is_same_key(&self.words[from..from + stride], &key)
                    };
                    table.find(whole(half), is_same).map_or(NO_ROW, |known| known.1)
                }
            });
        }
        Some(numbers)
    }

    /// Bytes that they take, about.
    pub fn bytes(&self) -> usize {
        let texts: usize = self.columns.iter().map(|column| column.texts.bytes()).sum();
        self.words.len() * size_of::<u64>() + self.len() * GROUP_BYTES + texts
    }

    /// The groups of keys of one word.
    fn one(&mut self, keys: &[u64], nulls: Option<&[bool]>, numbers: &mut Vec<u32>) {
        let (seed, words) = (&self.seed, &mut self.words);
        let hash = |word: u64| seed.whole(word.cast_signed());
        let mut add = |word: u64| {
            words.push(word);
            words.len() as u32 - 1
        };
        for (row, word) in keys.iter().enumerate() {
            let is_null = nulls.is_some_and(|nulls| nulls[row]);
            numbers.push(match &mut self.found {
                Found::One(_, null) | Found::Numbered(_, null) if is_null => *null.get_or_insert_with(|| add(0)),
                Found::One(table, _) => match table.entry(hash(*word), |(own, _)| own == word, |(own, _)| hash(*own)) {
                    Entry::Occupied(known) => known.get().1,
                    Entry::Vacant(place) => {
                        let number = add(*word);
                        place.insert((*word, number));
                        number
                    }
                },
                Found::Numbered(table, _) => {
                    let at = *word as usize;
                    if table.len() <= at {
                        table.resize(at + 1, NO_ROW);
                    }
                    if table[at] == NO_ROW {
                        table[at] = add(*word);
                    }
                    table[at]
                }
                Found::Many(_) => 0,
            });
        }
    }

    /// The groups of keys of several words.
    fn many(&mut self, keys: &[u64], numbers: &mut Vec<u32>) {
        let stride = self.stride();
        let Found::Many(table) = &mut self.found else {
            return;
        };
        let seed = &self.seed;
        let halves: Vec<u32> = keys.chunks_exact(stride).map(|key| hash_of(seed, key)).collect();
        for (key, half) in keys.chunks_exact(stride).zip(halves) {
            let words = &self.words;
            let is_same = |(own, group): &(u32, u32)| {
                let from = *group as usize * stride;
                debug_assert!(from + stride <= words.len(), "groups in the table have words");
                *own == half && is_same_key(&words[from..from + stride], key)
            };
            let number = match table.entry(whole(half), is_same, |(own, _)| whole(*own)) {
                Entry::Occupied(known) => known.get().1,
                Entry::Vacant(place) => {
                    let number = (words.len() / stride) as u32;
                    place.insert((half, number));
                    self.words.extend_from_slice(key);
                    number
                }
            };
            numbers.push(number);
        }
    }
}

/// Whether all words are the same; there are few of them.
fn is_same_key(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Half of the hash of a key.
fn hash_of(seed: &Seed, key: &[u64]) -> u32 {
    let hash = key
        .iter()
        .fold(0, |hash, word| seed.mixed(hash, seed.whole(word.cast_signed())));
    (hash >> 32) as u32
}

/// A hash of 64 bits, all of which depend on a half.
fn whole(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::vector::Builder;

    fn vector(values: &[Value]) -> Vector {
        let mut builder = Builder::default();
        values.iter().for_each(|value| builder.push(value.clone()));
        builder.finish()
    }

    #[test]
    fn words_give_back_the_values() {
        let text = |text: &str| Value::String(text.into());
        let columns = [
            [Value::Int32(-1), Value::Null, Value::Int32(i32::MIN), Value::Int32(-1)],
            [
                Value::Int64(i64::MIN),
                Value::Int64(0),
                Value::Null,
                Value::Int64(i64::MIN),
            ],
            [text(""), text("é"), Value::Null, text("")],
            [Value::Bool(true), Value::Null, Value::Bool(false), Value::Bool(true)],
            [1i64, -25, 0, 1].map(|digits| Value::Decimal128(decimal(digits, 2))),
        ];
        for values in &columns {
            for (sets, expected) in [(vec![vec![0]], [0, 1, 2, 0]), (Vec::new(), [0, 1, 2, 0])] {
                let mut words = Words::new(1, &sets).expect("one column");
                let own = Arc::new(vector(values));
                let keys = [own];
                let within = if sets.is_empty() {
                    Within::Groups(&[7; 4])
                } else {
                    Within::Set(0)
                };
                let mut numbers = Vec::new();
                let bytes = words.number(within, (&[0], &keys, 4), &mut numbers);
                assert!(bytes.is_some_and(|bytes| bytes > 0));
                assert_eq!(numbers, expected);
                let back = words.columns(0, 3);
                for (group, value) in values.iter().enumerate().take(3) {
                    let shown = format!("{value:?}");
                    assert_eq!(format!("{:?}", words.values(group)[0]), shown);
                    assert_eq!(format!("{:?}", back[0].value(group)), shown);
                }
                let other = Arc::new(vector(&[Value::Double(0.5)]));
                let keys = [other];
                assert!(words.number(within, (&[0], &keys, 1), &mut numbers).is_none());
            }
        }
    }
}
