//! Segments that are others with some documents changed: their columns are made of both when somebody asks for them.
//!
//! Which keys were changed a checkpoint has noted ([`nestor_storage::Engine::changed_between`]), so that nothing is read but what was changed, and
//! a column that nobody looks at costs nothing. A column of which the changed documents have what they had before is the other's own; one of numbers is a
//! copy of the other's with some of them replaced, made at once where the other's is in memory.

use crate::builder::SegmentBuilder;
use crate::column::{self, Column, ColumnBuilder, State};
use crate::elements::{self, Elements};
use crate::memory::Memory;
use crate::segment::{Field, Head, PATHS_MAX, Rows, Segment, Source};
use crate::statistics::Part;
use nestor_model::Value;
use nestor_storage::{Block, Blocks, Bytes};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Segments that stand behind one another, at most.
const DEPTH_MAX: usize = 8;
/// More than one in so many rows that were changed since all columns were made make them anew.
const CHANGED_PART: usize = 4;
/// More than one in so many rows that were changed are no change of a segment.
const CHANGED_MOST: usize = 2;
/// Statistics stay what they were until more than one in so many rows was changed.
const STALE_PART: usize = 8;
/// Fields below one another, at most: more than documents that are held have.
const LEVELS_MAX: usize = 64;

/// Of what a segment is made.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) old: Arc<Segment>,
    /// The documents that were changed, as they are now.
    new: Arc<Segment>,
    /// The rows, in order.
    runs: Vec<Run>,
    /// Of each field, which one of both it is.
    fields: Vec<Two>,
    /// The rows of the old one in whose places those of the new one stand, if all others are where they were.
    replaced: Option<Vec<usize>>,
    /// How many segments stand behind one another, and how many rows were changed in all of them.
    depth: usize,
    changed: usize,
}

#[derive(Debug)]
struct Run {
    is_new: bool,
    rows: Range<usize>,
}

/// A field of two segments, where it is one.
#[derive(Debug, Clone, Copy)]
struct Two {
    old: Option<usize>,
    new: Option<usize>,
}

impl Merged {
    /// The column of a field.
    pub(crate) fn column(&self, field: usize, rows: usize) -> Arc<Column> {
        let Two { old, new } = self.fields[field];
        if let Some(two) = self.both_elements(field) {
            return two.begins(self).into();
        }
        let (old, new) = (
            old.map(|field| self.old.column_once(field)),
            new.map(|field| self.new.column_once(field)),
        );
        if old.iter().chain(&new).any(|column| !column.is_held()) {
            return Column::unknown().into();
        }
        if let Some(old) = &old
            && let Some(column) = self.in_place(old, new.as_deref())
        {
            return column;
        }
        let mut builder = ColumnBuilder::default();
        let mut at = 0;
        for run in &self.runs {
            let column = if run.is_new { &new } else { &old };
            if let Some(column) = column {
                for (place, row) in run.rows.clone().enumerate() {
                    builder.push_from(at + place, column, row);
                }
            }
            at += run.rows.len();
        }
        builder.finish(rows).into()
    }

