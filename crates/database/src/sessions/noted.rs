//! What sessions did, noted in a file by a secondary now and then, so that it has little to read back when it becomes primary.
//!
//! | size | meaning |
//! |---|---|
//! | 8 | `NestorSN` |
//! | 4 | format version: 1 |
//! | 32 | SHA-256 of everything behind |
//! | 8 | number of the last commit of which all is noted |
//! | 16 | the first bytes of the SHA-256 of that commit's frame: a member may have dropped it since, and have another one |
//! | | a document for each session, one after the other: `id`, `uid`, `number`, `committed`, `statements` |
//!
//! Numbers are little-endian. The file is a hint: one that is missing, cut off or of other commits is as none, and the oplog is read back.

use super::transaction::State;
use super::{Session, Sessions, StatementResult, states};
use crate::lock;
use crate::session_id::{Lsid, Owner};
use crate::uuid::Uuid;
use nestor_model::number::safe_i64;
use nestor_model::{RawDoc, RawWriter, Timestamp, ValueRef};
use nestor_storage::{Engine, Lsn};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::{fs, io};

const FILE: &str = "sessions.noted";
const MAGIC: &[u8; 8] = b"NestorSN";
const VERSION: u32 = 1;

fn path(engine: &Engine) -> Option<PathBuf> {
    Some(engine.directory()?.join(FILE))
}

/// The commit of that number, as far as the journal has it: its time, and what tells it from another one.
fn commit(engine: &Engine, lsn: Lsn) -> Option<(Timestamp, [u8; 16])> {
    let frames = engine.frames(Lsn(lsn.0.checked_sub(1)?)).next(1).ok()?;
    let frame = frames.first().filter(|frame| frame.lsn == lsn)?;
    let hash = Sha256::digest(&frame.bytes);
    Some((frame.optime, *hash.first_chunk()?))
}

/// Notes what sessions did up to a commit.
///
/// Errors: those of writing the file.
pub(super) fn write(engine: &Engine, sessions: &Sessions, upto: Lsn) -> io::Result<()> {
    let (Some(path), Some((_, hash))) = (path(engine), commit(engine, upto)) else {
        return Ok(());
    };
    let mut contents = upto.0.to_le_bytes().to_vec();
    contents.extend_from_slice(&hash);
    let known: Vec<_> = {
        let known = lock(&sessions.known);
        states(&known).map(|(lsid, state)| (*lsid, state.clone())).collect()
    };
    for (lsid, state) in known {
        let session = lock(&state);
        if let Some(number) = session.txn_number {
            contents = encode(contents, lsid, number, &session);
        }
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&Sha256::digest(&contents));
    bytes.append(&mut contents);
    let new = path.with_extension("new");
    fs::write(&new, &bytes)?;
    // What a crash leaves of it has another sum.
    fs::rename(&new, &path)
}

fn encode(out: Vec<u8>, lsid: Lsid, number: i64, session: &Session) -> Vec<u8> {
    let binary = |bytes| ValueRef::Binary { subtype: 0, bytes };
    let mut out = RawWriter::onto(out);
    out.append("id", binary(&lsid.id.0[..]));
    out.append("uid", binary(&lsid.owner.0[..]));
    out.append("number", number);
    out.append("committed", matches!(session.txn, State::Committed(_)));
    out.begin_array("statements");
    for (i, (stmt_id, result)) in session.statements.iter().enumerate() {
        out.begin_document_at(i);
        out.append("stmtId", *stmt_id);
        out.append("n", result.n);
        out.append("nModified", result.n_modified);
        if let Some(upserted) = &result.upserted {
            out.append("upserted", upserted);
        }
        if let Some(value) = &result.value {
            out.append("value", value);
        }
        out.end();
    }
    out.end();
    out.finish()
}

