//! Accumulators as stages write them: `{$sum: expression}`, `{$topN: {n, sortBy, output}}`.
//!
//! ```text
//! {$sum: "$x"} ──AccumulatorSpec::parse──► spec ──start──► Accumulator ──accumulate(document)*──► result
//! ```

use crate::accumulator::{Accumulator, Argument, Definition, Scripts, Settings, Steps, positive_n, probabilities};
use crate::env::{Env, OpContext};
use crate::expr::args::Named;
use crate::expr::{DIVIDE_BY_ZERO, Deps, PercentileOptions, script};
use crate::sort::{SortBy, SortSpec};
use crate::{Expr, Scope};
use nestor_model::statement::work;
use nestor_model::value::EMPTY_DOC;
use nestor_model::{Error, Path, Result, Value, ValueRef};
use std::sync::Arc;

/// A parsed accumulator.
#[derive(Clone, Debug)]
pub struct AccumulatorSpec {
    definition: &'static Definition,
    /// The arguments that are evaluated for each document.
    input: Expr,
    /// `n`, over the group's key.
    n: Option<Expr>,
    /// `sortBy`.
    sort: Option<Arc<SortSpec>>,
    /// `p` of `$percentile`.
    percentiles: Option<Expr>,
    /// The functions of `$accumulator`.
    scripts: Option<Arc<Scripts>>,
    /// The arguments, over the group's key, of the function that makes the first state.
    init_args: Option<Expr>,
}

impl AccumulatorSpec {
    /// True when there is an accumulator of that name.
    pub fn is_known(name: &str) -> bool {
        Definition::named(name).is_some_and(|definition| definition.name != "$_internalJsReduce")
    }

    /// Parses the argument of the accumulator `name`.
    ///
    /// Errors: 15952 an unknown name, 40237 an array where one expression is wanted, and those of each
    /// accumulator's own options.
    pub fn parse(name: &str, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        if matches!(argument, ValueRef::Array(_)) {
            return Err(Error::location(
                40237,
                format!("The {name} accumulator is a unary operator"),
            ));
        }
        let known = Definition::named(name).filter(|known| known.name != "$_internalJsReduce" || scope.is_map_reduce());
        let Some(definition) = known else {
            return Err(Error::location(15952, format!("unknown group operator '{name}'")));
        };
        match definition.argument {
            Argument::Nothing => match argument {
                ValueRef::Document(doc) if doc.is_empty() => Ok(Self::plain(definition, Expr::constant_of(1))),
                _ => Err(Error::type_mismatch(format!(
                    "{name} takes no arguments, i.e. {name}:{{}}"
                ))),
            },
            Argument::Expression => Ok(Self::plain(definition, Expr::parse(argument, scope)?)),
            Argument::InputAndN => Self::parse_n(definition, argument, scope),
            Argument::Sorted { with_n } => Self::parse_sorted(definition, with_n, argument, scope),
            Argument::Script if definition.name == "$accumulator" => {
                scope.check_scripts(name)?;
                Self::parse_scripts(definition, argument, scope)
            }
            Argument::Script => Ok(Self {
                scripts: Some(Arc::new(Scripts {
                    steps: Steps::Reduce(script::function(name, "reduce", argument)?),
                    globals: scope.script_globals(),
                })),
                ..Self::plain(definition, Expr::field("emits")?)
            }),
            Argument::Percentile { with_p } => {
                let options = PercentileOptions::parse(definition.name, with_p, argument, scope)?;
                Ok(Self {
                    percentiles: options.p,
                    ..Self::plain(definition, options.input)
                })
            }
        }
    }

    /// The accumulator `name` over an expression, for those that take just one. Error: 9 for the others.
    pub fn of_expression(name: &str, input: Expr) -> Result<Self> {
        match Definition::named(name) {
            Some(definition) if definition.argument == Argument::Expression => Ok(Self::plain(definition, input)),
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

    /// The expression whose value is all that the machine takes of a document, if there is one such.
    pub fn only_input(&self) -> Option<&Expr> {
        let is_one = matches!(self.definition.argument, Argument::Expression | Argument::Nothing);
        is_one.then_some(&self.input)
    }

    /// The accumulator with what `of` says in the place of paths of the document, as [`Expr::substituted`].
    pub fn substituted(&self, of: &mut dyn FnMut(&Path) -> Option<Expr>) -> Option<Self> {
        // Orders are over paths.
        if self.sort.is_some() {
            return None;
        }
        Some(Self {
            input: self.input.substituted(of)?,
            ..self.clone()
        })
    }

    fn plain(definition: &'static Definition, input: Expr) -> Self {
        Self {
            definition,
            input,
            n: None,
            sort: None,
            percentiles: None,
            scripts: None,
            init_args: None,
        }
    }

    fn parse_n(definition: &'static Definition, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        let name = definition.name;
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
            ..Self::plain(definition, input)
        })
    }