    /// The elements of both segments at a field, if the merged one has elements there.
    fn both_elements(&self, field: usize) -> Option<TwoElements<'_>> {
        let Two { old, new } = self.fields[field];
        let old = self.old.elements_of(old?)?;
        let new = match new {
            Some(new) => Some(self.new.elements_of(new)?),
            None => None,
        };
        Some(TwoElements { old, new })
    }

    /// The elements at a field.
    pub(crate) fn elements(&self, field: usize, memory: &Arc<Memory>) -> Option<Segment> {
        let (merged, head) = self.merged_elements(field, memory)?;
        let source = Source::Merged(Arc::new(merged));
        Some(Segment::of(Arc::new(head), source, memory.clone()))
    }

    fn merged_elements(&self, field: usize, memory: &Arc<Memory>) -> Option<(Self, Head)> {
        let two = self.both_elements(field)?;
        let new = match &two.new {
            Some(new) => new.shared(),
            None => Arc::new(SegmentBuilder::default().finish(Vec::new(), usize::MAX, memory)),
        };
        let old = two.old.shared();
        let of = Rows::Elements {
            are_documents: old.has_documents_only() && (new.rows() == 0 || new.has_documents_only()),
        };
        let mut runs = Runs::default();
        for run in &self.runs {
            runs.add(run.is_new, two.of_run(run));
        }
        let (fields, is_cut, twos) = Fields::of(&old, &new);
        let merged = Self {
            changed: self.changed_before() + new.rows(),
            replaced: two.replaced(self),
            old,
            new,
            runs: runs.all,
            fields: twos,
            depth: self.depth,
        };
        Some((merged, Head::new(of, runs.rows, fields, is_cut)))
    }

    /// The column that is that of the old segment, as it is or with other values at some places.
    fn in_place(&self, old: &Arc<Column>, new: Option<&Column>) -> Option<Arc<Column>> {
        if self.stays(old, new) {
            return Some(old.clone());
        }
        let replaced = old.replaced(self.replaced.as_ref()?, new?)?;
        Some(Arc::new(replaced))
    }

    /// How many rows were changed in the segments before.
    fn changed_before(&self) -> usize {
        self.old.merged().map_or(0, |before| before.changed)
    }

    /// What is known of the values of a field of the old segment, if somebody asked and these are still most of them.
    pub(crate) fn statistics(&self, field: usize, rows: usize) -> Option<Part> {
        let old = self.fields[field].old?;
        let is_most = self.changed * STALE_PART <= rows;
        is_most.then(|| self.old.head().known(old)).flatten()
    }

    /// Whether a column of the old segment is that of the merged one as well: the documents that were changed have what they had, of which
    /// the new segment has a column or nothing.
    fn stays(&self, old: &Column, new: Option<&Column>) -> bool {
        let same = |(at, row): (usize, &usize)| match new {
            Some(new) => old.has_same(*row, new, at),
            None => old.state(*row) == State::Missing,
        };
        let replaced = self.replaced.as_ref();
        replaced.is_some_and(|rows| rows.iter().enumerate().all(same))
    }
}

/// The elements of two segments at one field.
struct TwoElements<'s> {
    old: Elements<'s>,
    /// Without any, no document that was changed has something there.
    new: Option<Elements<'s>>,
}

impl TwoElements<'_> {
    /// Those of a run of rows, in the segment of its elements.
    fn of_run(&self, run: &Run) -> Range<usize> {
        match (run.is_new, &self.new) {
            (false, _) => self.old.of_rows(&run.rows),
            (true, Some(new)) => new.of_rows(&run.rows),
            (true, None) => 0..0,
        }
    }

    /// Where those of each row begin.
    fn begins(&self, merged: &Merged) -> Column {
        let mut all = Vec::new();
        let mut begin = 0;
        for run in &merged.runs {
            let from = if run.is_new { self.new.as_ref() } else { Some(&self.old) };
            for row in run.rows.clone() {
                let state = from.map_or(State::Missing, |from| from.state(row));
                all.push((state, begin));
                begin += from.map_or(0, |from| from.of_rows(&(row..row + 1)).len());
            }
        }
        elements::begins(all)
    }

    /// The old elements in whose places new ones stand, if all others are where they were.
    fn replaced(&self, merged: &Merged) -> Option<Vec<usize>> {
        let mut out = Vec::new();
        for (at, row) in merged.replaced.as_ref()?.iter().enumerate() {
            let old = self.old.of_rows(&(*row..*row + 1));
            let new = self.new.as_ref().map_or(0, |new| new.of_rows(&(at..at + 1)).len());
            (old.len() == new).then_some(())?;
            out.extend(old);
        }
        Some(out)
    }
}

/// What is to become of a segment.
pub(crate) struct Change<'c> {
    pub(crate) old: &'c Arc<Segment>,
    /// The first key of the rows that are wanted, and the first behind them.
    pub(crate) within: (&'c [u8], Option<&'c [u8]>),
    /// The keys among them that were changed, or may be, ascending.
    pub(crate) keys: &'c [Bytes],
}

