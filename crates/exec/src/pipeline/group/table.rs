//! The groups that are in memory, and how much of it they hold.

use hashbrown::HashTable;
use nestor_model::{Result, Value, ValueRef};
use nestor_query::accumulator::{Accumulator, value_bytes};
use nestor_query::collation;
use nestor_query::env::{Env, OpContext};
use nestor_query::stage::{AccumulatorSpec, Group};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

/// A group.
pub(super) struct Bucket {
    pub(super) hash: u64,
    pub(super) key: Value,
    /// `states[f]` is of output field `f`.
    pub(super) states: Vec<Accumulator>,
    /// When its first row came ([`Table::set_now`]): the key is what that one has.
    pub(super) first: u64,
}

/// Groups by their keys.
///
/// `held` follows every change by what it changed, so that asking for it costs nothing however many groups there are.
pub(super) struct Table {
    group: Arc<Group>,
    hasher: RandomState,
    /// Positions in `buckets`.
    index: HashTable<u32>,
    buckets: Vec<Bucket>,
    held: usize,
    /// How often the groups were taken out.
    generation: u64,
    /// When rows come that are added now: later ones have larger numbers.
    now: u64,
}

impl Table {
    pub(super) fn new(group: Arc<Group>) -> Self {
        Self {
            group,
            hasher: RandomState::new(),
            index: HashTable::new(),
            buckets: Vec::new(),
            held: 0,
            generation: 0,
            now: 0,
        }
    }

    /// Rows that are added from now on come then.
    pub(super) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// When rows come that are added now.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Bytes that the groups hold, about.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Takes the groups out; what remains is empty.
    pub(super) fn take(&mut self) -> Vec<Bucket> {
        self.index.clear();
        self.held = 0;
        self.generation += 1;
        std::mem::take(&mut self.buckets)
    }

    /// Adds the document of `env` to its group.
    pub(super) fn add<'e>(&'e mut self, env: &mut Env<'e>, op: &OpContext) -> Result<()> {
        let Self {
            group,
            hasher,
            index,
            buckets,
            held,
            now,
            ..
        } = self;
        let group: &'e Group = group;
        let key = group.id.eval_ref(env)?;
        // A missing key groups with null.
        let key = if key.is_missing() { ValueRef::Null } else { key.as_ref() };
        let hash = {
            let mut hasher = hasher.build_hasher();
            collation::hash(key, op.collator.as_ref(), &mut hasher);
            hasher.finish()
        };
        let at = find_or_start(group, index, buckets, held, (hash, key, *now), op)?;
        let states = &mut buckets[at].states;
        for (field, state) in group.fields.iter().zip(states) {
            let before = state.memory();
            field
                .accumulator
                .accumulate(state, env)
                .map_err(AccumulatorSpec::group_error)?;
            *held = *held + state.memory() - before;
        }
        Ok(())
    }

    /// The position of the group of a key, which is made if it is not there.
    pub(super) fn group_of(&mut self, key: ValueRef<'_>, op: &OpContext) -> Result<usize> {
        self.group_from(key, self.now, op)
    }

    /// The same for rows the first of which came at another time: where it came before all others its key is that of the group.
    pub(super) fn group_from(&mut self, key: ValueRef<'_>, first: u64, op: &OpContext) -> Result<usize> {
        // A missing key groups with null.
        let key = if key.is_missing() { ValueRef::Null } else { key };
        let mut hasher = self.hasher.build_hasher();
        collation::hash(key, op.collator.as_ref(), &mut hasher);
        let hash = hasher.finish();
        let (index, buckets, held) = (&mut self.index, &mut self.buckets, &mut self.held);
        find_or_start(&self.group, index, buckets, held, (hash, key, first), op)
    }

    /// How often the groups were taken out: positions of groups are the same as long as this is.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Calls back with the accumulator of an output field of the group at a position.
    #[inline]
    pub(super) fn change_state(
        &mut self,
        at: usize,
        field: usize,
        change: impl FnOnce(&mut Accumulator) -> Result<()>,
    ) -> Result<()> {
        let state = &mut self.buckets[at].states[field];
        let before = state.memory();
        let result = change(state);
        self.held = self.held + state.memory() - before;
        result
    }

    /// Calls back with the accumulator of each output field of the group at a position.
    pub(super) fn each_state(
        &mut self,
        at: usize,
        mut each: impl FnMut(usize, &mut Accumulator) -> Result<()>,
    ) -> Result<()> {
        for (field, state) in self.buckets[at].states.iter_mut().enumerate() {
            let before = state.memory();
            each(field, state)?;
            self.held = self.held + state.memory() - before;
        }
        Ok(())
    }

    /// Adds what a group collected before it left memory: `partials[f]` is of output field `f`.
    pub(super) fn merge<'p>(
        &mut self,
        (hash, first): (u64, u64),
        key: ValueRef<'p>,
        partials: impl Iterator<Item = ValueRef<'p>>,
        op: &OpContext,
    ) -> Result<()> {
        let Self {
            group,
            index,
            buckets,
            held,
            ..
        } = self;
        let at = find_or_start(group, index, buckets, held, (hash, key, first), op)?;
        for (state, partial) in buckets[at].states.iter_mut().zip(partials) {
            let before = state.memory();
            state.merge(partial).map_err(AccumulatorSpec::group_error)?;
            *held = *held + state.memory() - before;
        }
        Ok(())
    }
}

