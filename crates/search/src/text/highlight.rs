//! Which passages of texts have the terms that were looked for.
//!
//! Passages are sentences. Their scores are as Lucene has them: terms that are frequent in a passage count, terms that are frequent in
//! the whole text count less, and so do passages far from the beginning.
//! Source: manual, "Highlight Search Terms in Results"; Lucene's documentation of the class `PassageScorer`.

use super::analysis::{Analyzer, lower, unmarked};
use super::ask::{AskedPath, Highlight};
use super::definition::ROOT;
use super::mapping::{Autocomplete, StringType};
use super::plan::{Context, Node, SpanTree, TextPath};
use super::state::Part;
use super::store::{FieldKey, Kind, RowId};
use crate::found;
use crate::operand::refuse;
use nestor_model::statement::work;
use nestor_model::{Array, Document, Result, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// The length of an ordinary passage.
const PIVOT: f64 = 87.0;

/// Finds passages in the texts of a state of an index.
pub(super) struct Highlighter {
    parts: Vec<Part>,
    fields: Vec<Field>,
    chars: usize,
    passages: usize,
}

struct Field {
    key: FieldKey,
    terms: BTreeSet<String>,
    indexed: Indexed,
}

enum Indexed {
    Text(StringType),
    Pieces(Autocomplete),
}

/// A word of a text that was looked for.
struct Word {
    bytes: Range<usize>,
    term: String,
}

impl Highlighter {
    /// Of fields, for what a node looks for in them.
    ///
    /// Errors: 8 for fields whose texts are not stored.
    pub(super) fn new(context: Context<'_>, highlight: &Highlight, node: &Node<'_>) -> Result<Self> {
        let mut terms: BTreeMap<FieldKey, BTreeSet<String>> = BTreeMap::new();
        collect(node, &mut |key, term| {
            terms.entry(key.clone()).or_default().insert(term.to_owned());
        });
        let mut fields = Vec::new();
        for path in context.text_paths(ROOT, &highlight.path)? {
            if !path.string.is_stored && matches!(path.key.kind, Kind::Text | Kind::Multi(_)) {
                refuse!(
                    "the field {:?} does not store its texts for highlights",
                    &*path.key.path
                );
            }
            let TextPath { key, string } = path;
            fields.push((key, Indexed::Text(string.clone())));
        }
        for path in &highlight.path {
            if let AskedPath::Field(path) = path
                && let Some(pieces) = context.types(ROOT, path)?.and_then(|types| types.autocomplete.as_ref())
            {
                fields.push((
                    FieldKey::new(ROOT, Kind::Autocomplete, path),
                    Indexed::Pieces(pieces.clone()),
                ));
            }
        }
        let fields = fields.into_iter().filter_map(|(key, indexed)| {
            let terms = terms.remove(&key)?;
            Some(Field { key, terms, indexed })
        });
        Ok(Self {
            parts: context.parts.to_vec(),
            fields: fields.collect(),
            chars: highlight.chars,
            passages: highlight.passages,
        })
    }
}

impl found::Highlight for Highlighter {
    fn passages(&self, part: usize, row: RowId) -> Result<Value> {
        let segment = &self.parts[part].segment;
        let mut out = Vec::new();
        for field in &self.fields {
            let Some(texts) = segment.text(&field.key) else {
                continue;
            };
            for text in texts.texts(row) {
                let text = match text.char_indices().nth(self.chars) {
                    Some((end, _)) => &text[..end],
                    None => text,
                };
                work(1 + text.len() / 16)?;
                field.add_passages(text, self.passages, &mut out)?;
            }
        }
        Ok(Value::Array(Array::new(out)))
    }
}

impl Field {
    fn words(&self, text: &str) -> Result<Vec<Word>> {
        let analyzer: &Analyzer = match &self.indexed {
            Indexed::Text(string) => &string.analyzer,
            Indexed::Pieces(pieces) => &pieces.analyzer,
        };
        let mut words: Vec<Word> = Vec::new();
        for token in analyzer.tokens(text)? {
            let bytes = token.start as usize..token.end as usize;
            let Some(word) = text.get(bytes.clone()) else {
                continue;
            };
            let found = match &self.indexed {
                Indexed::Text(_) => self.terms.contains(&token.text).then_some(bytes),
                Indexed::Pieces(pieces) => self.piece(pieces, word, bytes.start)?,
            };
            if let Some(bytes) = found
                && words.last().is_none_or(|last| last.bytes.end <= bytes.start)
            {
                let term = token.text;
                words.push(Word { bytes, term });
            }
        }
        Ok(words)
    }

    /// The piece of a word that was looked for, the longest if there are several: as many characters of the word as it has.
    fn piece(&self, pieces: &Autocomplete, word: &str, start: usize) -> Result<Option<Range<usize>>> {
        let folded = lower(word);
        let folded = match pieces.grams.unmarked {
            true => unmarked(&folded).unwrap_or(folded),
            false => folded,
        };
        let mut longest: Option<(usize, usize)> = None;
        pieces.grams.for_each(&folded, |piece| {
            if self.terms.contains(piece) {
                let at = piece.as_ptr() as usize - folded.as_ptr() as usize;
                let found = (folded[..at].chars().count(), piece.chars().count());
                longest = longest.filter(|(_, length)| *length >= found.1).or(Some(found));
            }
            Ok(())
        })?;
        Ok(longest.map(|(from, length)| {
            let place = |chars: usize| word.char_indices().nth(chars).map_or(word.len(), |(at, _)| at);
            start + place(from)..start + place(from + length)
        }))
    }

    fn add_passages(&self, text: &str, most: usize, out: &mut Vec<Value>) -> Result<()> {
        let words = self.words(text)?;
        if words.is_empty() {
            return Ok(());
        }
        let mut totals: HashMap<&str, usize> = HashMap::new();
        for word in &words {
            *totals.entry(&word.term).or_default() += 1;
        }
        let mut passages: Vec<(f64, Range<usize>, &[Word])> = Vec::new();
        let mut rest = words.as_slice();
        for (start, sentence) in text.split_sentence_bound_indices() {
            let end = start + sentence.len();
            let own = rest.partition_point(|word| word.bytes.start < end);
            let (here, behind) = rest.split_at(own);
            rest = behind;
            if !here.is_empty() {
                let end = end.max(here.iter().map(|word| word.bytes.end).max().unwrap_or(end));
                passages.push((score(start..end, here, &totals, text.len()), start..end, here));
            }
        }
        passages.sort_by(|a, b| b.0.total_cmp(&a.0));
        passages.truncate(most);
        passages.sort_by_key(|(_, bytes, _)| bytes.start);
        for (score, bytes, words) in passages {
            let mut passage = Document::new();
            passage.push("score", Value::Double(f64::from(score as f32)));
            passage.push("path", self.path());
            passage.push("texts", Value::Array(Array::new(texts(text, bytes, words))));
            out.push(Value::Document(passage));
        }
        Ok(())
    }

    /// The path as it is asked for.
    fn path(&self) -> Value {
        let path = Value::String(self.key.path.clone());
        match &self.key.kind {
            Kind::Multi(name) => {
                let mut written = Document::new();
                written.push("value", path);
                written.push("multi", Value::String(name.clone()));
                Value::Document(written)
            }
            _ => path,
        }
    }
}

fn score(bytes: Range<usize>, words: &[Word], totals: &HashMap<&str, usize>, length: usize) -> f64 {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(&word.term).or_default() += 1;
    }
    let own: f64 = counts
        .iter()
        .map(|(term, count)| {
            let texts = 1.0 + length as f64 / PIVOT;
            let total = totals.get(term).copied().unwrap_or(1) as f64;
            let weight = (K1 + 1.0) * (1.0 + (texts + 0.5) / (total + 0.5)).ln();
            let norm = K1 * ((1.0 - B) + B * (bytes.len() as f64 / PIVOT));
            weight * *count as f64 / (*count as f64 + norm)
        })
        .sum();
    own * (1.0 + 1.0 / (PIVOT + bytes.start as f64).ln())
}