impl Change<'_> {
    /// The segment of a group whose blocks are these; `None` when it is made of the documents as well.
    ///
    /// Errors: those of reading.
    pub(crate) fn merged(
        &self,
        blocks: &Blocks,
        parts: &[Block],
        memory: &Arc<Memory>,
    ) -> nestor_storage::Result<Option<Segment>> {
        let old = self.old;
        let Some(record) = old.records() else {
            return Ok(None);
        };
        let row_from = |key: &[u8]| old.row_from(key).unwrap_or(0);
        let within = row_from(self.within.0)..self.within.1.map_or(old.rows(), row_from);
        if within.is_empty() || self.keys.len() * CHANGED_MOST > within.len() {
            return Ok(None);
        }
        let (new, there) = Segment::of_keys(blocks, self.keys, memory)?;
        if new.rows() > 0 && new.records().is_none() {
            return Ok(None);
        }
        let mut runs = Runs::default();
        let (mut gone, mut came) = (Vec::new(), Vec::new());
        let mut is_in_place = within == (0..old.rows());
        let mut next = within.start;
        for (key, is_there) in self.keys.iter().zip(there) {
            let row = row_from(key.as_slice()).clamp(next, within.end);
            runs.add(false, next..row);
            let was_there = row < within.end && record(row).as_slice() == key.as_slice();
            next = row + usize::from(was_there);
            if was_there {
                gone.push(row);
            }
            if is_there {
                runs.add(true, came.len()..came.len() + 1);
                came.push(key.as_slice());
            }
            is_in_place &= was_there == is_there;
        }
        runs.add(false, next..within.end);
        let begin = |part: &Block| {
            let row = row_from(&part.from).clamp(within.start, within.end);
            let before = gone.partition_point(|gone| *gone < row);
            row - within.start - before + came.partition_point(|key| *key < part.from.as_slice())
        };
        let mut begins: Vec<usize> = parts.iter().map(begin).collect();
        begins[0] = 0;
        // How many entries leaves have is known but for the first and the last of a tree.
        let counts = begins.windows(2).map(|two| (two[1] - two[0]) as u64);
        let are_all = counts.zip(parts).skip(1).all(|(rows, part)| rows == part.entries);
        debug_assert!(are_all, "a key was changed that was not noted");
        if !are_all {
            return Ok(None);
        }
        let names = parts.iter().zip(begins).map(|(part, begin)| (part.name, begin as u32));
        let (fields, is_cut, twos) = Fields::of(old, &new);
        let head = Head::new(Rows::Documents(names.collect()), runs.rows, fields, is_cut);
        let before = old.merged();
        let merged = Merged {
            old: old.clone(),
            new: Arc::new(new),
            runs: runs.all,
            fields: twos,
            replaced: is_in_place.then_some(gone),
            depth: before.map_or(0, |before| before.depth) + 1,
            changed: before.map_or(0, |before| before.changed) + self.keys.len(),
        };
        if merged.depth <= DEPTH_MAX && merged.changed * CHANGED_PART <= head.rows {
            return Ok(Some(merged.segment(head, memory)));
        }
        // What is not held may be by now.
        let is_lacking = |field: &Field| !field.has_elements && (!field.is_held || field.has_others);
        match head.is_cut || head.fields.iter().any(is_lacking) {
            true => Ok(None),
            false => Ok(Some(merged.whole(head, memory))),
        }
    }
}

impl Merged {
    /// The segment, with the columns of the old one that are in memory and stay what they were at most places.
    fn segment(mut self, head: Head, memory: &Arc<Memory>) -> Segment {
        let in_memory = |two: &Two| {
            let is_held = |field: &usize| self.old.head().fields[*field].is_held;
            let column = self.old.held(two.old.filter(is_held)?)?;
            let new = two.new.map(|field| self.new.column_once(field));
            self.in_place(column, new.as_deref())
        };
        let columns: Vec<_> = self.fields.iter().map(in_memory).collect();
        if let Some(unloaded) = self.old.unloaded() {
            self.old = Arc::new(unloaded);
        }
        let columns = columns
            .into_iter()
            .map(|column| column.map_or_else(OnceLock::new, OnceLock::from))
            .collect();
        let elements = head.arrays.iter().map(|_| OnceLock::new()).collect();
        let source = Source::Merged(Arc::new(self));
        Segment::new(Arc::new(head), (columns, elements), source, memory.clone())
    }

    /// The segment with all columns, of which none depends on the old one.
    fn whole(&self, head: Head, memory: &Arc<Memory>) -> Segment {
        let mut columns = Vec::with_capacity(head.fields.len());
        let mut inner = Vec::new();
        let mut fields = Vec::with_capacity(head.fields.len());
        for (at, field) in head.fields.into_iter().enumerate() {
            let elements = match field.has_elements {
                true => self.whole_elements(at, memory),
                false => None,
            };
            let column = match field.has_elements && elements.is_none() {
                true => Column::unknown().into(),
                false => self.column(at, head.rows),
            };
            let has_elements = elements.is_some();
            inner.extend(elements.map(|own| OnceLock::from(Some(Arc::new(own)))));
            fields.push(Field {
                has_documents: column.has_documents(),
                is_held: column.is_held() && !has_elements,
                has_elements,
                range: column.range().cloned(),
                ..field
            });
            columns.push(OnceLock::from(column));
        }
        let head = Head::new(head.of, head.rows, fields, head.is_cut);
        let held = (columns.into(), inner.into());
        Segment::new(Arc::new(head), held, Source::Memory, memory.clone())
    }

