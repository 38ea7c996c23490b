//! Accumulators: state machines that take the values of a group (or a window) and give one result.
//!
//! ```text
//! {$sum: "$x"} ──AccumulatorSpec::parse──► spec ──start──► Accumulator ──add(value)*──► result
//! ```
//!
//! The same machines serve `$group`, `$bucket`, `$bucketAuto`, `$setWindowFields` and the operators'
//! expression forms. Those that can take a value back ([`Accumulator::remove`]) let a window slide without
//! starting anew. Source: manual, "Accumulators".

mod average;
mod collect;
mod extremum;
mod first_last;
mod percentile;
mod std_dev;
mod sum;
mod top;

pub use average::Average;
pub use collect::{AddToSet, ConcatArrays, MergeObjects, Push, SetUnion};
pub use extremum::{Extremum, ExtremumN};
pub use first_last::{First, FirstN, Last, LastN};
pub use percentile::{Percentile, percentile_of_sorted};
pub use std_dev::StdDev;
pub use sum::Sum;
pub use top::Top;

use crate::env::{Env, OpContext, Val};
use crate::expr::DIVIDE_BY_ZERO;
use crate::sort::SortSpec;
use crate::{Expr, Scope};
use nestor_model::number::Num;
use nestor_model::statement::work;
use nestor_model::value::EMPTY_DOC;
use nestor_model::{Error, ErrorCode, Result, Value, ValueRef};
use std::sync::Arc;

/// A parsed accumulator.
#[derive(Clone, Debug)]
pub struct AccumulatorSpec {
    /// Its name, `$sum` and so on.
    pub name: &'static str,
    kind: Kind,
    /// What is evaluated for each document.
    input: Expr,
    /// `n` of the `N` family, over the group's key.
    n: Option<Expr>,
    /// `sortBy` of the top and bottom family.
    sort: Option<Arc<SortSpec>>,
    /// `p` of `$percentile`; one value for `$median`.
    percentiles: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Avg,
    Min,
    Max,
    First,
    Last,
    Push,
    AddToSet,
    StdDevPop,
    StdDevSamp,
    MergeObjects,
    Count,
    ConcatArrays,
    SetUnion,
    FirstN,
    LastN,
    MinN,
    MaxN,
    Top,
    Bottom,
    TopN,
    BottomN,
    Median,
    Percentile,
}

const NAMES: [(&str, Kind); 24] = [
    ("$sum", Kind::Sum),
    ("$avg", Kind::Avg),
    ("$min", Kind::Min),
    ("$max", Kind::Max),
    ("$first", Kind::First),
    ("$last", Kind::Last),
    ("$push", Kind::Push),
    ("$addToSet", Kind::AddToSet),
    ("$stdDevPop", Kind::StdDevPop),
    ("$stdDevSamp", Kind::StdDevSamp),
    ("$mergeObjects", Kind::MergeObjects),
    ("$count", Kind::Count),
    ("$concatArrays", Kind::ConcatArrays),
    ("$setUnion", Kind::SetUnion),
    ("$firstN", Kind::FirstN),
    ("$lastN", Kind::LastN),
    ("$minN", Kind::MinN),
    ("$maxN", Kind::MaxN),
    ("$top", Kind::Top),
    ("$bottom", Kind::Bottom),
    ("$topN", Kind::TopN),
    ("$bottomN", Kind::BottomN),
    ("$median", Kind::Median),
    ("$percentile", Kind::Percentile),
];

impl AccumulatorSpec {
    /// True when there is an accumulator of that name.
    pub fn is_known(name: &str) -> bool {
        NAMES.iter().any(|(n, _)| *n == name) || name == "$accumulator"
    }