/// The position of a key's group, which is made if it is not there.
fn find_or_start(
    group: &Group,
    index: &mut HashTable<u32>,
    buckets: &mut Vec<Bucket>,
    held: &mut usize,
    (hash, key, first): (u64, ValueRef<'_>, u64),
    op: &OpContext,
) -> Result<usize> {
    let found = index.find(hash, |at| {
        let bucket = &buckets[*at as usize];
        bucket.hash == hash && collation::equal(bucket.key.as_ref(), key, op.collator.as_ref())
    });
    if let Some(at) = found {
        let (at, bucket) = (*at as usize, &mut buckets[*at as usize]);
        if first < bucket.first {
            bucket.first = first;
            let before = value_bytes(&bucket.key);
            bucket.key = key.to_value();
            *held = *held + value_bytes(&bucket.key) - before;
        }
        return Ok(at);
    }
    let key = key.to_value();
    let states: Vec<Accumulator> = group
        .fields
        .iter()
        .map(|field| field.accumulator.start(&key, op))
        .collect::<Result<_>>()?;
    *held += bucket_bytes(&key, &states);
    let at = buckets.len();
    buckets.push(Bucket {
        hash,
        key,
        states,
        first,
    });
    index.insert_unique(hash, at as u32, |at| buckets[*at as usize].hash);
    Ok(at)
}

fn bucket_bytes(key: &Value, states: &[Accumulator]) -> usize {
    let collected: usize = states.iter().map(Accumulator::memory).sum();
    // The last part stands for the table and for what allocations cost beside their contents.
    size_of::<Bucket>() + value_bytes(key) + size_of_val(states) + collected + 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, doc};
    use nestor_query::Expr;
    use nestor_query::Scope;

    const FIELDS: [&str; 12] = [
        "$sum",
        "$min",
        "$max",
        "$first",
        "$last",
        "$push",
        "$addToSet",
        "$avg",
        "$stdDevPop",
        "$mergeObjects",
        "$concatArrays",
        "$setUnion",
    ];

    fn table() -> Table {
        let mut scope = Scope::new();
        let fields = FIELDS.iter().map(|name| {
            let input = match *name {
                "$mergeObjects" => "$o",
                "$concatArrays" | "$setUnion" => "$a",
                _ => "$v",
            };
            let input = Expr::parse(ValueRef::String(input), &mut scope).expect("an expression");
            let spec = AccumulatorSpec::of_expression(name, input).expect("takes one expression");
            ((*name).into(), spec)
        });
        let fields = fields.collect();
        let id = Expr::parse(ValueRef::String("$k"), &mut scope).expect("an expression");
        Table::new(Arc::new(Group::new(id, fields)))
    }

    fn document(at: i64) -> Document {
        let text = "x".repeat((at * 37 % 101) as usize);
        doc! {
            "k": at * at % 7,
            "v": if at % 3 == 0 { Value::from(text.as_str()) } else { Value::Int64(at) },
            "o": doc! { "a": text.as_str(), "b": at },
            "a": vec![Value::Int64(at % 5), Value::from(text.as_str())],
        }
    }

    fn measured(table: &Table) -> usize {
        let bytes = |bucket: &Bucket| bucket_bytes(&bucket.key, &bucket.states);
        table.buckets().iter().map(bytes).sum()
    }

    #[test]
    fn what_is_held_is_what_measuring_all_groups_gives() {
        let op = OpContext::default();
        let (mut table, mut merged) = (table(), table());
        for at in 0..500 {
            let doc = document(at);
            table
                .add(&mut Env::new(doc.as_ref(), &op), &op)
                .expect("sound documents");
            assert_eq!(table.held(), measured(&table), "after document {at}");
            if at % 50 == 49 {
                for bucket in table.take() {
                    let partials: Vec<Value> = bucket.states.iter().map(Accumulator::partial).collect();
                    let partials = partials.iter().map(Value::as_ref);
                    merged
                        .merge((bucket.hash, bucket.first), bucket.key.as_ref(), partials, &op)
                        .expect("states of the same kind");
                    assert_eq!(merged.held(), measured(&merged));
                }
                assert_eq!((table.held(), table.len()), (0, 0));
            }
        }
        assert_eq!(merged.len(), 4, "squares modulo seven");
    }
}
