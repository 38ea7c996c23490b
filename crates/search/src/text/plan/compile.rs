//! From operators to nodes.

use super::automaton::Automaton;
use super::node::{Boolean, Node, Phrase, Scoring, SpanNode, SpanTree, Term, Weight};
use super::terms::{Context, TextPath, Word, needs_positions, words};
use crate::operand::{refuse, refused};
use crate::text::ask::{
    Aggregate, Asked, AskedPath, CLAUSES_MAX, Clause, Compound, Fuzzy, GeoAsk, Limits, Occur, Operator, Origin,
    Pattern, QueryNode, Score, Span, SpanClause,
};
use crate::text::definition::{ROOT, ScopeId};
use crate::text::mapping::{Level, Types};
use crate::text::store::{Atom, FieldKey, Kind};
use crate::text::synonyms::{self, Synonyms};
use nestor_model::{DocRef, Result, ValueRef};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Terms of a whole query: those of many fields, and those near what is asked for.
const TERMS_MAX: usize = 100_000;
/// Terms by which `moreLikeThis` looks for what is like documents.
const LIKE_TERMS: usize = 25;

/// Makes operators ready for a state of an index.
pub(in crate::text) struct Compiler<'a> {
    context: Context<'a>,
    /// The facet that is counted: operators that spare it are as if they were not there.
    facet: Option<&'a str>,
    /// Terms that were made so far.
    terms: Cell<usize>,
}

impl<'a> Compiler<'a> {
    pub(in crate::text) fn new(context: Context<'a>, facet: Option<&'a str>) -> Self {
        Self {
            context,
            facet,
            terms: Cell::new(0),
        }
    }

    /// The node of an operator within a scope.
    ///
    /// Errors: 8 for what the index cannot tell; those of the statement's interrupt.
    pub(in crate::text) fn clause(&self, scope: ScopeId, clause: &'a Clause) -> Result<Node<'a>> {
        if self
            .facet
            .is_some_and(|facet| clause.spares.iter().any(|name| name == facet))
        {
            return Ok(Node::All(scope));
        }
        let aggregate = match &clause.score {
            Some(Score::Embedded { aggregate, .. }) => *aggregate,
            _ => Aggregate::Sum,
        };
        let node = self.operator(scope, &clause.operator, aggregate)?;
        Ok(scored(node, scope, clause.score.as_ref()))
    }

    fn operator(&self, scope: ScopeId, operator: &'a Operator, aggregate: Aggregate) -> Result<Node<'a>> {
        match operator {
            Operator::All => Ok(Node::All(scope)),
            Operator::Text {
                asked,
                all,
                fuzzy,
                synonyms,
            } => self.text(scope, asked, *all, *fuzzy, self.synonyms(synonyms)?),
            Operator::Phrase { asked, slop, synonyms } => self.phrase(scope, asked, *slop, self.synonyms(synonyms)?),
            Operator::Pattern {
                asked,
                pattern,
                allow_analyzed,
            } => self.pattern(scope, asked, *pattern, *allow_analyzed),
            Operator::Autocomplete {
                query,
                path,
                sequential,
                fuzzy,
            } => self.autocomplete(scope, query, path, *sequential, *fuzzy),
            Operator::Compound(compound) => self.compound(scope, compound),
            Operator::Equals { path, value } => self.equals(scope, path, value),
            Operator::In { paths, values } => self.listed(scope, paths, values),
            Operator::Range { paths, limits } => self.range(scope, paths, limits),
            Operator::Near { paths, origin, pivot } => self.near(scope, paths, origin, *pivot),
            Operator::Exists { path } => {
                self.context.types(scope, path)?;
                Ok(Node::Present(FieldKey::new(scope, Kind::Exists, path)))
            }
            Operator::Geo { paths, ask } => self.geo(scope, paths, ask),
            Operator::QueryString { default_path, query } => self.query_string(scope, default_path, query),
            Operator::MoreLikeThis { .. } if scope != ROOT => {
                refuse!("moreLikeThis is not supported within embedded documents")
            }
            Operator::MoreLikeThis { like } => self.more_like_this(like.iter().map(DocRef::from)),
            Operator::Embedded { path, operator } => self.embedded(scope, path, operator, aggregate),
            Operator::HasAncestor { path, operator } => self.has_ancestor(scope, path, operator),
            Operator::HasRoot { operator } => self.within(scope, ROOT, operator),
            Operator::Span(span) => self.span(scope, span),
        }
    }

    fn synonyms(&self, name: &Option<String>) -> Result<Option<&'a Synonyms>> {
        match name {
            None => Ok(None),
            Some(name) => match self.context.synonyms.get(name) {
                Some(synonyms) => Ok(Some(synonyms)),
                None => refuse!("the synonyms {name:?} were not read"),
            },
        }
    }

    fn text(
        &self,
        scope: ScopeId,
        asked: &Asked,
        all: bool,
        fuzzy: Option<Fuzzy>,
        synonyms: Option<&Synonyms>,
    ) -> Result<Node<'a>> {
        let mut fields = Vec::new();
        for path in self.context.text_paths(scope, &asked.path)? {
            let mut clauses = Vec::new();
            for text in &asked.query {
                if let Some(synonyms) = synonyms {
                    clauses.extend(self.by_synonyms(&path, text, synonyms)?);
                } else {
                    let words = words(&path.string.search_analyzer, text)?;
                    limited(clauses.len() + words.len())?;
                    for (_, terms) in &words {
                        clauses.push(self.word(&path, terms, fuzzy)?);
                    }
                }
                limited(clauses.len())?;
            }
            fields.push(match all {
                true => all_of(scope, clauses),
                false => any_of(clauses),
            });
        }
        Ok(any_of(fields))
    }