    /// Parses the argument of the accumulator `name`.
    ///
    /// Errors: 15952 an unknown name, 40237 an array where one expression is wanted, and those of each
    /// accumulator's own options. `$accumulator` needs JavaScript and is refused.
    pub fn parse(name: &str, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        if name == "$accumulator" {
            return Err(Error::new(
                ErrorCode::NotImplemented,
                "$accumulator needs server-side JavaScript, which is not supported",
            ));
        }
        if matches!(argument, ValueRef::Array(_)) {
            return Err(Error::location(
                40237,
                format!("The {name} accumulator is a unary operator"),
            ));
        }
        let Some((name, kind)) = NAMES.iter().find(|(n, _)| *n == name).copied() else {
            return Err(Error::location(15952, format!("unknown group operator '{name}'")));
        };
        match kind {
            Kind::Count => match argument {
                ValueRef::Document(doc) if doc.is_empty() => Ok(Self::plain(name, kind, Expr::constant_of(1))),
                _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
            },
            Kind::FirstN | Kind::LastN | Kind::MinN | Kind::MaxN => Self::parse_n(name, kind, argument, scope),
            Kind::Top | Kind::Bottom | Kind::TopN | Kind::BottomN => Self::parse_top(name, kind, argument, scope),
            Kind::Median | Kind::Percentile => Self::parse_percentile(name, kind, argument, scope),
            _ => Ok(Self::plain(name, kind, Expr::parse(argument, scope)?)),
        }
    }

    /// The accumulator `name` over an expression, for those that take just one. Error: 9 for the others.
    pub fn of_expression(name: &str, input: Expr) -> Result<Self> {
        match NAMES.iter().find(|(n, _)| *n == name).copied() {
            Some((name, kind)) if (kind as u8) < Kind::FirstN as u8 && kind != Kind::Count => {
                Ok(Self::plain(name, kind, input))
            }
            _ => Err(Error::failed_to_parse(format!("{name} does not take an array"))),
        }
    }

    /// Parses `{name: argument}`, one accumulator. Errors: 40234 no such object, 40238 more than one field.
    pub fn parse_object(field: &str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        let not_accumulator = || Error::location(40234, format!("The field '{field}' must be an accumulator object"));
        let ValueRef::Document(doc) = value else {
            return Err(not_accumulator());
        };
        let mut fields = doc.iter();
        let Some((name, argument)) = fields.next().filter(|(name, _)| name.starts_with('$')) else {
            return Err(not_accumulator());
        };
        if fields.next().is_some() {
            return Err(Error::location(
                40238,
                format!("The field '{field}' must specify one accumulator"),
            ));
        }
        Self::parse(name, argument, scope)
    }

    fn plain(name: &'static str, kind: Kind, input: Expr) -> Self {
        Self {
            name,
            kind,
            input,
            n: None,
            sort: None,
            percentiles: None,
        }
    }

