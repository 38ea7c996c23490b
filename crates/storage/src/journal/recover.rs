//! Reading the journal at start-up.
//!
//! From the place the last checkpoint names, frames are replayed as long as they are sound and their numbers follow each
//! other. Where that ends, there are two cases. If a later sound frame says that the number missing here was durable
//! when it was written, bytes that were on disk are damaged: that is refused, naming file and offset. Otherwise this is
//! the tail of what was not synced when the machine stopped (a disk may write the pages of a tail in any order, so whole
//! frames may follow): it is cut off.
//!
//! What was replayed counts as durable from then on, and what was cut off or removed as gone, so all of it is synced before
//! anything is appended. It is also written again: after a failed sync the operating system counts what it could not write as
//! written, and a process that starts again reads from its memory what no later sync would put on the disk.

use super::frame::{self, Frame};
use super::segment::{self, Segment};
use super::{Journal, JournalOptions, Position};
use crate::{Result, StorageError};
use nestor_model::Timestamp;
use std::path::Path;
use std::sync::Arc;

/// Whether the files may be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// What is torn is cut off; the journal can be appended to.
    Write,
    /// Nothing is changed. The journal is for reading.
    Read,
}

/// Opens the journal in `dir` and hands every frame after the checkpoint to `replay`. `checkpoint` is the last sequence
/// number and optime in the base and the place behind them; `None` if there was no checkpoint.
pub(crate) fn open(
    dir: &Path,
    options: JournalOptions,
    checkpoint: Option<(u64, Timestamp, Position)>,
    access: Access,
    mut replay: impl FnMut(&Frame<'_>) -> Result<()>,
) -> Result<Journal> {
    let (mut last_seq, mut last_optime) = checkpoint.map_or((0, Timestamp::default()), |(seq, ts, _)| (seq, ts));
    let mut segments = open_segments(dir, &options)?;
    let start = checkpoint.map(|(_, _, position)| position);
    check_start(dir, &mut segments, start)?;
    if segments.is_empty() && start.is_none() && access == Access::Write {
        segments.push(Arc::new(Segment::create(dir, 1, last_optime, &*options.open)?));
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
    let mut at = first;
    let mut offset = start.map_or(segment::HEADER_BYTES as u64, |p| p.offset);
    while let Some(segment) = segments.get(at).cloned() {
        if at > first && segment.first_seq != last_seq + 1 {
            // The end of the segment before is missing.
            cut(
                &segments,
                at - 1,
                segments[at - 1].len(),
                last_seq,
                "frames are missing",
                access,
            )?;
            segments.truncate(at);
            break;
        }
        let mut bytes = vec![0; (segment.len() - offset) as usize];
        segment.read(&mut bytes, offset)?;
        let mut done = 0;
        let unsound = loop {
            if done == bytes.len() {
                break None;
            }
            let frame = match Frame::read(&bytes[done..]) {
                Ok(frame) if frame.seq() == last_seq + 1 => frame,
                Ok(_) => break Some("frame has a wrong number"),
                Err(unsound) => break Some(unsound.0),
            };
            replay(&frame).map_err(|e| place_error(e, &segment, offset + done as u64))?;
            (last_seq, last_optime) = (frame.seq(), frame.optime());
            done += frame.len();
        };
        if access == Access::Write {
            segment.write_again(&bytes[..done], offset)?;
        }
        if let Some(reason) = unsound {
            cut(&segments, at, offset + done as u64, last_seq, reason, access)?;
            segments.truncate(at + 1);
            break;
        }
        at += 1;
        offset = segment::HEADER_BYTES as u64;
    }
    if access == Access::Write {
        for gone in files(dir)? {
            if segments.iter().all(|s| s.first_seq != gone) {
                let path = dir.join(segment::file_name(gone));
                std::fs::remove_file(&path).map_err(|e| StorageError::io("remove", &path, &e))?;
            }
        }
    }
    let journal = Journal::new(dir, options, segments, first, (last_seq, last_optime))?;
    if access == Access::Write {
        journal.syncer.settle()?;
    }
    Ok(journal)
}

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
    // Those before the checkpoint were synced.
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
        was_synced |= was_durable(&bytes, 1);
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
        segments.extend(Segment::open(dir, first_seq, &*options.open)?.map(Arc::new));
    }
    Ok(segments)
}

/// Ends the journal at `offset` of segment `at`, behind frame `last_seq`, unless something was durable from there on.
fn cut(segments: &[Arc<Segment>], at: usize, offset: u64, last_seq: u64, reason: &str, access: Access) -> Result<()> {
    let segment = &segments[at];
    let mut lost = 0;
    for later in &segments[at..] {
        let from = if Arc::ptr_eq(later, segment) {
            offset
        } else {
            segment::HEADER_BYTES as u64
        };
        let mut bytes = vec![0; later.len().saturating_sub(from) as usize];
        later.read(&mut bytes, from)?;
        lost += bytes.len();
        if was_durable(&bytes, last_seq + 1) {
            return Err(segment.corrupt(offset, reason));
        }
    }
    tracing::warn!(
        path = %segment.path.display(),
        offset,
        bytes = lost,
        reason,
        "the journal ends in an incomplete write, which is cut off"
    );
    if access == Access::Write {
        let cut = segment.file.set_len(offset);
        cut.map_err(|e| StorageError::io("truncate", &segment.path, &e))?;
    }
    segment.set_len(offset);
    Ok(())
}

/// Whether some sound frame in `bytes` says that `seq` was durable when it was written.
fn was_durable(bytes: &[u8], seq: u64) -> bool {
    (0..bytes.len())
        .step_by(frame::ALIGN)
        .filter(|at| frame::length(&bytes[*at..]).is_ok())
        .any(|at| Frame::read(&bytes[at..]).is_ok_and(|frame| frame.seq() > seq && frame.durable() >= seq))
}

/// Adds the place to errors about the meaning of a frame.
fn place_error(error: StorageError, segment: &Segment, offset: u64) -> StorageError {
    match error {
        StorageError::Undecodable(reason) => segment.corrupt(offset, &reason),
        other => other,
    }
}
