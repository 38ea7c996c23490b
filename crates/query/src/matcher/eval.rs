//! Evaluation of a [`MatchExpr`] on a document, a named value or an array.

use super::{CompareOp, Leaf, Leaves, MatchExpr, Predicate, walk};
use crate::collation::{self, Collator};
use crate::env::{Env, OpContext};
use nestor_model::statement::{effort, work};
use nestor_model::value::DocIter;
use nestor_model::{ArrayRef, DocRef, Document, Path, PathPart, Result, Str, Value, ValueRef};
use std::sync::Arc;

/// Details of a successful match: where it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchDetails {
    /// Index in the array that the query traversed, for the positional `$`: of the last condition that
    /// traversed one, the outermost array of that condition's path. `None` when no array was traversed.
    pub position: Option<usize>,
}

/// The value that paths start from.
#[derive(Clone, Copy)]
enum Root<'a> {
    Doc(DocRef<'a>),
    /// A document of one field.
    Field(&'a str, ValueRef<'a>),
    /// An array read as a document of its indexes.
    Array(ArrayRef<'a>),
}

impl<'a> Root<'a> {
    fn get(self, part: &PathPart) -> ValueRef<'a> {
        let found = match self {
            Root::Doc(doc) => doc.get(&part.name),
            Root::Field(name, value) => (name == part.name.as_str()).then_some(value),
            Root::Array(items) => part.index.and_then(|i| items.get(i as usize)),
        };
        found.unwrap_or(ValueRef::Missing)
    }
}

struct Eval<'m, 'a> {
    root: Root<'a>,
    op: &'a OpContext,
    position: Option<usize>,
    /// The field looked up last: conditions on one field are mostly neighbours.
    last: Option<(&'m str, ValueRef<'a>)>,
    scan: Option<Scan<'m, 'a>>,
}

/// A single pass over a document's fields that stops and goes on as fields are asked for.
struct Scan<'m, 'a> {
    heads: &'m [Str],
    /// By head; `None` until passed.
    found: [Option<ValueRef<'a>>; HEADS_MAX],
    rest: DocIter<'a>,
}

impl<'a> Scan<'_, 'a> {
    /// The field, if it is one of the heads.
    fn get(&mut self, name: &str) -> Option<ValueRef<'a>> {
        let wanted = self.heads.iter().position(|h| h == name)?;
        if let Some(value) = self.found[wanted] {
            return Some(value);
        }
        for (name, value) in self.rest.by_ref() {
            let Some(at) = self.heads.iter().position(|h| h == name) else {
                continue;
            };
            // Of fields with one name the first counts.
            self.found[at].get_or_insert(value);
            if at == wanted {
                return Some(value);
            }
        }
        Some(ValueRef::Missing)
    }
}

/// Top-level fields from which on a [`Filter`] looks each up by itself.
const HEADS_MAX: usize = 8;

/// A match expression prepared for many documents: reads each document's fields in one pass.
#[derive(Clone, Debug)]
pub struct Filter {
    expr: Arc<MatchExpr>,
    /// The top-level fields that are read, if they are few but more than one.
    heads: Vec<Str>,
}

impl Filter {
    /// Prepares `expr`.
    pub fn new(expr: impl Into<Arc<MatchExpr>>) -> Self {
        let expr = expr.into();
        let mut heads = Vec::new();
        collect_heads(&expr, &mut heads);
        if heads.len() < 2 || heads.len() > HEADS_MAX {
            heads.clear();
        }
        Self { expr, heads }
    }

    /// The expression.
    pub fn expr(&self) -> &MatchExpr {
        &self.expr
    }

    /// As [`MatchExpr::matches`].
    pub fn matches(&self, doc: DocRef<'_>, op: &OpContext) -> Result<bool> {
        self.prepare(doc, op).eval(&self.expr)
    }

    /// As [`MatchExpr::matches_with_position`].
    pub fn matches_with_position(&self, doc: DocRef<'_>, op: &OpContext) -> Result<Option<MatchDetails>> {
        let mut eval = self.prepare(doc, op);
        let matched = eval.eval(&self.expr)?;
        Ok(matched.then_some(MatchDetails {
            position: eval.position,
        }))
    }