    /// The words of a text, each of which may be what stands for it.
    fn by_synonyms(&self, path: &TextPath<'_>, text: &str, synonyms: &Synonyms) -> Result<Vec<Node<'a>>> {
        synonyms.check(&path.string.analyzer, &path.key.path)?;
        let places = synonyms.read(&synonyms::sequence(&path.string.search_analyzer, text)?);
        let place = |sequences: &Vec<Vec<String>>| {
            let each = sequences.iter().map(|sequence| self.sequence(path, sequence, 0));
            Ok(any_of(each.collect::<Result<_>>()?))
        };
        places.iter().map(place).collect()
    }

    /// Terms one behind the other.
    fn sequence(&self, path: &TextPath<'_>, terms: &[String], slop: u32) -> Result<Node<'a>> {
        if terms.len() > 1 {
            needs_positions(path)?;
        }
        limited(terms.len())?;
        let words = (0..).zip(terms).map(|(at, term)| (at, vec![term.clone()])).collect();
        self.one_behind_the_other(&path.key, words, slop, path.string.has_lengths)
    }

    /// A word, which may be one of several terms.
    fn word(&self, path: &TextPath<'_>, terms: &[String], fuzzy: Option<Fuzzy>) -> Result<Node<'a>> {
        let has_lengths = path.string.has_lengths;
        let mut nodes = Vec::new();
        for term in terms {
            match fuzzy {
                None => nodes.push(self.term(&path.key, term, has_lengths)),
                Some(fuzzy) => nodes.extend(self.fuzzy(&path.key, term, fuzzy, has_lengths)?),
            }
        }
        self.count(nodes.len())?;
        Ok(any_of(nodes))
    }

    /// Counts terms of the query.
    fn count(&self, terms: usize) -> Result<()> {
        self.terms.set(self.terms.get() + terms);
        match self.terms.get() > TERMS_MAX {
            true => refuse!("a query has more than {TERMS_MAX} terms, with those near them and in all fields"),
            false => Ok(()),
        }
    }

    fn term(&self, key: &FieldKey, term: &str, has_lengths: bool) -> Node<'a> {
        match self.context.frequency(key, term) {
            0 => Node::Nothing,
            frequency => Node::Term(Term {
                text: term.to_owned(),
                weight: self.context.weight(key, &[frequency], has_lengths),
            }),
        }
    }

    /// The terms near one: weighed as if they were as frequent as the most frequent of them, and the less the farther they are.
    fn fuzzy(&self, key: &FieldKey, term: &str, fuzzy: Fuzzy, has_lengths: bool) -> Result<Vec<Node<'a>>> {
        let near = self.context.near(key, term, fuzzy)?;
        let frequencies = near.iter().map(|(other, _)| self.context.frequency(key, other));
        let weight = self.context.weight(key, &[frequencies.max().unwrap_or(0)], has_lengths);
        let length = term.chars().count();
        let nodes = near.into_iter().map(|(text, edits)| {
            let shorter = length.min(text.chars().count()).max(1);
            let boost = (1.0 - edits as f32 / shorter as f32).max(0.0);
            let weight = Weight {
                boost,
                ..weight.clone()
            };
            Node::Term(Term { text, weight })
        });
        Ok(nodes.collect())
    }

    fn phrase(&self, scope: ScopeId, asked: &Asked, slop: u32, synonyms: Option<&Synonyms>) -> Result<Node<'a>> {
        let mut nodes = Vec::new();
        for path in self.context.text_paths(scope, &asked.path)? {
            for text in &asked.query {
                let Some(synonyms) = synonyms else {
                    nodes.push(self.phrase_in(&path, text, slop)?);
                    continue;
                };
                synonyms.check(&path.string.analyzer, &path.key.path)?;
                let places = synonyms.read(&synonyms::sequence(&path.string.search_analyzer, text)?);
                for terms in synonyms::readings(&places)? {
                    nodes.push(self.sequence(&path, &terms, slop)?);
                }
            }
        }
        Ok(any_of(nodes))
    }

