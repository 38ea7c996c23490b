//! Attempts to log in that fail are told later, whatever they were made with.

use super::{Client, service};
use nestor_model::{Binary, Document, Value, doc};

fn plain(user: &str, password: &str) -> Document {
    let bytes = format!("\0{user}\0{password}").into_bytes().into();
    let payload = Value::from(Binary { subtype: 0, bytes });
    doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": payload, "$db": "d" }
}

#[test]
fn failures_wait() {
    let service = service();
    let mut client = Client::new(&service);
    let user = |name: &str, mechanisms: Vec<Value>| {
        doc! { "createUser": name, "pwd": "pencil", "roles": Vec::<Value>::new(), "mechanisms": mechanisms, "$db": "d" }
    };
    client.run(user("new", vec!["SCRAM-SHA-256".into()]));
    client.run(user("old", vec!["SCRAM-SHA-1".into()]));
    let elsewhere = vec![Value::from(doc! { "clientSource": vec![Value::from("10.1.2.3")] })];
    let mut away = user("away", vec!["SCRAM-SHA-256".into()]);
    away.push("authenticationRestrictions", elsewhere);
    client.run(away);
    client.conn.protection.is_encrypted = true;
    client.conn.protection.certificate = Some("CN=nobody".into());
    let certificate = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
    // Nobody learns from the time whether the password was right that does not help from here.
    let failing = [
        plain("new", "pen"),
        plain("old", "pen"),
        plain("away", "pencil"),
        plain("nobody", "pencil"),
        certificate,
    ];
    for command in failing {
        let outcome = client.outcome(command.clone());
        assert!(outcome.park.is_some(), "{command:?}");
        // The time is over.
        assert_eq!(client.code(command.clone()), 18, "{command:?}");
        assert!(client.conn.identity.account().is_none());
    }
    for name in ["new", "old"] {
        let outcome = client.outcome(plain(name, "pencil"));
        assert!(outcome.park.is_none(), "{name}");
        let account = client.conn.identity.account().expect("somebody is logged in");
        assert_eq!(account.name.user, name);
        client.run(doc! { "logout": 1 });
    }
}