    fn parse_sorted(
        definition: &'static Definition,
        with_n: bool,
        argument: ValueRef<'_>,
        scope: &mut Scope,
    ) -> Result<Self> {
        let name = definition.name;
        let ValueRef::Document(doc) = argument else {
            return Err(Error::location(
                5_788_001,
                format!("specification must be an object; found {name}: {argument:?}"),
            ));
        };
        let (mut n, mut output, mut sort) = (None, None, None);
        for (option, value) in doc {
            match (option, value) {
                ("n", _) if with_n => n = Some(Expr::parse(value, scope)?),
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
        if with_n && n.is_none() {
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
            ..Self::plain(definition, output)
        })
    }

    /// `{init, initArgs, accumulate, accumulateArgs, merge, finalize, lang}`.
    ///
    /// Errors: 9 (FailedToParse) for a field that is unknown or missing, or another language; 14 for a function that is neither text
    /// nor code; 238 when scripts are not run.
    fn parse_scripts(definition: &'static Definition, argument: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        const FAILED: i32 = 9;
        let name = definition.name;
        let named = Named {
            not_object: FAILED,
            unknown: FAILED,
            fields: &[
                ("init", Some(FAILED)),
                ("initArgs", None),
                ("accumulate", Some(FAILED)),
                ("accumulateArgs", Some(FAILED)),
                ("merge", Some(FAILED)),
                ("finalize", None),
                ("lang", Some(FAILED)),
            ],
        };
        let fields = named.split(name, argument)?;
        script::check_language(name, fields[6])?;
        let mut args_of = |at: usize| match fields[at] {
            ValueRef::Missing => Ok(None),
            given => Expr::parse(given, scope).map(Some),
        };
        let (init_args, input) = (args_of(1)?, args_of(3)?);
        let function = |field: &str, at: usize| script::function(name, field, fields[at]);
        let steps = Steps::Accumulate {
            init: function("init", 0)?,
            accumulate: function("accumulate", 2)?,
            merge: function("merge", 4)?,
            finalize: match fields[5] {
                ValueRef::Missing => None,
                _ => Some(function("finalize", 5)?),
            },
        };
        Ok(Self {
            scripts: Some(Arc::new(Scripts {
                steps,
                globals: scope.script_globals(),
            })),
            init_args,
            ..Self::plain(definition, input.unwrap_or_else(|| Expr::constant_of(Value::Null)))
        })
    }

    /// Its name, `$sum` and so on.
    pub fn name(&self) -> &'static str {
        self.definition.name
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

    /// Adds what it reads of a document.
    pub fn dependencies(&self, deps: &mut Deps) {
        self.input.dependencies(deps);
        self.sort_dependencies(deps);
    }

    /// Adds what it orders by.
    pub fn sort_dependencies(&self, deps: &mut Deps) {
        for part in self.sort.iter().flat_map(|sort| sort.parts()) {
            match &part.by {
                SortBy::Path(path) => deps.add_path(path),
                SortBy::Meta(name) => _ = deps.metadata.insert(*name),
            }
        }
    }

    /// A fresh machine. `group` is the group's key: `n` may depend on its fields.
    ///
    /// Errors: 7548606 and neighbours for an `n` that is no positive whole number.
    pub fn start(&self, group: &Value, op: &OpContext) -> Result<Accumulator> {
        let mut settings = Settings {
            collator: op.collator.as_ref(),
            sort: self.sort.clone(),
            ..Settings::default()
        };
        if let Some(n) = &self.n {
            let key = match group {
                Value::Document(doc) => doc.as_ref(),
                _ => EMPTY_DOC,
            };
            settings.n = positive_n(n.eval_ref(&mut Env::new(key, op))?.as_ref())?;
        }
        if let Some(scripts) = &self.scripts {
            if let Steps::Accumulate { init, .. } = &scripts.steps {
                let key = match group {
                    Value::Document(doc) => doc.as_ref(),
                    _ => EMPTY_DOC,
                };
                let args = match &self.init_args {
                    Some(args) => args.eval(&mut Env::new(key, op))?,
                    None => Value::Null,
                };
                let args: Vec<ValueRef<'_>> = args.as_ref().as_array().into_iter().flatten().collect();
                settings.initial = init.call(scripts.globals.as_ref(), ValueRef::Missing, &args)?;
            }
            settings.scripts = Some(scripts.clone());
        }
        if let Some(p) = &self.percentiles {
            settings.probabilities = probabilities(&p.eval_without_document(op)?)?;
        }
        Ok((self.definition.start)(settings))
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
            top.insert(key, output);
            return Ok(());
        }
        let input = self.input.eval_ref(env)?;
        if self.definition.argument == Argument::Script
            && self.definition.name == "$accumulator"
            && !matches!(input.as_ref(), ValueRef::Array(_))
        {
            return Err(Error::failed_to_parse(
                "$accumulator requires 'accumulateArgs' to evaluate to an array",
            ));
        }
        state.add(input)
    }
}

fn check_constant_n(n: &Expr) -> Result<()> {
    match n.constant() {
        Some(value) => positive_n(value.as_ref()).map(|_| ()),
        None => Ok(()),
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
                spec.name(),
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
