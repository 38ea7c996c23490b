//! What the fuzz targets of logging in, of rights and of audit filters do with their input, and tests that replay the corpus (`fuzz/corpus/`) the same
//! way.

use crate::audit::Config;
use crate::login::credential::Credential;
use crate::login::mechanism::Mechanism;
use crate::login::scram::Hello;
use crate::rights::Grant;
use crate::users::restriction::{Ends, Restrictions};
use crate::users::{Account, RoleName, UserName};
use nestor_model::{RawDoc, Timestamp, Value, ValueRef, doc};
use nestor_query::env::OpContext;

/// Both messages of a client that logs in, with a zero byte between them: nobody gets in, and nothing panics.
pub fn sasl(bytes: &[u8]) {
    let (first, last) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    let Ok(hello) = Hello::parse(first) else { return };
    for mechanism in Mechanism::ALL {
        // Few rounds: how many there are changes no step.
        let credential = Credential::new(mechanism, "a password that nobody knows", b"salt", 1);
        let (challenge, answer) = hello.clone().challenge(credential, "nonce");
        assert!(answer.starts_with("r="), "a challenge begins with the nonce");
        assert!(challenge.verify(last).is_err(), "nobody knows the password");
    }
}

/// A document of a user, a role, a privilege or an array of restrictions: read, or refused; what was read is written as it was.
pub fn rights(doc: RawDoc<'_>) {
    let doc = doc.as_doc();
    if let Ok(grant) = Grant::parse(doc) {
        let again = Grant::parse(grant.to_document().as_ref());
        assert_eq!(again.ok(), Some(grant), "a privilege is written as it is read");
    }
    for (_, value) in doc.iter() {
        if let Ok(role) = RoleName::parse(value, "d") {
            let again = RoleName::parse(ValueRef::Document(role.to_document().as_ref()), "other");
            assert_eq!(again.ok(), Some(role), "a name is written as it is read");
        }
        let ends = Ends::parse("127.0.0.1:1", "127.0.0.1:27017");
        // Whatever was stored, somebody from nowhere is let in only if it restricts nothing.
        let _ = Restrictions::stored(value).allow(ends);
    }
    // The roles of the user are found in the same document, so that they may inherit themselves.
    let mut role = |_: &RoleName| Ok(Some(doc.to_document()));
    let account = Account::of(UserName::new("u", "d"), doc, &mut role);
    assert!(account.is_ok(), "what cannot be read gives nothing");
}

/// A filter of the audit log: refused, or it says yes or no of a record, the same each time.
pub fn audit_filter(filter: RawDoc<'_>) {
    let Ok(Some(parsed)) = Config::filter(filter.as_doc()) else {
        return;
    };
    let record = doc! {
        "atype": "authCheck",
        "ts": Value::DateTime(0),
        "remote": doc! { "ip": "127.0.0.1", "port": 1 },
        "users": vec![Value::from(doc! { "user": "u", "db": "d" })],
        "param": doc! { "command": "find", "ns": "d.c", "args": doc! { "filter": doc! {} } },
        "result": 13,
    };
    let op = || OpContext::new(0, Timestamp::default(), 0);
    let first = parsed.matches(&record, &op()).ok();
    assert_eq!(
        first,
        parsed.matches(&record, &op()).ok(),
        "a record is wanted or it is not"
    );
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::corpus::corpus;
    use super::*;
    use nestor_model::extjson;
    #[test]
    fn messages_of_clients() {
        for seed in corpus("sasl") {
            for at in 0..seed.len() {
                sasl(&seed[..at]);
            }
            sasl(&seed);
        }
    }

    #[test]
    fn documents_of_users_and_roles() {
        documents("rights", rights);
    }

    #[test]
    fn filters_of_the_audit_log() {
        documents("audit_filter", audit_filter);
    }

    /// Each document of a corpus, and what it becomes when its bytes change one by one.
    fn documents(target: &str, run: fn(RawDoc<'_>)) {
        for seed in corpus(target) {
            let text = String::from_utf8(seed).expect("the seeds are text");
            let doc = extjson::parse_document(&text)
                .expect("the seeds are documents")
                .to_raw();
            run(doc.as_raw());
            // Its bytes changed one by one are documents now and then.
            let mut bytes = doc.as_raw().as_bytes().to_vec();
            for at in 4..bytes.len() {
                for change in [1, 0x80] {
                    bytes[at] ^= change;
                    if let Ok(doc) = RawDoc::validate(&bytes) {
                        run(doc);
                    }
                    bytes[at] ^= change;
                }
            }
        }
    }
}
