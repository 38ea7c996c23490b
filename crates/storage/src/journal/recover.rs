//! Reading the journal at start-up.
//!
//! From the place the last checkpoint names, frames are replayed as long as they are sound and their numbers follow each
//! other. Where that ends, there are two cases. If [`super::mark`], or a later sound frame, says that the number
//! missing here was durable, bytes that were on disk are damaged: that is refused, naming file and offset, unless who opens
//! the store gives up just what is missing. Otherwise this is the tail of what was not synced when the machine stopped (a
//! disk may write the pages of a tail in any order, so whole frames may follow): it is cut off. Zeros up to the end of a segment are
//! neither: they are room that its writer had prepared.
//!
//! Each frame repeats the checksum of the one before it, and base and mark those of the frames that they end with. If they do
//! not fit, they are of copies of one directory that went different ways, which is refused too.
//!
//! What was replayed counts as durable from then on, and what was cut off or removed as gone, so all of it is synced before
//! anything is appended. It is also written again: after a failed sync the operating system counts what it could not write as
//! written, and a process that starts again reads from its memory what no later sync would put on the disk.

use super::frame::{self, Frame};
use super::segment::{self, Segment};
use super::{Checkpoint, Journal, JournalOptions, LastFrame, Position, mark};
use crate::{Result, StorageError};
use nestor_model::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether the files may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// A torn end is cut off; the journal can be appended to.
    Write,
    /// Nothing is changed. The journal is for reading.
    Read,
}

/// Facts about a journal from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// From the base; `None` if there was no checkpoint.
    pub(crate) checkpoint: Option<Checkpoint>,
    /// The mark as it was found, and its file.
    pub(crate) mark: mark::Found,
    pub(crate) mark_file: PathBuf,
    /// The journal may end with this commit although later ones were durable.
    pub(crate) give_up_after: Option<u64>,
    /// Commits after this time are given up.
    pub(crate) until: Option<Timestamp>,
    /// Commits after this one are given up.
    pub(crate) last_kept: Option<u64>,
}