    fn parse_n(name: &'static str, kind: Kind, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        let ValueRef::Document(doc) = argument else {
            return Err(Error::location(
                5_787_900,
                format!("specification must be an object; found {name}: {argument:?}"),
            ));
        };
        let (mut n, mut input) = (None, None);
        for (option, value) in doc {
            match option {
                "n" => n = Some(Expr::parse(value, scope)?),
                "input" => input = Some(Expr::parse(value, scope)?),
                _ => {
                    return Err(Error::location(
                        5_787_901,
                        format!("unknown argument for '{name}' operator: {option}"),
                    ));
                }
            }
        }
        let n = n.ok_or_else(|| Error::location(5_787_906, format!("missing value for 'n' in {name}")))?;
        check_constant_n(&n)?;
        let input = input.ok_or_else(|| Error::location(5_787_907, format!("missing value for 'input' in {name}")))?;
        Ok(Self {
            n: Some(n),
            ..Self::plain(name, kind, input)
        })
    }

    fn parse_top(name: &'static str, kind: Kind, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        let ValueRef::Document(doc) = argument else {
            return Err(Error::location(
                5_788_001,
                format!("specification must be an object; found {name}: {argument:?}"),
            ));
        };
        let many = matches!(kind, Kind::TopN | Kind::BottomN);
        let (mut n, mut output, mut sort) = (None, None, None);
        for (option, value) in doc {
            match (option, value) {
                ("n", _) if many => n = Some(Expr::parse(value, scope)?),
                ("output", _) => output = Some(Expr::parse(value, scope)?),
                ("sortBy", ValueRef::Document(spec)) => sort = Some(SortSpec::parse(spec)?.under(scope.collator())),
                ("sortBy", _) => {
                    return Err(Error::location(
                        5_788_604,
                        format!("expected 'sortBy' to already be an object in the arguments to {name}"),
                    ));
                }
                _ => {
                    return Err(Error::location(
                        5_788_002,
                        format!("unknown argument to {name}: {option}"),
                    ));
                }
            }
        }
        if many && n.is_none() {
            return Err(Error::location(5_788_003, format!("missing value for 'n' in {name}")));
        }
        if let Some(n) = &n {
            check_constant_n(n)?;
        }
        let output =
            output.ok_or_else(|| Error::location(5_788_004, format!("missing value for 'output' in {name}")))?;
        let sort = sort.ok_or_else(|| Error::location(5_788_005, format!("missing value for 'sortBy' in {name}")))?;
        Ok(Self {
            n,
            sort: Some(Arc::new(sort)),
            ..Self::plain(name, kind, output)
        })
    }

    fn parse_percentile(name: &'static str, kind: Kind, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        let ValueRef::Document(doc) = argument else {
            return Err(Error::location(
                7_436_100 + i32::from(kind == Kind::Percentile) * 99,
                format!("specification must be an object; found {name}: {argument:?}"),
            ));
        };
        let options = percentile::Options::parse(name, kind == Kind::Percentile, doc, scope)?;
        Ok(Self {
            percentiles: options.p,
            ..Self::plain(name, kind, options.input)
        })
    }

    /// The expression evaluated for each document.
    pub fn input(&self) -> &Expr {
        &self.input
    }

    /// Shows each expression the accumulator evaluates, and the paths it sorts by.
    pub fn visit(&self, visit: &mut dyn FnMut(&Expr), visit_sort: &mut dyn FnMut(&SortSpec)) {
        visit(&self.input);
        if let Some(sort) = &self.sort {
            visit_sort(sort);
        }
    }

    /// A fresh machine. `group` is the group's key: `n` may depend on its fields.
    ///
    /// Errors: 7548606 and neighbours for an `n` that is no positive whole number.
    pub fn start(&self, group: &Value, op: &OpContext) -> Result<Accumulator> {
        let n = || -> Result<usize> {
            let key = match group {
                Value::Document(doc) => doc.as_ref(),
                _ => EMPTY_DOC,
            };
            let n = self.n.as_ref().expect("the N family parses n");
            positive_n(n.eval_ref(&mut Env::new(key, op))?.as_ref())
        };
        let sort = || self.sort.clone().expect("the top family parses sortBy");
        Ok(match self.kind {
            Kind::Sum | Kind::Count => Accumulator::Sum(Sum::default()),
            Kind::Avg => Accumulator::Average(Average::default()),
            Kind::Min => Accumulator::Extremum(Extremum::min(op.collator.as_ref())),
            Kind::Max => Accumulator::Extremum(Extremum::max(op.collator.as_ref())),
            Kind::First => Accumulator::First(First::default()),
            Kind::Last => Accumulator::Last(Last::default()),
            Kind::Push => Accumulator::Push(Push::default()),
            Kind::AddToSet => Accumulator::AddToSet(AddToSet::new(op.collator.as_ref())),
            Kind::StdDevPop => Accumulator::StdDev(StdDev::population()),
            Kind::StdDevSamp => Accumulator::StdDev(StdDev::sample()),
            Kind::MergeObjects => Accumulator::MergeObjects(MergeObjects::default()),
            Kind::ConcatArrays => Accumulator::ConcatArrays(ConcatArrays::default()),
            Kind::SetUnion => Accumulator::SetUnion(SetUnion::new(op.collator.as_ref())),
            Kind::FirstN => Accumulator::FirstN(FirstN::new(n()?)),
            Kind::LastN => Accumulator::LastN(LastN::new(n()?)),
            Kind::MinN => Accumulator::ExtremumN(ExtremumN::min(n()?, op.collator.as_ref())),
            Kind::MaxN => Accumulator::ExtremumN(ExtremumN::max(n()?, op.collator.as_ref())),
            Kind::Top => Accumulator::Top(Box::new(Top::single(sort(), true))),
            Kind::Bottom => Accumulator::Top(Box::new(Top::single(sort(), false))),
            Kind::TopN => Accumulator::Top(Box::new(Top::many(sort(), true, n()?))),
            Kind::BottomN => Accumulator::Top(Box::new(Top::many(sort(), false, n()?))),
            Kind::Median => Accumulator::Percentile(Box::new(Percentile::median())),
            Kind::Percentile => {
                let p = self.percentiles.as_ref().expect("$percentile parses p");
                Accumulator::Percentile(Box::new(Percentile::new(percentile::probabilities(
                    &p.eval_without_document(op)?,
                )?)))
            }
        })
    }

    /// The error of an accumulator as `$group` reports it: division and remainder by zero have codes of their own
    /// there, 4848401 and 4848403, and so has `$mergeObjects` of what is no object, 5911200.
    pub fn group_error(error: Error) -> Error {
        match error.code().number() {
            2 if error.message() == DIVIDE_BY_ZERO => Error::location(4_848_401, error.message()),
            16610 | 5_733_415 => Error::location(4_848_403, error.message()),
            40400 => Error::location(5_911_200, error.message()),
            _ => error,
        }
    }

    /// Evaluates the input on a document and adds it.
    pub fn accumulate<'a>(&'a self, state: &mut Accumulator, env: &mut Env<'a>) -> Result<()> {
        work(1)?;
        if let Accumulator::Top(top) = state {
            let mut key = Vec::new();
            top.sort().key(env.root, env.meta, &mut key)?;
            if !top.would_keep(&key) {
                return Ok(());
            }
            let key = key.into_iter().map(ValueRef::to_value).collect();
            let output = self.input.eval(env)?;
            top.add(key, output);
            return Ok(());
        }
        state.add(self.input.eval_ref(env)?)
    }
}

