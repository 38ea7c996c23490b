//! The end of every reply, and error replies.

use nestor_model::{Document, Error, ErrorCode, RawWriter, Timestamp};

/// Appends `ok: 1` and, on a replica set, the times.
pub fn finish(writer: &mut RawWriter, time: Option<Timestamp>) {
    writer.append("ok", 1.0);
    write_times(writer, time);
}

/// Appends an error: `ok: 0`, message, code and what it carries.
pub fn write_error(writer: &mut RawWriter, error: &Error) {
    write_labels(writer, error);
    writer.append("ok", 0.0);
    writer.append("errmsg", error.message());
    writer.append("code", error.code().number());
    writer.append("codeName", error.code().name().as_str());
    if let Some(extra) = error.extra() {
        for (name, value) in extra.iter() {
            writer.append(name, value);
        }
    }
}

/// Errors that tell a driver to look for another primary. They carry `topologyVersion`, by which it sees
/// whether that is news (specification "Server Discovery and Monitoring", "Error handling").
pub fn is_state_change(code: ErrorCode) -> bool {
    matches!(code.number(), 91 | 189 | 10058 | 10107 | 11600 | 11602 | 13435 | 13436)
}

/// Appends a `writeConcernError`, without its labels.
pub fn write_concern_error(writer: &mut RawWriter, error: &Document) {
    writer.begin_document("writeConcernError");
    for (name, value) in error.iter() {
        if name != "errorLabels" {
            writer.append(name, value);
        }
    }
    writer.end();
}

/// Appends the labels of a `writeConcernError`: they stand beside it.
pub fn write_concern_labels(writer: &mut RawWriter, error: &Document) {
    if let Some(labels) = error.get("errorLabels") {
        writer.append("errorLabels", labels);
    }
}

fn write_labels(writer: &mut RawWriter, error: &Error) {
    if error.labels().is_empty() {
        return;
    }
    writer.begin_array("errorLabels");
    for (i, label) in error.labels().iter().enumerate() {
        writer.append_index(i, *label);
    }
    writer.end();
}

/// `$clusterTime` and `operationTime` as every reply of a replica set ends, at time zero. The signature is the dummy that a server
/// without authentication sends: twenty zero bytes and key 0.
const TIMES: [u8; 125] = *b"\x03$clusterTime\0\x58\0\0\0\
    \x11clusterTime\0\0\0\0\0\0\0\0\0\
    \x03signature\0\x33\0\0\0\
    \x05hash\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \x12keyId\0\0\0\0\0\0\0\0\0\0\0\
    \x11operationTime\0\0\0\0\0\0\0\0\0";
/// Where the times stand in [`TIMES`].
const TIMES_AT: [usize; 2] = [31, 117];

/// Appends `$clusterTime` and `operationTime`.
pub fn write_times(writer: &mut RawWriter, time: Option<Timestamp>) {
    let Some(time) = time else { return };
    let mut bytes = TIMES;
    for at in TIMES_AT {
        bytes[at..at + 8].copy_from_slice(&time.to_u64().to_le_bytes());
    }
    writer.append_element_bytes(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Binary, doc};

    #[test]
    fn times_are_what_their_document_is_in_bytes() {
        let time = Timestamp {
            secs: 0x01020304,
            inc: 5,
        };
        let mut writer = RawWriter::new();
        write_times(&mut writer, Some(time));
        let hash = Binary {
            subtype: 0,
            bytes: [0; 20].as_slice().into(),
        };
        let expected = doc! {
            "$clusterTime": doc! {
                "clusterTime": time,
                "signature": doc! { "hash": nestor_model::Value::Binary(hash), "keyId": 0i64 },
            },
            "operationTime": time,
        };
        assert_eq!(writer.into_doc().as_bytes(), expected.to_raw().as_bytes());
    }
}
