//! `serverStatus` shows the turns of long operations. They are those of the process: alone here, nobody else takes one.

use nestor_command::{Connection, Request, Service};
use nestor_database::DatabaseOptions;
use nestor_database::turns::Turns;
use nestor_model::{RawDoc, ValueRef, doc, number};
use nestor_storage::{Engine, EngineOptions};

#[test]
fn turns_of_long_operations_are_shown() {
    let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
    let service = Service::new(DatabaseOptions::default(), engine);
    let mut connection = Connection::new(&service, "turns");
    let mut execution = |kind: &str| {
        let status = doc! { "serverStatus": 1, "$db": "admin" }.to_raw();
        let outcome = service.run(&mut connection, Request::new(status.as_raw()));
        let reply = RawDoc::validate(&outcome.reply[outcome.reply_at..]).expect("a reply is BSON");
        let Some(ValueRef::Document(queues)) = reply.get("queues") else {
            panic!("no queues: {reply:?}");
        };
        let Some(ValueRef::Document(execution)) = queues.get("execution") else {
            panic!("nothing of execution: {queues:?}");
        };
        let Some(ValueRef::Document(tickets)) = execution.get(kind) else {
            panic!("nothing of {kind}: {execution:?}");
        };
        ["out", "available", "totalTickets"].map(|name| tickets.get(name).and_then(number::safe_i64).expect("a number"))
    };
    let [out, available, total] = execution("read");
    assert_eq!((out, available), (0, total));
    assert!(Turns::of_reads().try_take());
    assert_eq!(execution("read"), [1, total - 1, total]);
    assert_eq!(execution("write"), [0, total, total]);
    Turns::of_reads().give_up();
    assert_eq!(execution("read"), [0, total, total]);
    // How many there are can be set, of each kind.
    for (parameter, kind, other) in [
        ("storageEngineConcurrentReadTransactions", "read", "write"),
        ("storageEngineConcurrentWriteTransactions", "write", "read"),
    ] {
        for (tickets, expected) in [(total as i32 + 3, total + 3), (0, total)] {
            let mut set = doc! { "setParameter": 1 };
            set.push(parameter, tickets);
            set.push("$db", "admin");
            let set = set.to_raw();
            service.run(&mut Connection::new(&service, "setter"), Request::new(set.as_raw()));
            assert_eq!(execution(kind), [0, expected, expected], "{parameter}");
            assert_eq!(execution(other), [0, total, total], "{parameter}");
        }
    }
}