/// A running accumulator.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Accumulator {
    Sum(Sum),
    Average(Average),
    Extremum(Extremum),
    ExtremumN(ExtremumN),
    First(First),
    Last(Last),
    FirstN(FirstN),
    LastN(LastN),
    Push(Push),
    AddToSet(AddToSet),
    StdDev(StdDev),
    MergeObjects(MergeObjects),
    ConcatArrays(ConcatArrays),
    SetUnion(SetUnion),
    Top(Box<Top>),
    Percentile(Box<Percentile>),
}

impl Accumulator {
    /// Takes a value. `$top` and its family take documents instead, by [`AccumulatorSpec::accumulate`].
    pub fn add(&mut self, value: Val<'_>) -> Result<()> {
        match self {
            Self::Sum(s) => s.add(value.as_ref()),
            Self::Average(s) => s.add(value.as_ref()),
            Self::Extremum(s) => s.add(value),
            Self::ExtremumN(s) => s.add(value),
            Self::First(s) => s.add(value),
            Self::Last(s) => s.add(value),
            Self::FirstN(s) => s.add(value),
            Self::LastN(s) => s.add(value),
            Self::Push(s) => s.add(value),
            Self::AddToSet(s) => s.add(value),
            Self::StdDev(s) => s.add(value.as_ref()),
            Self::MergeObjects(s) => return s.add(value.as_ref()),
            Self::ConcatArrays(s) => return s.add(value.as_ref()),
            Self::SetUnion(s) => return s.add(value.as_ref()),
            Self::Percentile(s) => s.add(value.as_ref()),
            Self::Top(_) => unreachable!("$top and its family go through AccumulatorSpec::accumulate"),
        }
        Ok(())
    }

    /// Takes the oldest value back out. False when this machine cannot; it is unchanged then.
    pub fn remove(&mut self, value: ValueRef<'_>) -> bool {
        match self {
            Self::Sum(s) => s.remove(value),
            Self::Average(s) => s.remove(value),
            Self::StdDev(s) => s.remove(value),
            _ => false,
        }
    }

    /// The result for the values so far; missing counts as null in `$group`'s output.
    pub fn result(&self) -> Value {
        match self {
            Self::Sum(s) => s.result(),
            Self::Average(s) => s.result(),
            Self::Extremum(s) => s.result(),
            Self::ExtremumN(s) => s.result(),
            Self::First(s) => s.result(),
            Self::Last(s) => s.result(),
            Self::FirstN(s) => s.result(),
            Self::LastN(s) => s.result(),
            Self::Push(s) => s.result(),
            Self::AddToSet(s) => s.result(),
            Self::StdDev(s) => s.result(),
            Self::MergeObjects(s) => s.result(),
            Self::ConcatArrays(s) => s.result(),
            Self::SetUnion(s) => s.result(),
            Self::Top(s) => s.result(),
            Self::Percentile(s) => s.result(),
        }
    }

