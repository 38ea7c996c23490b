//! The collection an import writes to.

use super::batch::Batch;
use super::{ImportArgs, Mode};
use crate::client::{Client, ClientError, Uri, number};
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, RawDocBuf, Value, ValueRef, doc};

/// The collection and the connection to its server.
pub struct Target {
    client: Client,
    database: String,
    /// Where documents go: the collection itself, or the one that becomes it in the end.
    collection: String,
    /// The name to take when everything is in (`--if-missing`).
    becomes: Option<String>,
    mode: Mode,
    written: u64,
}

impl Target {
    /// Connects and prepares the collection. `None`: it is there already and `--if-missing` says to leave it.
    pub fn open(args: &ImportArgs, uri: &Uri) -> Result<Option<Self>, String> {
        let (database, collection) = match args.into.split_once('.') {
            Some((database, collection)) if !database.is_empty() && !collection.is_empty() => (database, collection),
            _ => return Err(format!("--into {}: write it as database.collection", args.into)),
        };
        if let Some(named) = uri.database.as_deref().filter(|named| *named != database) {
            return Err(format!("the URI names the database {named}, --into names {database}"));
        }
        let client = Client::connect(uri).map_err(|e| e.to_string())?;
        let mut target = Self {
            client,
            database: database.to_owned(),
            collection: collection.to_owned(),
            becomes: None,
            mode: args.mode,
            written: 0,
        };
        if args.if_missing {
            if target.exists()? {
                return Ok(None);
            }
            target.becomes = Some(std::mem::replace(
                &mut target.collection,
                format!("{collection}.importing"),
            ));
            target.drop()?;
            let mut create = doc! { "create": target.collection.as_str() };
            target.client.concern(&mut create);
            target.run(create)?;
        } else if args.drop {
            target.drop()?;
        }
        Ok(Some(target))
    }

    /// Documents the server has taken.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes a batch. Returns index and reason of what was refused; the rest is in.
    pub fn send(&mut self, batch: &Batch) -> Result<Vec<(usize, String)>, String> {
        let (command, section) = match self.mode {
            Mode::Insert => ("insert", "documents"),
            Mode::Upsert => ("update", "updates"),
        };
        let command = doc! { command: self.collection.as_str(), "ordered": false, "$db": self.database.as_str() };
        let reply = self
            .client
            .write(command, section, &batch.section)
            .map_err(|e| e.to_string())?;
        let reply = reply.as_raw();
        let errors = reply.get("writeErrors").and_then(ValueRef::as_array);
        let mut refused = Vec::new();
        for error in errors
            .into_iter()
            .flat_map(|array| array.iter())
            .filter_map(ValueRef::as_document)
        {
            let error = error.to_raw();
            let index = number(error.as_raw(), "index").and_then(|i| usize::try_from(i).ok());
            let index = index
                .filter(|i| *i < batch.places.len())
                .ok_or("a write error without its index")?;
            let message = error
                .as_raw()
                .get("errmsg")
                .and_then(ValueRef::as_str)
                .unwrap_or("refused")
                .to_owned();
            refused.push((index, message));
        }
        self.written += (batch.places.len() - refused.len()) as u64;
        Ok(refused)
    }

    /// Gives the collection its name.
    pub fn finish(&mut self) -> Result<(), String> {
        let Some(name) = self.becomes.take() else {
            return Ok(());
        };
        let from = format!("{}.{}", self.database, self.collection);
        let to = format!("{}.{name}", self.database);
        let mut rename = doc! { "renameCollection": from, "to": to, "$db": ADMIN };
        self.client.concern(&mut rename);
        self.client
            .command(rename.to_raw().as_raw())
            .map(|_| ())
            .map_err(|e| e.to_string())
    }

    /// What is left behind by an import that failed, in words.
    pub fn left_behind(&self) -> String {
        match &self.becomes {
            Some(name) => format!(
                "{name} was not made; {} documents are in {} until the next try",
                self.written, self.collection
            ),
            None => format!(
                "{} documents before it are in {}.{}",
                self.written, self.database, self.collection
            ),
        }
    }

    fn exists(&mut self) -> Result<bool, String> {
        let filter = doc! { "name": self.collection.as_str() };
        let command = self.addressed(doc! { "listCollections": 1, "filter": filter, "nameOnly": true });
        let reply = self.client.read(command.as_raw()).map_err(|e| e.to_string())?;
        let cursor = reply.as_raw().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|c| c.get("firstBatch")).and_then(ValueRef::as_array);
        Ok(batch.is_some_and(|b| !b.is_empty()))
    }

    fn drop(&mut self) -> Result<(), String> {
        const NAMESPACE_NOT_FOUND: i32 = 26;
        let mut command = doc! { "drop": self.collection.as_str() };
        self.client.concern(&mut command);
        let command = self.addressed(command);
        match self.client.command(command.as_raw()) {
            Ok(_)
            | Err(ClientError::Refused {
                code: NAMESPACE_NOT_FOUND,
                ..
            }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn run(&mut self, command: Document) -> Result<RawDocBuf, String> {
        let command = self.addressed(command);
        self.client.command(command.as_raw()).map_err(|e| e.to_string())
    }

    fn addressed(&self, mut command: Document) -> RawDocBuf {
        command.push("$db", Value::from(self.database.as_str()));
        command.to_raw()
    }
}