    /// The elements at a field, as [`Merged::whole`].
    fn whole_elements(&self, field: usize, memory: &Arc<Memory>) -> Option<Segment> {
        let (merged, head) = self.merged_elements(field, memory)?;
        Some(merged.whole(head, memory))
    }
}

#[derive(Default)]
struct Runs {
    all: Vec<Run>,
    rows: usize,
}

impl Runs {
    fn add(&mut self, is_new: bool, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        self.rows += rows.len();
        match self.all.last_mut() {
            Some(last) if last.is_new == is_new && last.rows.end == rows.start => last.rows.end = rows.end,
            _ => self.all.push(Run { is_new, rows }),
        }
    }
}

/// The fields of two segments as those of one.
struct Fields<'f> {
    old: &'f Head,
    new: &'f Segment,
    all: Vec<Field>,
    twos: Vec<Two>,
    is_cut: bool,
}

impl<'f> Fields<'f> {
    fn of(old: &'f Segment, new: &'f Segment) -> (Vec<Field>, bool, Vec<Two>) {
        let mut fields = Self {
            old: old.head(),
            new,
            all: Vec::new(),
            twos: Vec::new(),
            is_cut: old.head().is_cut || new.head().is_cut,
        };
        let both = Two {
            old: Some(0),
            new: (new.rows() > 0).then_some(0),
        };
        fields.add(both, 0);
        (fields.all, fields.is_cut, fields.twos)
    }

    fn add(&mut self, two: Two, level: usize) -> usize {
        let (old, new) = (
            two.old.map(|at| &self.old.fields[at]),
            two.new.map(|at| &self.new.head().fields[at]),
        );
        // It may be there, where not all paths are held.
        let is_unknown = old.is_none() && self.old.is_cut || new.is_none() && self.new.head().is_cut;
        let any = |says: fn(&Field) -> bool| old.is_some_and(says) || new.is_some_and(says);
        let field = Field {
            below: Vec::new(),
            has_others: any(|field| field.has_others) || is_unknown,
            is_ordered: false,
            has_documents: any(|field| field.has_documents),
            has_elements: old.is_some_and(|field| field.has_elements)
                && new.is_none_or(|field| field.has_elements)
                && !is_unknown,
            is_held: !any(|field| !field.is_held) && !is_unknown,
            range: self.range(two),
        };
        let at = self.all.len();
        self.all.push(field);
        self.twos.push(two);
        let (names, is_ordered) = below(old, new);
        let mut below = Vec::with_capacity(names.len());
        for (name, two) in names {
            if self.all.len() >= PATHS_MAX || level >= LEVELS_MAX {
                self.is_cut = true;
                continue;
            }
            below.push((name, self.add(two, level + 1)));
        }
        self.all[at].below = below;
        self.all[at].is_ordered = is_ordered;
        at
    }

    /// Between which values those of both lie.
    fn range(&self, two: Two) -> Option<(Value, Value)> {
        let old = two.old.map(|at| self.old.fields[at].range.as_ref());
        let new = two.new.and_then(|at| {
            let column = self.new.column_once(at);
            (!column.is_empty()).then(|| self.new.head().fields[at].range.as_ref())
        });
        match (old, new) {
            (None, None) => None,
            (Some(range), None) | (None, Some(range)) => range.cloned(),
            (Some(old), Some(new)) => column::range_of_both(old?.clone(), new?),
        }
    }
}

/// The fields below one of two segments, and whether documents of both have them in this order.
fn below(old: Option<&Field>, new: Option<&Field>) -> (Vec<(nestor_model::Str, Two)>, bool) {
    let place = |field: Option<&Field>, name: &str| field?.below.iter().position(|(own, _)| own.as_str() == name);
    let at = |field: Option<&Field>, place: Option<usize>| Some(field?.below[place?].1);
    let mut names = Vec::new();
    for (name, old) in old.into_iter().flat_map(|field| &field.below) {
        let new = at(new, place(new, name));
        names.push((name.clone(), Two { old: Some(*old), new }));
    }
    let known = names.len();
    let mut places = Vec::new();
    for (name, own) in new.into_iter().flat_map(|field| &field.below) {
        match place(old, name) {
            Some(place) => places.push(place),
            None => names.push((
                name.clone(),
                Two {
                    old: None,
                    new: Some(*own),
                },
            )),
        }
    }
    let is_ordered = |field: Option<&Field>| field.is_none_or(|field| field.is_ordered || field.below.is_empty());
    let is_one = known == 0 || known == names.len() && places.is_sorted();
    (names, is_ordered(old) && is_ordered(new) && is_one)
}