    fn phrase_in(&self, path: &TextPath<'_>, text: &str, slop: u32) -> Result<Node<'a>> {
        needs_positions(path)?;
        let words = words(&path.string.search_analyzer, text)?;
        limited(words.len())?;
        self.one_behind_the_other(&path.key, words, slop, path.string.has_lengths)
    }

    fn one_behind_the_other(&self, key: &FieldKey, words: Vec<Word>, slop: u32, has_lengths: bool) -> Result<Node<'a>> {
        self.count(words.iter().map(|(_, terms)| terms.len()).sum())?;
        if let [(_, terms)] = words.as_slice() {
            return Ok(any_of(
                terms.iter().map(|term| self.term(key, term, has_lengths)).collect(),
            ));
        }
        let mut frequencies = Vec::new();
        for (_, terms) in &words {
            let own: Vec<u64> = terms.iter().map(|term| self.context.frequency(key, term)).collect();
            if own.iter().all(|frequency| *frequency == 0) {
                return Ok(Node::Nothing);
            }
            frequencies.extend(own.into_iter().filter(|frequency| *frequency > 0));
        }
        match words.is_empty() {
            true => Ok(Node::Nothing),
            false => Ok(Node::Phrase(Phrase {
                words,
                slop,
                weight: self.context.weight(key, &frequencies, has_lengths),
            })),
        }
    }