    /// Heap bytes held, roughly. Known without looking at the values.
    pub fn memory(&self) -> usize {
        match self {
            Self::Sum(_) | Self::Average(_) | Self::StdDev(_) => 0,
            Self::Extremum(s) => s.memory(),
            Self::First(s) => s.memory(),
            Self::Last(s) => s.memory(),
            Self::ExtremumN(s) => s.memory(),
            Self::FirstN(s) => s.memory(),
            Self::LastN(s) => s.memory(),
            Self::Push(s) => s.memory(),
            Self::AddToSet(s) => s.memory(),
            Self::MergeObjects(s) => s.memory(),
            Self::ConcatArrays(s) => s.memory(),
            Self::SetUnion(s) => s.memory(),
            Self::Top(s) => s.memory(),
            Self::Percentile(s) => s.memory(),
        }
    }

    /// What was collected, as a value that [`Accumulator::merge`] takes: what a group that leaves memory leaves behind.
    /// It holds no missing value.
    pub fn partial(&self) -> Value {
        match self {
            Self::Sum(s) => s.partial(),
            Self::Average(s) => s.partial(),
            Self::Extremum(s) => s.partial(),
            Self::ExtremumN(s) => s.partial(),
            Self::First(s) => s.partial(),
            Self::Last(s) => s.partial(),
            Self::FirstN(s) => s.partial(),
            Self::LastN(s) => s.partial(),
            Self::Push(s) => s.partial(),
            Self::AddToSet(s) => s.partial(),
            Self::StdDev(s) => s.partial(),
            Self::MergeObjects(s) => s.partial(),
            Self::ConcatArrays(s) => s.partial(),
            Self::SetUnion(s) => s.partial(),
            Self::Top(s) => s.partial(),
            Self::Percentile(s) => s.partial(),
        }
    }

    /// Takes what a machine of the same specification collected from documents that come after those of this one. The
    /// result is that of one machine that took them all; for doubles within the last digit, as their sums depend on
    /// the order.
    pub fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        match self {
            Self::Sum(s) => s.merge(partial),
            Self::Average(s) => s.merge(partial),
            Self::Extremum(s) => s.merge(partial),
            Self::ExtremumN(s) => s.merge(partial),
            Self::First(s) => s.merge(partial),
            Self::Last(s) => s.merge(partial),
            Self::FirstN(s) => s.merge(partial),
            Self::LastN(s) => s.merge(partial),
            Self::Push(s) => s.merge(partial),
            Self::AddToSet(s) => s.merge(partial),
            Self::StdDev(s) => s.merge(partial),
            // Their partial results are values as they take them.
            Self::MergeObjects(s) => return s.add(partial),
            Self::ConcatArrays(s) => return s.add(partial),
            Self::SetUnion(s) => return s.add(partial),
            Self::Top(s) => s.merge(partial),
            Self::Percentile(s) => s.merge(partial),
        }
        Ok(())
    }
}