    fn prepare<'s>(&'s self, doc: DocRef<'s>, op: &'s OpContext) -> Eval<'s, 's> {
        let mut eval = Eval::new(Root::Doc(doc), op);
        if !self.heads.is_empty() {
            eval.scan = Some(Scan {
                heads: &self.heads,
                found: [None; HEADS_MAX],
                rest: doc.iter(),
            });
        }
        eval
    }
}

/// Adds the fields that `expr` reads, up to one more than is of use.
fn collect_heads(expr: &MatchExpr, heads: &mut Vec<Str>) {
    if heads.len() > HEADS_MAX {
        return;
    }
    match expr {
        MatchExpr::And(children) | MatchExpr::Or(children) | MatchExpr::Nor(children) => {
            children.iter().for_each(|c| collect_heads(c, heads));
        }
        MatchExpr::Not(child) => collect_heads(child, heads),
        MatchExpr::Leaf(leaf) if !heads.iter().any(|h| h == leaf.path.head()) => {
            heads.push(leaf.path.head().into());
        }
        _ => {}
    }
}

impl MatchExpr {
    /// Whether `doc` matches. Errors: a regular expression that takes too long, an expression's own.
    pub fn matches(&self, doc: DocRef<'_>, op: &OpContext) -> Result<bool> {
        Eval::new(Root::Doc(doc), op).eval(self)
    }

    /// As [`MatchExpr::matches`], reporting the array position for the positional `$`.
    pub fn matches_with_position(&self, doc: DocRef<'_>, op: &OpContext) -> Result<Option<MatchDetails>> {
        let mut eval = Eval::new(Root::Doc(doc), op);
        let matched = eval.eval(self)?;
        Ok(matched.then_some(MatchDetails {
            position: eval.position,
        }))
    }

    /// Whether the document `{name: value}` matches, without building it: for `arrayFilters` and `$pull`.
    pub fn matches_field(&self, name: &str, value: ValueRef<'_>, op: &OpContext) -> Result<bool> {
        Eval::new(Root::Field(name, value), op).eval(self)
    }

    pub(crate) fn matches_array(&self, items: ArrayRef<'_>, op: &OpContext) -> Result<bool> {
        Eval::new(Root::Array(items), op).eval(self)
    }
}

impl<'m, 'a> Eval<'m, 'a> {
    fn new(root: Root<'a>, op: &'a OpContext) -> Self {
        Self {
            root,
            op,
            position: None,
            last: None,
            scan: None,
        }
    }

    fn eval(&mut self, expr: &'m MatchExpr) -> Result<bool> {
        Ok(match expr {
            MatchExpr::Leaf(leaf) => self.leaf(leaf)?,
            MatchExpr::And(children) => self.all(children)?,
            // Which branch holds first is no matter of the condition: none of them says where the positional `$` is.
            MatchExpr::Or(children) => self.without_position(|this| this.any(children))?,
            MatchExpr::Nor(children) => !self.without_position(|this| this.any(children))?,
            MatchExpr::Not(child) => !self.without_position(|this| this.eval(child))?,
            MatchExpr::AlwaysTrue => true,
            MatchExpr::AlwaysFalse => false,
            MatchExpr::Expr(test) => match self.root {
                Root::Doc(doc) => test.expr.eval_bool(&mut Env::new(doc, self.op))?,
                // Parsing refuses $expr wherever the root is no document.
                Root::Field(..) | Root::Array(_) => false,
            },
            MatchExpr::JsonSchema(schema) => match self.root {
                Root::Doc(doc) => schema.matches(ValueRef::Document(doc))?,
                Root::Array(items) => schema.matches(ValueRef::Array(items))?,
                Root::Field(name, value) => {
                    let mut doc = Document::new();
                    doc.push(name, value);
                    schema.matches(ValueRef::Document(doc.as_ref()))?
                }
            },
            MatchExpr::SampleRate(rate) => self.op.random_f64() < *rate,
            MatchExpr::Text(text) => match self.root {
                Root::Doc(doc) => text.matches(doc)?,
                // Parsing refuses $text wherever the root is no document.
                Root::Field(..) | Root::Array(_) => false,
            },
        })
    }

