//! Every frame of every segment, those before the last checkpoint too: they are the oplog.

use super::CheckReport;
use crate::Result;
use crate::engine::directory::Directory;
use crate::journal::frame::Frame;
use crate::journal::segment::{self, HEADER_BYTES, Segment};
use crate::journal::{JournalOptions, LastFrame, Position, recover};
use nestor_model::{Timestamp, ValueRef};
use std::path::Path;

/// The facts that the frame after those read so far must agree with.
struct Next {
    /// The next sequence number.
    seq: u64,
    /// The optime before it.
    optime: Timestamp,
    last: Option<LastFrame>,
}

/// Where the journal ends.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// As recovery found it. Behind it may be what the next start cuts off.
    pub(super) position: Position,
    /// Durable commits are missing there, which was told as a fault.
    pub(super) is_lost: bool,
}

/// `end` is `None` if recovery failed: then everything has to be sound.
pub(super) fn check(directory: &Directory, end: Option<End>, report: &mut CheckReport) -> Result<()> {
    let dir = &*directory.journal();
    let is_lost = end.is_some_and(|end| end.is_lost);
    let end = end.map(|end| end.position);
    let names = recover::files(dir)?;
    report.segments = names.len() as u64;
    let options = JournalOptions::read_only(directory.seals().cloned());
    let mut next: Option<Next> = None;
    for first_seq in &names {
        let opened = Segment::open(dir, *first_seq, &options);
        let segment = match report.damage("", opened)? {
            Some(Some(segment)) => segment,
            Some(None) => {
                let is_behind = end.map_or(names.last() == Some(first_seq), |end| *first_seq > end.segment);
                unfinished(dir, *first_seq, is_behind, report);
                next = None;
                continue;
            }
            None => {
                next = None;
                continue;
            }
        };
        if let Some(end) = end
            && segment.first_seq > end.segment
        {
            if !is_lost {
                cut_off(&segment, 0, "it follows a write that was not finished", report);
            }
            continue;
        }
        let mut start = Next {
            seq: segment.first_seq,
            optime: segment.optime_before,
            last: None,
        };
        match next {
            Some(next) if (next.seq, next.optime) == (start.seq, start.optime) => start = next,
            Some(_) => report.fault(format!("{}: frames before it are missing", segment.path.display())),
            None => {}
        }
        let end = end.filter(|end| end.segment == segment.first_seq);
        let checked = frames(&segment, start, end.map(|end| (end.offset, is_lost)), report);
        next = report.damage("", checked)?.flatten();
    }
    Ok(())
}

/// A segment without a whole header: those behind the journal's end may have been about to be made.
fn unfinished(dir: &Path, first_seq: u64, is_behind: bool, report: &mut CheckReport) {
    let path = dir.join(segment::file_name(first_seq));
    if is_behind {
        report.note(format!("{}: the segment was being made", path.display()));
    } else {
        report.fault(format!(
            "{} is corrupt at byte 0: segment has no header",
            path.display()
        ));
    }
}

fn cut_off(segment: &Segment, offset: u64, reason: &str, report: &mut CheckReport) {
    report.note(format!(
        "{} at byte {offset}: {} bytes that the next start cuts off, because the journal ended in the middle of a write: {reason}",
        segment.path.display(),
        segment.len() - offset
    ));
}

/// Reads all frames, up to `end` if that is known: the offset, and whether commits are lost there. Returns what has to
/// follow; `None` if there is damage.
fn frames(segment: &Segment, start: Next, end: Option<(u64, bool)>, report: &mut CheckReport) -> Result<Option<Next>> {
    let mut bytes = vec![0; (segment.len() - HEADER_BYTES as u64) as usize];
    segment.read(&mut bytes, HEADER_BYTES as u64)?;
    let Next {
        mut seq,
        mut optime,
        mut last,
    } = start;
    let mut done = 0;
    let mut plain = Vec::new();
    while !Segment::is_prepared(&bytes[done..]) {
        let offset = (done + HEADER_BYTES) as u64;
        let frame = match Frame::read(&bytes[done..]) {
            Ok(frame) if frame.seq() == seq => Ok(frame),
            Ok(_) => Err("frame has a wrong number"),
            Err(unsound) => Err(unsound.0),
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(reason) if end.is_some_and(|(end, _)| end == offset) => {
                if end == Some((offset, false)) {
                    cut_off(segment, offset, reason, report);
                }
                return Ok(None);
            }
            Err(reason) => {
                report.fault(segment.corrupt(offset, reason).to_string());
                return Ok(None);
            }
        };
        let frame = match segment.contents(frame, offset, &mut plain) {
            Ok(frame) => frame,
            Err(error) => {
                report.fault(error.to_string());
                return Ok(None);
            }
        };
        let fault = |reason| segment.corrupt(offset, reason).to_string();
        let faults = report.fault_count;
        for entry in frame.entries() {
            let ts = entry.as_ref().ok().and_then(|entry| entry.get("ts"));
            match ts {
                Some(ValueRef::Timestamp(ts)) if ts > optime && ts <= frame.optime() => optime = ts,
                _ => report.fault(fault("an oplog entry is broken or out of order")),
            }
            report.oplog_entries += 1;
        }
        if frame.ops().any(|op| op.is_err()) {
            report.fault(fault("operations do not decode"));
        }
        if !recover::follows(&frame, last) {
            report.fault(fault(recover::OTHER_COPY));
        }
        report.commits += 1;
        (seq, optime) = (frame.seq() + 1, frame.optime());
        // The frame after a wrong one tells nothing more about it.
        last = (report.fault_count == faults).then(|| LastFrame {
            offset,
            checksum: frame.checksum(),
        });
        done += frame.len();
    }
    Ok(Some(Next { seq, optime, last }))
}