/// Takes what was noted, if it is of this journal. Returns the time of the last commit of which all is known.
pub(super) fn read(engine: &Engine, sessions: &Sessions) -> Option<Timestamp> {
    let bytes = fs::read(path(engine)?).ok()?;
    let (version, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk()?;
    let (sum, contents) = rest.split_first_chunk::<32>()?;
    if u32::from_le_bytes(*version) != VERSION || Sha256::digest(contents)[..] != sum[..] {
        return None;
    }
    let (lsn, rest) = contents.split_first_chunk()?;
    let (hash, mut rest) = rest.split_first_chunk::<16>()?;
    let (time, found) = commit(engine, Lsn(u64::from_le_bytes(*lsn)))?;
    if found != *hash {
        return None;
    }
    while let Some((length, _)) = rest.split_first_chunk() {
        let length = usize::try_from(i32::from_le_bytes(*length)).ok()?;
        let (document, more) = rest.split_at_checked(length)?;
        take(sessions, RawDoc::validate(document).ok()?)?;
        rest = more;
    }
    Some(time)
}

fn take(sessions: &Sessions, document: RawDoc<'_>) -> Option<()> {
    let binary = |name| match document.get(name) {
        Some(ValueRef::Binary { bytes, .. }) => Some(bytes),
        _ => None,
    };
    let lsid = Lsid {
        id: Uuid(binary("id")?.try_into().ok()?),
        owner: Owner(binary("uid")?.try_into().ok()?),
    };
    let state = sessions.touch(lsid).ok()?;
    let mut session = lock(&state);
    session.txn_number = Some(safe_i64(document.get("number")?)?);
    if document.get("committed")?.truthy() {
        session.txn = State::Committed(None);
    }
    for statement in document.get("statements")?.as_array()?.iter() {
        let said = statement.as_document()?;
        let number = |name| said.get(name).and_then(safe_i64);
        let result = StatementResult {
            n: number("n")?,
            n_modified: number("nModified")?,
            upserted: said.get("upserted").map(|value| value.to_value()),
            value: match said.get("value") {
                Some(ValueRef::Document(value)) => Some(value.to_document()),
                _ => None,
            },
            recovered: true,
        };
        session
            .statements
            .insert(i32::try_from(number("stmtId")?).ok()?, result);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;
    use nestor_storage::{EngineOptions, TreeId};

    fn put(engine: &Engine) -> Lsn {
        let mut ws = engine.begin();
        ws.put(TreeId(900), b"key", b"value");
        ws.oplog(doc! { "ts": Timestamp::default(), "t": 0i64, "op": "n", "o": doc! {} }.to_raw())
            .unwrap();
        engine.commit(ws).unwrap().lsn
    }

    #[test]
    fn it_is_read_as_it_was_written_or_is_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path(), EngineOptions::at_time(100)).unwrap();
        put(&engine);
        let upto = put(&engine);
        let time = engine.last_optime();
        put(&engine);
        let sessions = Sessions::default();
        let lsid = |id| Lsid {
            id: Uuid([id; 16]),
            owner: Owner::NOBODY,
        };
        let write = StatementResult {
            n: 1,
            upserted: Some(7.into()),
            value: Some(doc! { "_id": 7 }),
            ..StatementResult::default()
        };
        {
            let state = sessions.touch(lsid(1)).unwrap();
            let mut session = lock(&state);
            session.txn_number = Some(5);
            session.statements.insert(3, write);
            lock(&sessions.touch(lsid(2)).unwrap()).txn_number = Some(9);
            lock(&sessions.touch(lsid(2)).unwrap()).txn = State::Committed(None);
            sessions.touch(lsid(3)).unwrap();
        }
        super::write(&engine, &sessions, upto).unwrap();
        let found = Sessions::default();
        assert_eq!(read(&engine, &found), Some(time));
        assert_eq!(found.len(), 2, "a session without a number has done nothing");
        let state = found.touch(lsid(1)).unwrap();
        let session = lock(&state);
        assert_eq!(session.txn_number, Some(5));
        let result = &session.statements[&3];
        assert_eq!((result.n, result.recovered), (1, true));
        let shown = format!("{:?} {:?}", result.upserted, result.value);
        assert_eq!(
            shown,
            format!("{:?} {:?}", Some(nestor_model::Value::from(7)), Some(doc! { "_id": 7 }))
        );
        let committed = found.touch(lsid(2)).unwrap();
        assert!(matches!(lock(&committed).txn, State::Committed(None)));

        let file = dir.path().join(FILE);
        let sound = fs::read(&file).unwrap();
        for at in [0, 9, 20, 46, 60, sound.len() - 1] {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            fs::write(&file, &bytes).unwrap();
            assert_eq!(read(&engine, &Sessions::default()), None, "byte {at}");
            fs::write(&file, &sound[..at]).unwrap();
            assert_eq!(read(&engine, &Sessions::default()), None, "cut off at {at}");
        }
        // Of a commit that was dropped, in whose place there is another one.
        fs::write(&file, &sound).unwrap();
        let other = tempfile::tempdir().unwrap();
        let engine = Engine::open(other.path(), EngineOptions::at_time(500)).unwrap();
        fs::copy(&file, other.path().join(FILE)).unwrap();
        assert_eq!(read(&engine, &Sessions::default()), None);
        for _ in 0..5 {
            put(&engine);
        }
        assert_eq!(read(&engine, &Sessions::default()), None);
    }
}
