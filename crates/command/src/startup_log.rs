//! `local.startup_log`: a document for each start of the server.
//!
//! Source: manual, "The local Database".

use crate::commands::diagnostic::build_info;
use crate::service::Service;
use nestor_database::machine::host_name;
use nestor_exec::Interrupt;
use nestor_exec::write::{Writer, with_retry};
use nestor_model::namespace::LOCAL;
use nestor_model::{Document, Namespace, RawWriter, Result, Value, doc};
use nestor_query::env::OpContext;
use nestor_storage::View;

impl Service {
    /// Adds the document of this start. It belongs to this node alone: nothing of it is in the oplog.
    pub fn log_start(&self) -> Result<()> {
        let ns = Namespace::new(LOCAL, "startup_log");
        let document = self.start_document().to_raw();
        let op = OpContext::new(nestor_database::clock::now_ms(), self.last_time(), 0);
        with_retry(&Interrupt::default(), |obstacle| {
            let mut ws = self.engine.begin();
            // If the collection was dropped meanwhile, nothing is to be written.
            let Some(collection) = ws.catalog().get(&ns).cloned() else {
                return Ok(());
            };
            Writer::new(&mut ws, collection, &op, None)?.insert(document.clone(), None)?;
            obstacle.commit(&self.engine, ws)?;
            Ok(())
        })
    }

    fn start_document(&self) -> Document {
        let host = host_name();
        let started_ms = self.node.started_ms;
        let mut build = RawWriter::new();
        build_info::write(&mut build, self.node.options.allocator);
        doc! {
            "_id": format!("{host}-{started_ms}"),
            "hostname": host,
            "startTime": Value::DateTime(started_ms),
            "cmdLine": self.node.options.parsed.clone(),
            "pid": i64::from(std::process::id()),
            "buildinfo": build.into_doc(),
        }
    }
}