/// The items of an array, none of anything else.
fn items(value: ValueRef<'_>) -> impl Iterator<Item = ValueRef<'_>> {
    value.as_array().into_iter().flatten()
}

/// Bytes a value holds, itself included, roughly.
pub fn value_bytes(value: &Value) -> usize {
    value.weight()
}

fn check_constant_n(n: &Expr) -> Result<()> {
    match n.constant() {
        Some(value) => positive_n(value.as_ref()).map(|_| ()),
        None => Ok(()),
    }
}

/// A positive whole number. Errors: 7548606 and 7548607... as MongoDB reports them for all of the family.
pub(crate) fn positive_n(value: ValueRef<'_>) -> Result<usize> {
    let whole = Num::from_ref(value).and_then(Num::to_i64_exact);
    match whole {
        Some(n) if n > 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(Error::location(
            7_548_606,
            format!("'n' must be a positive whole number, found {value:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Document;
    use nestor_model::extjson::{self, Form};

    /// The results of an accumulator over documents, all in one group.
    fn run(spec: &str, docs: &[&str]) -> String {
        let spec = extjson::parse_document(spec).expect("valid JSON");
        let spec = match AccumulatorSpec::parse_object("x", Value::from(spec).as_ref(), &mut Scope::new()) {
            Ok(spec) => spec,
            Err(error) => return format!("error {}", error.code().number()),
        };
        let op = OpContext::default();
        let docs: Vec<Document> = docs
            .iter()
            .map(|doc| extjson::parse_document(doc).expect("valid JSON"))
            .collect();
        let collect = |docs: &[Document]| -> Result<Accumulator> {
            let mut state = spec.start(&Value::Null, &op).expect("a constant n");
            for doc in docs {
                spec.accumulate(&mut state, &mut Env::new(doc.as_ref(), &op))?;
            }
            Ok(state)
        };
        let state = match collect(&docs) {
            Ok(state) => state,
            Err(error) => return format!("error {}", error.code().number()),
        };
        // Wherever the documents are cut, what both parts collected gives the result of the whole.
        for at in 0..=docs.len() {
            let mut merged = collect(&[]).expect("no documents");
            for part in [&docs[..at], &docs[at..]] {
                let partial = collect(part).expect("sound documents").partial();
                let stored = nestor_model::doc! { "s": partial }.to_raw();
                let partial = stored.as_raw().get("s").expect("a partial result is never missing");
                merged.merge(partial).expect("states of the same kind");
            }
            let is_same = match (merged.result(), state.result()) {
                (Value::Double(a), Value::Double(b)) => a == b || (a - b).abs() <= 1e-15 * b.abs(),
                (a, b) => a.as_ref().is_missing() == b.as_ref().is_missing() && format!("{a:?}") == format!("{b:?}"),
            };
            assert!(
                is_same,
                "{:?} cut at {at}: {:?} for {:?}",
                spec.name,
                merged.result(),
                state.result()
            );
        }
        extjson::to_string(&state.result(), Form::Canonical)
            .replace("{\"$number", "")
            .replace("\"}", "")
            .replace("\":\"", " ")
    }

    #[test]
    fn sums_keep_the_widest_type() {
        for (docs, expected) in [
            (vec![], "Int 0"),
            (vec![r#"{"x":1}"#, r#"{"x":"a"}"#, r#"{}"#, r#"{"x":2}"#], "Int 3"),
            (vec![r#"{"x":2147483647}"#, r#"{"x":1}"#], "Long 2147483648"),
            (vec![r#"{"x":1}"#, r#"{"x":{"$numberLong":"1"}}"#], "Long 2"),
            (
                vec![r#"{"x":9223372036854775807}"#, r#"{"x":1}"#],
                "Double 9.223372036854776e18",
            ),
            (
                vec![r#"{"x":0.1}"#, r#"{"x":0.2}"#, r#"{"x":-0.3}"#],
                "Double 2.7755575615628914e-17",
            ),
            (vec![r#"{"x":1}"#, r#"{"x":{"$numberDecimal":"0.10"}}"#], "Decimal 1.10"),
            (
                vec![
                    r#"{"x":{"$numberLong":"-9223372036854775807"}}"#,
                    r#"{"x":-9}"#,
                    r#"{"x":0.5}"#,
                ],
                "Double -9.223372036854776e18",
            ),
            (
                vec![r#"{"x":{"$numberDouble":"Infinity"}}"#, r#"{"x":1}"#, r#"{"x":-1.5}"#],
                "Double Infinity",
            ),
        ] {
            assert_eq!(run(r#"{"$sum":"$x"}"#, &docs), expected, "{docs:?}");
        }
        assert_eq!(run(r#"{"$count":{}}"#, &["{}", "{}"]), "Int 2");
    }

    #[test]
    fn statistics() {
        let docs = [r#"{"x":1}"#, r#"{"x":2}"#, r#"{"x":"no"}"#, r#"{"x":6}"#];
        assert_eq!(run(r#"{"$avg":"$x"}"#, &docs), "Double 3.0");
        assert_eq!(run(r#"{"$avg":"$y"}"#, &docs), "null");
        assert_eq!(run(r#"{"$stdDevPop":"$x"}"#, &docs), "Double 2.160246899469287");
        assert_eq!(run(r#"{"$stdDevSamp":"$x"}"#, &docs[..1]), "null");
        assert_eq!(
            run(r#"{"$median":{"input":"$x","method":"approximate"}}"#, &docs),
            "Double 2.0"
        );
        assert_eq!(
            run(
                r#"{"$percentile":{"input":"$x","p":[0.5,0.95],"method":"approximate"}}"#,
                &docs
            ),
            "[Double 2.0,Double 6.0]"
        );
    }

    #[test]
    fn picking_values() {
        let docs = [
            r#"{"x":3,"y":1}"#,
            r#"{"y":5}"#,
            r#"{"x":null}"#,
            r#"{"x":1,"y":2}"#,
            r#"{"x":2,"y":9}"#,
        ];
        for (spec, expected) in [
            (r#"{"$min":"$x"}"#, "Int 1"),
            (r#"{"$max":"$x"}"#, "Int 3"),
            (r#"{"$first":"$x"}"#, "Int 3"),
            (r#"{"$last":"$x"}"#, "Int 2"),
            (r#"{"$push":"$x"}"#, "[Int 3,null,Int 1,Int 2]"),
            (r#"{"$firstN":{"n":2,"input":"$x"}}"#, "[Int 3,null]"),
            (r#"{"$lastN":{"n":2,"input":"$x"}}"#, "[Int 1,Int 2]"),
            (r#"{"$minN":{"n":2,"input":"$x"}}"#, "[Int 1,Int 2]"),
            (r#"{"$maxN":{"n":2,"input":"$x"}}"#, "[Int 3,Int 2]"),
            (r#"{"$top":{"sortBy":{"y":-1},"output":"$x"}}"#, "Int 2"),
            (r#"{"$bottom":{"sortBy":{"y":1},"output":"$x"}}"#, "Int 2"),
            (r#"{"$topN":{"n":2,"sortBy":{"y":-1},"output":"$y"}}"#, "[Int 9,Int 5]"),
            (
                r#"{"$bottomN":{"n":2,"sortBy":{"y":-1},"output":"$y"}}"#,
                "[Int 1,null]",
            ),
            (r#"{"$min":"$z"}"#, "null"),
        ] {
            assert_eq!(run(spec, &docs), expected, "{spec}");
        }
    }

    #[test]
    fn collecting_values() {
        assert_eq!(
            run(
                r#"{"$addToSet":"$x"}"#,
                &[r#"{"x":1}"#, r#"{"x":1.0}"#, r#"{"x":2}"#, "{}"]
            ),
            "[Int 1,Int 2]"
        );
        assert_eq!(
            run(
                r#"{"$mergeObjects":"$x"}"#,
                &[r#"{"x":{"a":1,"b":2}}"#, "{}", r#"{"x":{"b":"z"}}"#]
            ),
            r#"{"a":Int 1,"b z"#
        );
        assert_eq!(run(r#"{"$mergeObjects":"$x"}"#, &[r#"{"x":1}"#]), "error 40400");
        assert_eq!(
            run(r#"{"$concatArrays":"$x"}"#, &[r#"{"x":[1,2]}"#, "{}", r#"{"x":[1]}"#]),
            "[Int 1,Int 2,Int 1]"
        );
        assert_eq!(
            run(r#"{"$setUnion":"$x"}"#, &[r#"{"x":[1,2]}"#, r#"{"x":[1]}"#]),
            "[Int 1,Int 2]"
        );
        assert_eq!(run(r#"{"$setUnion":"$x"}"#, &[r#"{"x":null}"#]), "error 14");
    }

    #[test]
    fn bad_accumulators() {
        for (spec, code) in [
            ("{}", 40234),
            (r#"{"sum":1}"#, 40234),
            (r#"{"$sum":1,"$avg":1}"#, 40238),
            (r#"{"$sum":[1]}"#, 40237),
            (r#"{"$add":1}"#, 15952),
            (r#"{"$count":1}"#, 14),
            (r#"{"$firstN":{"input":1}}"#, 5_787_906),
            (r#"{"$firstN":{"input":1,"n":0}}"#, 7_548_606),
            (r#"{"$topN":{"sortBy":{"a":1},"output":1}}"#, 5_788_003),
        ] {
            assert_eq!(run(spec, &[]), format!("error {code}"), "{spec}");
        }
    }
}