/// Opens the journal in `dir` and hands every frame after the checkpoint to `replay`.
pub(crate) fn open(
    dir: &Path,
    options: JournalOptions,
    known: &Known,
    access: Access,
    mut replay: impl FnMut(&Frame<'_>) -> Result<()>,
) -> Result<Journal> {
    let mut end = known.checkpoint.unwrap_or_default();
    let mut segments = open_segments(dir, &options)?;
    let start = known.checkpoint.map(|checkpoint| checkpoint.position);
    check_start(dir, &mut segments, start)?;
    if segments.is_empty() && start.is_none() {
        known.check_end(&dir.join(segment::file_name(1)), 0, &end, None)?;
        if access == Access::Write {
            segments.push(Arc::new(Segment::create(dir, 1, end.optime, &options)?));
        }
    }
    let first = match start {
        None => 0,
        Some(start) => segments
            .iter()
            .position(|s| s.first_seq == start.segment && s.len() >= start.offset)
            .ok_or_else(|| StorageError::Corrupt {
                file: dir.join(segment::file_name(start.segment)),
                offset: start.offset,
                reason: "the journal ends before the last checkpoint".into(),
            })?,
    };
    if let Some(checkpoint) = &known.checkpoint {
        check_last(&segments[first], checkpoint)?;
    }
    known.check_mark(&end)?;
    let mut at = first;
    let mut offset = start.map_or(segment::HEADER_BYTES as u64, |p| p.offset);
    let mut is_cut = false;
    // The bytes read are written again, so they are not decrypted where they are.
    let mut plain = Vec::new();
    while let Some(segment) = segments.get(at).cloned() {
        if at > first && segment.first_seq != end.seq + 1 {
            // The end of the segment before is missing.
            let behind = segments[at - 1].len();
            cut(&segments[at - 1..], behind, "frames are missing", &end, known, access)?;
            segments.truncate(at);
            is_cut = true;
            break;
        }
        let mut bytes = vec![0; (segment.len() - offset) as usize];
        segment.read(&mut bytes, offset)?;
        let mut done = 0;
        let unsound = loop {
            if Segment::is_prepared(&bytes[done..]) {
                break None;
            }
            let frame = match Frame::read(&bytes[done..]) {
                Ok(frame) if frame.seq() == end.seq + 1 => frame,
                Ok(_) => break Some("frame has a wrong number"),
                Err(unsound) => break Some(unsound.0),
            };
            let place = offset + done as u64;
            if !follows(&frame, end.last) {
                return Err(segment.corrupt(place, OTHER_COPY));
            }
            let is_late = known.until.is_some_and(|until| frame.optime() > until);
            if is_late || known.last_kept.is_some_and(|last| frame.seq() > last) {
                break Some(TOO_LATE);
            }
            let contents = segment.contents(frame, place, &mut plain)?;
            replay(&contents).map_err(|e| place_error(e, &segment, place))?;
            done += frame.len();
            end = Checkpoint {
                seq: frame.seq(),
                optime: frame.optime(),
                position: Position {
                    segment: segment.first_seq,
                    offset: place + frame.len() as u64,
                },
                last: Some(LastFrame {
                    offset: place,
                    checksum: frame.checksum(),
                }),
            };
            known.check_mark(&end)?;
        };
        if access == Access::Write {
            segment.write_again(&bytes[..done], offset)?;
        }
        if let Some(reason) = unsound {
            match reason {
                TOO_LATE => end_at(&segments[at], offset + done as u64, access)?,
                _ => cut(&segments[at..], offset + done as u64, reason, &end, known, access)?,
            }
            segments.truncate(at + 1);
            is_cut = true;
            break;
        }
        if done < bytes.len() {
            end_at(&segment, offset + done as u64, access)?;
        }
        at += 1;
        offset = segment::HEADER_BYTES as u64;
    }
    if let (false, Some(last)) = (is_cut, segments.last()) {
        known.check_end(&last.path, last.len(), &end, None)?;
    }
    if access == Access::Write {
        for gone in files(dir)? {
            if segments.iter().all(|s| s.first_seq != gone) {
                let path = dir.join(segment::file_name(gone));
                std::fs::remove_file(&path).map_err(|e| StorageError::io("remove", &path, &e))?;
            }
        }
    }
    let journal = Journal::new(dir, options, segments, first, &known.mark_file, &end)?;
    if access == Access::Write {
        journal.syncer.settle()?;
        // A mark ahead of the journal would be taken for that of another copy once the journal has got there.
        if known.mark.mark().is_some_and(|mark| mark.seq > end.seq) {
            journal.syncer.mark().check()?;
        }
    }
    Ok(journal)
}

/// The error for files that do not belong together.
pub(crate) const OTHER_COPY: &str =
    "the frame does not follow what is before it: files of two copies of the directory were mixed";

/// Whether a frame may follow the last one, as far as both say.
pub(crate) fn follows(frame: &Frame<'_>, last: Option<LastFrame>) -> bool {
    match (frame.previous(), last) {
        (Some(previous), Some(last)) => previous == last.checksum,
        _ => true,
    }
}

/// Checks that the frame of the last commit in the base is where the base says, and the same.
fn check_last(segment: &Segment, checkpoint: &Checkpoint) -> Result<()> {
    let Some(last) = checkpoint.last else { return Ok(()) };
    let found = match segment.header(last.offset) {
        Ok(found) => found,
        Err(StorageError::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    let fits = found.is_some_and(|(header, length)| {
        let is_there = last.offset + length == checkpoint.position.offset;
        is_there && (frame::seq(&header), frame::checksum(&header)) == (checkpoint.seq, last.checksum)
    });
    match fits {
        true => Ok(()),
        false => Err(segment.corrupt(
            last.offset,
            "the last frame that is in the base is another one here: it is damaged, or base and journal are of two copies of \
             the directory",
        )),
    }
}

impl Known {
    /// Checks that the journal, which is read up to `end`, and the mark are of one directory.
    fn check_mark(&self, end: &Checkpoint) -> Result<()> {
        let (Some(mark), Some(last)) = (self.mark.mark(), end.last) else {
            return Ok(());
        };
        if mark.seq != end.seq || mark.checksum == 0 || mark.checksum == last.checksum {
            return Ok(());
        }
        Err(StorageError::Corrupt {
            file: self.mark_file.clone(),
            offset: 24,
            reason: format!("commit {} is another one here than in the journal: {MIXED}", mark.seq),
        })
    }

    /// Refuses that the journal ends with `end`, at `offset` of `file`, if more was durable: as the mark says, or `seen` in
    /// frames that follow.
    fn check_end(&self, file: &Path, offset: u64, end: &Checkpoint, seen: Option<(u64, &str)>) -> Result<()> {
        let marked = self.mark.mark().map_or(0, |mark| mark.seq);
        let durable = marked.max(seen.map_or(0, |(durable, _)| durable));
        if durable <= end.seq {
            return Ok(());
        }
        let lost = StorageError::CommitsLost {
            file: file.to_owned(),
            offset,
            last: end.seq,
            durable,
            reason: seen.map_or("the file ends here", |(_, reason)| reason).into(),
        };
        if self.give_up_after == Some(end.seq) {
            tracing::warn!(%lost, "commits are given up");
            return Ok(());
        }
        Err(lost)
    }
}

const MIXED: &str = "files of two copies of the directory were mixed";

/// Refuses a journal whose beginning is missing. Only the header of the very first segment may be, together with all that
/// follows, when nothing was ever synced: then nothing is left of the journal.
fn check_start(dir: &Path, segments: &mut Vec<Arc<Segment>>, start: Option<Position>) -> Result<()> {
    let missing = |name, reason: &str| {
        Err(StorageError::Corrupt {
            file: dir.join(segment::file_name(name)),
            offset: 0,
            reason: reason.into(),
        })
    };
    let names = files(dir)?;
    // Segments before the checkpoint were synced.
    let first = start.map_or(0, |start| start.segment);
    let is_headless = |name: &&u64| segments.iter().all(|s| s.first_seq != **name);
    if let Some(name) = names.iter().take_while(|name| **name < first).find(is_headless) {
        return missing(*name, "segment has no header");
    }
    if start.is_some() || segments.first().is_none_or(|s| s.first_seq == 1) {
        return Ok(());
    }
    let mut was_synced = names.first() != Some(&1);
    for segment in segments.iter() {
        let mut bytes = vec![0; segment.len() as usize - segment::HEADER_BYTES];
        segment.read(&mut bytes, segment::HEADER_BYTES as u64)?;
        was_synced |= durable_in(&bytes, 1).is_some();
    }
    if was_synced {
        return missing(1, "the first segment of the journal is missing");
    }
    segments.clear();
    Ok(())
}

/// Sequence numbers of the segment files in `dir`, ascending.
pub(crate) fn files(dir: &Path) -> Result<Vec<u64>> {
    let entries = std::fs::read_dir(dir).map_err(|e| StorageError::io("open", dir, &e))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| StorageError::io("open", dir, &e))?;
        found.extend(entry.file_name().to_str().and_then(segment::parse_name));
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether the journal in `dir` has more than headers of segments.
pub(crate) fn has_commits(dir: &Path) -> Result<bool> {
    for name in files(dir)? {
        let path = dir.join(segment::file_name(name));
        let metadata = std::fs::metadata(&path).map_err(|e| StorageError::io("open", &path, &e))?;
        if metadata.len() > segment::HEADER_BYTES as u64 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// All segments with a whole header, oldest first. Of those made since the last sync any may lack it.
pub(crate) fn open_segments(dir: &Path, options: &JournalOptions) -> Result<Vec<Arc<Segment>>> {
    let mut segments = Vec::new();
    for first_seq in files(dir)? {
        segments.extend(Segment::open(dir, first_seq, options)?.map(Arc::new));
    }
    Ok(segments)
}

/// Why a frame that is later than what is to be recovered is not replayed.
const TOO_LATE: &str = "the frame is later than wanted";

/// Ends the journal at `offset` of this segment.
fn end_at(segment: &Segment, offset: u64, access: Access) -> Result<()> {
    if access == Access::Write {
        let cut = segment.file.set_len(offset);
        cut.map_err(|e| StorageError::io("truncate", &segment.path, &e))?;
    }
    segment.set_len(offset);
    Ok(())
}

/// Ends the journal at `offset` of the first of these segments, behind `end`, unless something was durable from there on.
fn cut(
    segments: &[Arc<Segment>],
    offset: u64,
    reason: &str,
    end: &Checkpoint,
    known: &Known,
    access: Access,
) -> Result<()> {
    let segment = &segments[0];
    let (mut lost, mut durable) = (0, None);
    for later in segments {
        let from = if Arc::ptr_eq(later, segment) {
            offset
        } else {
            segment::HEADER_BYTES as u64
        };
        let mut bytes = vec![0; later.len().saturating_sub(from) as usize];
        later.read(&mut bytes, from)?;
        lost += bytes.len();
        durable = durable.max(durable_in(&bytes, end.seq + 1));
    }
    known.check_end(&segment.path, offset, end, Some((durable.unwrap_or(0), reason)))?;
    tracing::warn!(
        path = %segment.path.display(),
        offset,
        bytes = lost,
        reason,
        "the journal ends in an incomplete write, which is cut off"
    );
    end_at(segment, offset, access)
}

/// The last number, `seq` or a later one, that some sound frame in `bytes` says was durable when it was written.
fn durable_in(bytes: &[u8], seq: u64) -> Option<u64> {
    (0..bytes.len())
        .step_by(frame::ALIGN)
        .filter(|at| frame::length(&bytes[*at..]).is_ok())
        .filter_map(|at| Frame::read(&bytes[at..]).ok())
        .filter(|frame| frame.seq() > seq && frame.durable() >= seq)
        .map(|frame| frame.durable())
        .max()
}

/// Adds the place to errors about the meaning of a frame.
fn place_error(error: StorageError, segment: &Segment, offset: u64) -> StorageError {
    match error {
        StorageError::Undecodable(reason) => segment.corrupt(offset, &reason),
        other => other,
    }
}