/// A passage, cut into what was looked for and what is around it.
fn texts(text: &str, bytes: Range<usize>, words: &[Word]) -> Vec<Value> {
    let piece = |bytes: Range<usize>, kind: &str| {
        let mut piece = Document::new();
        piece.push("value", Value::String(text[bytes].into()));
        piece.push("type", Value::String(kind.into()));
        Value::Document(piece)
    };
    let mut out = Vec::new();
    let mut at = bytes.start;
    for word in words {
        if word.bytes.start > at {
            out.push(piece(at..word.bytes.start, "text"));
        }
        out.push(piece(word.bytes.clone(), "hit"));
        at = word.bytes.end;
    }
    if bytes.end > at {
        out.push(piece(at..bytes.end, "text"));
    }
    out
}

/// Calls `each` with the terms that a node finds rows by.
fn collect(node: &Node<'_>, each: &mut dyn FnMut(&FieldKey, &str)) {
    match node {
        Node::Term(term) => each(&term.weight.key, &term.text),
        Node::Terms { key, terms } => terms.iter().for_each(|term| each(key, term)),
        Node::Phrase(phrase) => {
            let terms = phrase.words.iter().flat_map(|(_, terms)| terms);
            terms.for_each(|term| each(&phrase.weight.key, term));
        }
        Node::Sum(nodes) => nodes.iter().for_each(|node| collect(node, each)),
        Node::Boolean(boolean) => {
            let all = boolean.must.iter().chain(&boolean.filter).chain(&boolean.should);
            all.for_each(|node| collect(node, each));
        }
        Node::Scored { inner, .. } | Node::Embedded { inner, .. } | Node::Within { inner, .. } => collect(inner, each),
        Node::Span(span) => {
            let tree: &SpanTree = &span.tree;
            tree.for_each_term(&mut |term| each(&span.weight.key, term));
        }
        _ => {}
    }
}
