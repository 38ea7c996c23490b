//! The end of every reply, and error replies.

use nestor_model::{Document, Error, ErrorCode, RawWriter, Timestamp, ValueRef};

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

/// Appends `$clusterTime` and `operationTime`. The signature is the dummy that a server without
/// authentication sends: twenty zero bytes and key 0.
pub fn write_times(writer: &mut RawWriter, time: Option<Timestamp>) {
    let Some(time) = time else { return };
    writer.begin_document("$clusterTime");
    writer.append("clusterTime", time);
    writer.begin_document("signature");
    writer.append(
        "hash",
        ValueRef::Binary {
            subtype: 0,
            bytes: &[0; 20],
        },
    );
    writer.append("keyId", 0i64);
    writer.end();
    writer.end();
    writer.append("operationTime", time);
}
