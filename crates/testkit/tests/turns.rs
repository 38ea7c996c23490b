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
    let mut execution = || {
        let status = doc! { "serverStatus": 1, "$db": "admin" }.to_raw();
        let outcome = service.run(&mut connection, Request::new(status.as_raw()));
        let reply = RawDoc::validate(&outcome.reply[outcome.reply_at..]).expect("a reply is BSON");
        let Some(ValueRef::Document(queues)) = reply.get("queues") else {
            panic!("no queues: {reply:?}");
        };
        let Some(ValueRef::Document(execution)) = queues.get("execution") else {
            panic!("nothing of execution: {queues:?}");
        };
        ["out", "available", "totalTickets"]
            .map(|name| execution.get(name).and_then(number::safe_i64).expect("a number"))
    };
    let [out, available, total] = execution();
    assert_eq!((out, available), (0, total));
    assert!(Turns::of_process().try_take());
    assert_eq!(execution(), [1, total - 1, total]);
    Turns::of_process().give_up();
    assert_eq!(execution(), [0, total, total]);
}
