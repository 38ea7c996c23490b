//! What every data directory has from its first start: the collections of `admin`, `config` and `local` that tools
//! look for.

use crate::oplog;
use crate::options::DatabaseOptions;
use nestor_exec::write::Writer;
use nestor_model::namespace::{ADMIN, CONFIG, LOCAL};
use nestor_model::{CollectionOptions, Document, Namespace, Result, Value, doc};
use nestor_query::env::OpContext;
use nestor_storage::{Engine, View};

/// Makes what is missing, in one commit that leaves no oplog entry.
pub fn run(engine: &Engine, options: &DatabaseOptions, mut new_uuid: impl FnMut() -> [u8; 16]) -> Result<()> {
    let mut ws = engine.begin();
    let wanted = wanted(options, engine);
    if wanted.iter().all(|(ns, _, _)| ws.catalog().get(ns).is_some()) {
        return Ok(());
    }
    let op = OpContext::new(crate::clock::now_ms(), engine.last_optime(), 1);
    for (ns, options, documents) in wanted {
        if ws.catalog().get(&ns).is_some() {
            continue;
        }
        let collection = ws.create_collection(&ns, new_uuid(), CollectionOptions::parse(options)?)?;
        let mut writer = Writer::new(&mut ws, collection, &op, None)?;
        for document in documents {
            writer.insert(document.to_raw(), None)?;
        }
    }
    engine.commit(ws)?;
    Ok(())
}

fn wanted(options: &DatabaseOptions, engine: &Engine) -> Vec<(Namespace, Document, Vec<Document>)> {
    let mut out = vec![
        (
            Namespace::new(ADMIN, "system.version"),
            Document::new(),
            vec![doc! { "_id": "featureCompatibilityVersion", "version": "8.0" }],
        ),
        (Namespace::new(CONFIG, "system.sessions"), Document::new(), Vec::new()),
        (
            Namespace::new(LOCAL, "startup_log"),
            doc! { "capped": true, "size": 10_485_760 },
            Vec::new(),
        ),
    ];
    if let Some(name) = &options.replica_set {
        let size = i64::try_from(oplog::initial_bytes(engine, options)).unwrap_or(i64::MAX);
        let topology = engine.topology();
        out.push((Namespace::new(CONFIG, "transactions"), Document::new(), Vec::new()));
        out.push((
            oplog::namespace(),
            doc! { "capped": true, "size": size, "autoIndexId": false },
            Vec::new(),
        ));
        let members = topology.members(&options.host);
        let members: Vec<Value> = members
            .map(|(host, member)| doc! { "_id": member.id, "host": host }.into())
            .collect();
        let config = doc! {
            "_id": name.clone(),
            "version": topology.config.version,
            "term": topology.term,
            "members": members,
        };
        out.push((Namespace::new(LOCAL, "system.replset"), Document::new(), vec![config]));
    }
    out
}