    fn pattern(&self, scope: ScopeId, asked: &Asked, pattern: Pattern, allow_analyzed: bool) -> Result<Node<'a>> {
        let paths = self.context.text_paths(scope, &asked.path)?;
        if let Some(path) = paths.iter().find(|path| !path.string.analyzer.is_keyword())
            && !allow_analyzed
        {
            refuse!(
                "the field {:?} is analyzed; allowAnalyzedField must be true to look for patterns in it",
                &*path.key.path
            );
        }
        let mut nodes = Vec::new();
        for text in &asked.query {
            let mut automaton = match pattern {
                Pattern::Regex => Automaton::regex(text)?,
                Pattern::Wildcard => Automaton::wildcard(text)?,
            };
            for path in &paths {
                nodes.push(self.matching(&path.key, &mut automaton)?);
            }
        }
        Ok(any_of(nodes))
    }

    fn matching(&self, key: &FieldKey, automaton: &mut Automaton) -> Result<Node<'a>> {
        let terms = self.context.matching(key, automaton)?;
        Ok(of_terms(key, terms))
    }

    fn autocomplete(
        &self,
        scope: ScopeId,
        query: &[String],
        path: &str,
        sequential: bool,
        fuzzy: Option<Fuzzy>,
    ) -> Result<Node<'a>> {
        let types = self.context.types(scope, path)?;
        let Some(autocomplete) = types.and_then(|types| types.autocomplete.as_ref()) else {
            refuse!("the field {path:?} is not indexed as autocomplete");
        };
        let key = FieldKey::new(scope, Kind::Autocomplete, path);
        let mut nodes = Vec::new();
        for text in query {
            let words = autocomplete.grams.words(&autocomplete.analyzer, text)?;
            limited(words.len())?;
            let mut asked: Vec<Word> = Vec::new();
            for word in words {
                let piece = autocomplete.grams.asked(&word.text);
                let terms = match fuzzy {
                    None => vec![piece.to_owned()],
                    Some(fuzzy) => {
                        let near = self.context.near(&key, piece, fuzzy)?;
                        near.into_iter().map(|(term, _)| term).collect()
                    }
                };
                asked.push((word.position, terms));
            }
            let several = asked.len() > 1;
            if !sequential || !several {
                for (_, terms) in &asked {
                    self.count(terms.len())?;
                    nodes.extend(terms.iter().map(|term| self.term(&key, term, true)));
                }
            }
            if several {
                // Words in their order are worth more where they need not be in it.
                nodes.push(self.one_behind_the_other(&key, asked, 0, true)?);
            }
        }
        Ok(any_of(nodes))
    }

    fn compound(&self, scope: ScopeId, compound: &'a Compound) -> Result<Node<'a>> {
        let each = |clauses: &'a [Clause]| -> Result<Vec<Node<'a>>> {
            clauses.iter().map(|clause| self.clause(scope, clause)).collect()
        };
        let needs_one = compound.must.is_empty() && compound.filter.is_empty() && !compound.should.is_empty();
        Ok(Node::Boolean(Boolean {
            scope,
            must: each(&compound.must)?,
            filter: each(&compound.filter)?,
            should: each(&compound.should)?,
            must_not: each(&compound.must_not)?,
            least: compound.least.max(usize::from(needs_one)),
        }))
    }

    /// The key of the field that has values of this one's type, and the value as the field has it; none if it has no such values.
    ///
    /// Errors: 8 for strings in fields that are not indexed as tokens.
    fn value(&self, scope: ScopeId, path: &str, value: &Atom) -> Result<Option<(FieldKey, Atom)>> {
        let types = self.context.types(scope, path)?;
        let has = |wants: fn(&Types) -> bool| types.is_some_and(wants);
        let (is_indexed, kind) = match value {
            Atom::Token(token) => {
                let Some(types) = types.and_then(|types| types.token) else {
                    refuse!("the field {path:?} must be indexed as token to be compared with strings");
                };
                let token = match types.lowercase {
                    true => token.to_lowercase().into(),
                    false => token.clone(),
                };
                return Ok(Some((FieldKey::new(scope, Kind::Token, path), Atom::Token(token))));
            }
            Atom::Null => (true, Kind::Null),
            Atom::Number(_) => (has(|types| types.number.is_some()), Kind::Number),
            Atom::Date(_) => (has(|types| types.date), Kind::Date),
            Atom::Bool(_) => (has(|types| types.boolean), Kind::Boolean),
            Atom::ObjectId(_) => (has(|types| types.object_id), Kind::ObjectId),
            Atom::Uuid(_) => (has(|types| types.uuid), Kind::Uuid),
        };
        Ok(is_indexed.then(|| (FieldKey::new(scope, kind, path), value.clone())))
    }

    fn equals(&self, scope: ScopeId, path: &str, value: &Atom) -> Result<Node<'a>> {
        match value {
            // Unlike `in`, it is a range of one, and these are in none.
            Atom::Number(number) if !number.is_finite() => Ok(Node::Nothing),
            value => self.listed_in(scope, path, std::slice::from_ref(value)),
        }
    }

    fn listed(&self, scope: ScopeId, paths: &[String], values: &[Atom]) -> Result<Node<'a>> {
        let each = paths.iter().map(|path| self.listed_in(scope, path, values));
        Ok(any_of(each.collect::<Result<_>>()?))
    }

    fn listed_in(&self, scope: ScopeId, path: &str, values: &[Atom]) -> Result<Node<'a>> {
        let mut bounds = Vec::new();
        let mut of = None;
        for value in values {
            if let Some((key, value)) = self.value(scope, path, value)? {
                of = Some(key);
                bounds.push((Bound::Included(value.clone()), Bound::Included(value)));
            }
        }
        Ok(match of {
            Some(key) => Node::Values { key, bounds },
            None => Node::Nothing,
        })
    }

    fn range(&self, scope: ScopeId, paths: &[String], limits: &Limits) -> Result<Node<'a>> {
        let each = paths.iter().map(|path| self.range_in(scope, path, limits));
        Ok(any_of(each.collect::<Result<_>>()?))
    }

    fn range_in(&self, scope: ScopeId, path: &str, limits: &Limits) -> Result<Node<'a>> {
        let Some(any) = limits.any() else {
            return Ok(Node::Nothing);
        };
        if let Atom::Token(_) = any {
            let types = self.context.types(scope, path)?;
            if types.is_some_and(|types| types.token.is_none() && types.number.is_some() && types.string.is_none()) {
                return Ok(Node::Nothing);
            }
        }
        let Some((key, _)) = self.value(scope, path, any)? else {
            return Ok(Node::Nothing);
        };
        let bound = |bound: &Bound<Atom>| -> Result<Bound<Atom>> {
            let own = |value: &Atom| -> Result<Atom> {
                Ok(self
                    .value(scope, path, value)?
                    .map_or_else(|| value.clone(), |(_, own)| own))
            };
            Ok(match bound {
                Bound::Unbounded => Bound::Unbounded,
                Bound::Included(value) => Bound::Included(own(value)?),
                Bound::Excluded(value) => Bound::Excluded(own(value)?),
            })
        };
        let (mut low, high) = (bound(&limits.low)?, bound(&limits.high)?);
        if key.kind == Kind::Number {
            let is_nan = |bound: &Bound<Atom>| match bound {
                Bound::Included(value) | Bound::Excluded(value) => value.as_number().is_some_and(f64::is_nan),
                Bound::Unbounded => false,
            };
            if is_nan(&low) || is_nan(&high) {
                return Ok(Node::Nothing);
            }
            if matches!(low, Bound::Unbounded) {
                low = Bound::Included(Atom::Number(f64::NEG_INFINITY));
            }
        }
        let bounds = vec![(low, high)];
        Ok(Node::Values { key, bounds })
    }

    fn near(&self, scope: ScopeId, paths: &[String], origin: &'a Origin, pivot: f64) -> Result<Node<'a>> {
        let mut nodes = Vec::new();
        for path in paths {
            self.context.types(scope, path)?;
            let kind = match origin {
                Origin::Number(_) => Kind::Number,
                Origin::Date(_) => Kind::Date,
                Origin::Point(_) => Kind::Geo,
            };
            let key = FieldKey::new(scope, kind, path);
            nodes.push(Node::Near { key, origin, pivot });
        }
        Ok(any_of(nodes))
    }

    fn geo(&self, scope: ScopeId, paths: &[String], ask: &'a GeoAsk) -> Result<Node<'a>> {
        let mut nodes = Vec::new();
        for path in paths {
            match self.context.types(scope, path)?.and_then(|types| types.geo) {
                None => refuse!("the field {path:?} is not indexed as geo"),
                Some(geo) if !(geo.shapes || ask.is_of_points) => {
                    refuse!("the field {path:?} is not indexed with indexShapes")
                }
                Some(_) => {}
            }
            let key = FieldKey::new(scope, Kind::Geo, path);
            nodes.push(Node::Geo { key, ask });
        }
        Ok(any_of(nodes))
    }

    fn query_string(&self, scope: ScopeId, default_path: &str, query: &QueryNode) -> Result<Node<'a>> {
        let paths = |field: &Option<String>| {
            let path = field.as_deref().unwrap_or(default_path);
            self.context.text_paths(scope, &[AskedPath::Field(path.to_owned())])
        };
        let mut nodes = Vec::new();
        match query {
            QueryNode::All => return Ok(Node::All(scope)),
            QueryNode::Boolean(clauses) => return self.query_clauses(scope, default_path, clauses),
            QueryNode::Boost(inner, by) => {
                let inner = Box::new(self.query_string(scope, default_path, inner)?);
                let by = Scoring::Boost(*by);
                return Ok(Node::Scored { inner, by });
            }
            QueryNode::Term { field, text, edits } => {
                for path in paths(field)? {
                    let fuzzy = edits.filter(|edits| *edits > 0).map(|edits| Fuzzy {
                        edits,
                        prefix: 0,
                        expansions: 50,
                    });
                    let words = words(&path.string.search_analyzer, text)?;
                    limited(words.len())?;
                    for (_, terms) in words {
                        nodes.push(self.word(&path, &terms, fuzzy)?);
                    }
                }
            }
            QueryNode::Phrase { field, text, slop } => {
                for path in paths(field)? {
                    nodes.push(self.phrase_in(&path, text, *slop)?);
                }
            }
            QueryNode::Wildcard { field, pattern } => {
                for path in paths(field)? {
                    let normal = path.string.search_analyzer.normal(pattern)?;
                    nodes.push(self.matching(&path.key, &mut Automaton::wildcard(&normal)?)?);
                }
            }
            QueryNode::Regex { field, pattern } => {
                for path in paths(field)? {
                    nodes.push(self.matching(&path.key, &mut Automaton::regex(pattern)?)?);
                }
            }
            QueryNode::Range { field, low, high } => {
                for path in paths(field)? {
                    let normal = |end: &Option<(String, bool)>| -> Result<Bound<String>> {
                        Ok(match end {
                            None => Bound::Unbounded,
                            Some((text, true)) => {
                                Bound::Included(path.string.search_analyzer.normal(text)?.into_owned())
                            }
                            Some((text, false)) => {
                                Bound::Excluded(path.string.search_analyzer.normal(text)?.into_owned())
                            }
                        })
                    };
                    let (low, high) = (normal(low)?, normal(high)?);
                    let low = low.as_ref().map(String::as_str);
                    let high = high.as_ref().map(String::as_str);
                    let terms = self.context.between(&path.key, low, high)?;
                    nodes.push(of_terms(&path.key, terms));
                }
            }
        }
        Ok(any_of(nodes))
    }

    fn query_clauses(&self, scope: ScopeId, default_path: &str, clauses: &[(Occur, QueryNode)]) -> Result<Node<'a>> {
        let mut boolean = Boolean {
            scope,
            must: Vec::new(),
            filter: Vec::new(),
            should: Vec::new(),
            must_not: Vec::new(),
            least: 0,
        };
        for (occur, clause) in clauses {
            let node = self.query_string(scope, default_path, clause)?;
            match occur {
                Occur::Must => boolean.must.push(node),
                Occur::Should => boolean.should.push(node),
                Occur::MustNot => boolean.must_not.push(node),
            }
        }
        boolean.least = usize::from(boolean.must.is_empty() && !boolean.should.is_empty());
        Ok(Node::Boolean(boolean))
    }

    fn more_like_this<'d>(&self, like: impl Iterator<Item = DocRef<'d>>) -> Result<Node<'a>> {
        let mut counts: BTreeMap<(FieldKey, String), (usize, bool)> = BTreeMap::new();
        for doc in like {
            self.count_terms(self.context.definition.level(ROOT), "", doc, &mut counts)?;
        }
        let mut weighed = Vec::new();
        for ((key, term), (count, has_lengths)) in counts {
            if let Node::Term(node) = self.term(&key, &term, has_lengths) {
                weighed.push((count as f32 * node.weight.idf, node));
            }
        }
        weighed.sort_by(|a, b| b.0.total_cmp(&a.0));
        weighed.truncate(LIKE_TERMS);
        Ok(any_of(weighed.into_iter().map(|(_, term)| Node::Term(term)).collect()))
    }

    fn count_terms(
        &self,
        level: Level<'_>,
        prefix: &str,
        doc: DocRef<'_>,
        counts: &mut BTreeMap<(FieldKey, String), (usize, bool)>,
    ) -> Result<()> {
        for (name, value) in doc {
            let Some(types) = level.types(name) else {
                continue;
            };
            let path = crate::text::definition::joined(prefix, name);
            let items = match value {
                ValueRef::Array(items) => items.iter().collect(),
                value => vec![value],
            };
            for item in items {
                match (item, &types.string) {
                    (ValueRef::Document(inner), _) => {
                        if let Some(level) = types.document_level() {
                            self.count_terms(level, &path, inner, counts)?;
                        }
                    }
                    (ValueRef::String(text), Some(string)) => {
                        for token in string.analyzer.tokens(text)? {
                            let key = FieldKey::new(ROOT, Kind::Text, &path);
                            counts.entry((key, token.text)).or_insert((0, string.has_lengths)).0 += 1;
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn embedded(&self, scope: ScopeId, path: &str, operator: &'a Clause, aggregate: Aggregate) -> Result<Node<'a>> {
        let Some(inner) = self
            .context
            .definition
            .scope_at(scope, path)
            .filter(|inner| *inner != scope)
        else {
            refuse!("the field {path:?} is not indexed as embeddedDocuments");
        };
        Ok(Node::Embedded {
            inner: Box::new(self.clause(inner, operator)?),
            levels: self.levels(inner, scope),
            aggregate,
        })
    }

    /// How many levels a scope lies within another.
    fn levels(&self, inner: ScopeId, outer: ScopeId) -> usize {
        let (mut at, mut levels) = (inner, 0);
        while at != outer && at != ROOT {
            at = self.context.definition.scope(at).parent;
            levels += 1;
        }
        levels
    }

    fn has_ancestor(&self, scope: ScopeId, path: &str, operator: &'a Clause) -> Result<Node<'a>> {
        let definition = self.context.definition;
        match definition.scope_at(ROOT, path) {
            Some(outer) if outer != scope && definition.is_within(scope, outer) => self.within(scope, outer, operator),
            _ => refuse!("embeddedDocuments at {path:?} are no ancestors of what hasAncestor is asked of"),
        }
    }

    fn within(&self, scope: ScopeId, outer: ScopeId, operator: &'a Clause) -> Result<Node<'a>> {
        Ok(Node::Within {
            inner: Box::new(self.clause(outer, operator)?),
            scope,
            levels: self.levels(scope, outer),
        })
    }

    fn span(&self, scope: ScopeId, clause: &'a SpanClause) -> Result<Node<'a>> {
        let mut path = None;
        let mut frequencies = Vec::new();
        let tree = self.span_tree(scope, clause, &mut path, &mut frequencies)?;
        let node = match path {
            None => Node::Nothing,
            Some(path) => Node::Span(SpanNode {
                tree,
                weight: self.context.weight(&path.key, &frequencies, path.string.has_lengths),
            }),
        };
        Ok(scored(node, scope, clause.score.as_ref()))
    }

    fn span_tree(
        &self,
        scope: ScopeId,
        clause: &'a SpanClause,
        path: &mut Option<TextPath<'a>>,
        frequencies: &mut Vec<u64>,
    ) -> Result<SpanTree> {
        let mut one = |of: &'a SpanClause| match of.score {
            Some(_) => refuse!("\"score\" is not supported within spans, only of the outermost"),
            None => self.span_tree(scope, of, path, frequencies).map(Box::new),
        };
        Ok(match &clause.span {
            Span::First { of, end } => SpanTree::First(one(of)?, *end),
            Span::Subtract { include, exclude } => SpanTree::Subtract(one(include)?, one(exclude)?),
            Span::Contains { big, little, inner } => SpanTree::Contains {
                big: one(big)?,
                little: one(little)?,
                inner: *inner,
            },
            Span::Or(clauses) => SpanTree::Or(clauses.iter().map(|of| Ok(*one(of)?)).collect::<Result<_>>()?),
            Span::Near {
                clauses,
                slop,
                in_order,
            } => SpanTree::Near {
                of: clauses.iter().map(|of| Ok(*one(of)?)).collect::<Result<_>>()?,
                slop: *slop,
                in_order: *in_order,
            },
            Span::Term { query, path: asked } => {
                let mut terms = Vec::new();
                for own in self.context.text_paths(scope, asked)? {
                    needs_positions(&own)?;
                    for text in query {
                        for (_, words) in words(&own.string.search_analyzer, text)? {
                            frequencies.extend(words.iter().map(|term| self.context.frequency(&own.key, term)));
                            terms.extend(words);
                        }
                    }
                    match path.as_ref() {
                        Some(other) if other.key != own.key => {
                            refuse!(
                                "the terms of a span must be of one field, not of {:?} and {:?}",
                                &*other.key.path,
                                &*own.key.path
                            )
                        }
                        _ => *path = Some(own),
                    }
                }
                limited(terms.len())?;
                SpanTree::Terms(terms)
            }
        })
    }
}

fn limited(clauses: usize) -> Result<()> {
    match clauses > CLAUSES_MAX {
        true => Err(refused(format!("a query has more than {CLAUSES_MAX} clauses"))),
        false => Ok(()),
    }
}

/// What has one of these.
fn any_of(mut nodes: Vec<Node<'_>>) -> Node<'_> {
    nodes.retain(|node| !matches!(node, Node::Nothing));
    match nodes.len() {
        0 => Node::Nothing,
        1 => nodes.remove(0),
        _ => Node::Sum(nodes),
    }
}

/// What has all of these.
fn all_of(scope: ScopeId, mut nodes: Vec<Node<'_>>) -> Node<'_> {
    match nodes.len() {
        0 => Node::Nothing,
        1 => nodes.remove(0),
        _ => Node::Boolean(Boolean {
            scope,
            must: nodes,
            filter: Vec::new(),
            should: Vec::new(),
            must_not: Vec::new(),
            least: 0,
        }),
    }
}

fn of_terms<'a>(key: &FieldKey, terms: Vec<String>) -> Node<'a> {
    match terms.is_empty() {
        true => Node::Nothing,
        false => Node::Terms {
            key: key.clone(),
            terms,
        },
    }
}

/// A node with what an operator makes of its scores.
fn scored<'a>(node: Node<'a>, scope: ScopeId, score: Option<&'a Score>) -> Node<'a> {
    let by = match score {
        None | Some(Score::Embedded { outer: None, .. }) => return node,
        Some(Score::Embedded { outer: Some(outer), .. }) => return scored(node, scope, Some(outer)),
        Some(Score::Boost(by)) => Scoring::Boost(*by),
        Some(Score::BoostBy { path, undefined }) => Scoring::BoostBy {
            key: FieldKey::new(scope, Kind::Number, path),
            undefined: *undefined,
        },
        Some(Score::Constant(score)) => Scoring::Constant(*score),
        Some(Score::Function(expression)) => Scoring::Function { expression, scope },
    };
    Node::Scored {
        inner: Box::new(node),
        by,
    }
}