    fn all(&mut self, mut children: &'m [MatchExpr]) -> Result<bool> {
        while let Some((child, rest)) = children.split_first() {
            if children.len() >= EQUALITIES_MIN {
                let run = equality_run(children);
                if run.len() >= EQUALITIES_MIN {
                    if !self.all_equal(run)? {
                        return Ok(false);
                    }
                    children = &children[run.len()..];
                    continue;
                }
            }
            if !self.eval(child)? {
                return Ok(false);
            }
            children = rest;
        }
        Ok(true)
    }

    /// Whether the values of one path equal all operands of `run`: one pass over the values instead of
    /// one for each operand.
    fn all_equal(&mut self, run: &'m [MatchExpr]) -> Result<bool> {
        let Some((path, _, collator)) = run.first().and_then(equality) else {
            return Ok(true);
        };
        let order = |a: ValueRef<'_>, b: ValueRef<'_>| collation::compare(a, b, collator);
        let mut operands: Vec<ValueRef<'_>> = run.iter().filter_map(equality).map(|(_, v, _)| v.as_ref()).collect();
        operands.sort_by(|a, b| order(*a, *b));
        operands.dedup_by(|a, b| order(*a, *b).is_eq());
        let mut missing = operands.len();
        let mut found = vec![false; missing];
        let Some((head, rest)) = path.parts().split_first() else {
            return Ok(false);
        };
        let value = self.field(head);
        walk(value, rest, Leaves::Elements, &mut |v| {
            let v = if v.is_missing() { ValueRef::Null } else { v };
            if let Ok(at) = operands.binary_search_by(|operand| order(*operand, v)) {
                missing -= usize::from(!std::mem::replace(&mut found[at], true));
            }
            Ok(missing == 0)
        })?;
        // The last condition says where the positional `$` is.
        match run.last() {
            Some(last) if missing == 0 => self.eval(last),
            _ => Ok(false),
        }
    }

    fn any(&mut self, children: &'m [MatchExpr]) -> Result<bool> {
        for child in children {
            if self.eval(child)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A negated condition has no position.
    fn without_position(&mut self, f: impl FnOnce(&mut Self) -> Result<bool>) -> Result<bool> {
        let before = self.position;
        let matched = f(self);
        self.position = before;
        matched
    }

    fn leaf(&mut self, leaf: &'m Leaf) -> Result<bool> {
        effort::made();
        work(1)?;
        let Some((head, rest)) = leaf.path.parts().split_first() else {
            return Ok(false);
        };
        let value = self.field(head);
        let op = self.op;
        let mut element = None;
        let predicate = &leaf.predicate;
        let hit = walk(value, rest, predicate.leaves(), &mut |v| {
            predicate.test(v, op, &mut element)
        })?;
        if let Some(outer) = hit {
            if let Some(position) = outer.or(element) {
                self.position = Some(position);
            }
        }
        Ok(hit.is_some())
    }

    fn field(&mut self, head: &'m PathPart) -> ValueRef<'a> {
        match self.last {
            Some((name, value)) if name == head.name.as_str() => value,
            _ => {
                let scanned = self.scan.as_mut().and_then(|scan| scan.get(&head.name));
                let value = scanned.unwrap_or_else(|| self.root.get(head));
                self.last = Some((&head.name, value));
                value
            }
        }
    }
}

/// Equalities on one path (a long `$all`) from which on they are tested together.
const EQUALITIES_MIN: usize = 16;

/// Path, operand and collator of an equality.
fn equality(expr: &MatchExpr) -> Option<(&Path, &Value, Option<&Collator>)> {
    match expr {
        MatchExpr::Leaf(Leaf {
            path,
            predicate:
                Predicate::Compare {
                    op: CompareOp::Eq,
                    value,
                    collator,
                },
        }) => Some((path, value, collator.as_ref())),
        _ => None,
    }
}

/// The equalities on one path at the start of `children`.
fn equality_run(children: &[MatchExpr]) -> &[MatchExpr] {
    let Some((first, ..)) = children.first().and_then(equality) else {
        return &[];
    };
    let same = |child: &&MatchExpr| equality(child).is_some_and(|(path, ..)| path.as_str() == first.as_str());
    &children[..children.iter().take_while(same).count()]
}
