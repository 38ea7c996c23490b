//! Queries of another language as sources of pipelines: `$sql`.
//!
//! Whoever knows the language stands beside the commands and is not known here; [`Relational`] is what is asked of it. The
//! query is run when the pipeline is opened, over the state that the pipeline reads, and its rows wait in memory: counted, and no more of
//! them than an operator may keep.

use super::Statement;
use nestor_exec::pipeline::ServerState;
use nestor_model::memory::Held;
use nestor_model::{Document, Namespace, Result, Value, bail, statement};
use nestor_query::env::OpContext;
use nestor_query::stage::{Pipeline, SourceStage, SqlQuery, Stage};
use nestor_storage::{View, WriteSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the rows of a query as documents; an error ends it.
pub type GiveRow<'g> = dyn FnMut(Document) -> Result<()> + 'g;

/// Knows what databases assert.
pub trait Asserted {
    /// Sees that what the database `db` asserts holds in the state of a write set that is to commit.
    ///
    /// Errors: BadValue, with the state 23514, for an assertion that does not hold.
    fn check(&self, statement: &Statement<'_>, ws: &mut WriteSet, db: &str) -> Result<()>;
}

/// A language whose queries give rows.
pub trait Relational: Asserted + Debug + Send + Sync {
    /// Runs a query as part of a statement, in the database `db`, over `view`.
    ///
    /// Errors: those of the query; Unauthorized for a table that the statement's user may not read.
    fn rows(
        &self,
        statement: &Statement<'_>,
        view: &dyn View,
        db: &str,
        query: &SqlQuery,
        give: &mut GiveRow<'_>,
    ) -> Result<()>;

    /// The plan of a query, as explain shows it.
    ///
    /// Errors: those of [`Relational::rows`] that are known without running it.
    fn plan(&self, statement: &Statement<'_>, view: &dyn View, db: &str, query: &SqlQuery) -> Result<Value>;
}

/// The query that a pipeline reads, if it is one.
pub fn query_of(pipeline: &Pipeline) -> Option<&SqlQuery> {
    match pipeline.stages.first() {
        Some(Stage::Source(SourceStage::Sql(query))) => Some(query),
        _ => None,
    }
}

/// The state of the server for one pipeline, whose query has been run.
struct Answered {
    rows: Mutex<Option<Vec<Document>>>,
    others: Arc<dyn ServerState>,
}

impl ServerState for Answered {
    fn documents(
        &self,
        stage: &SourceStage,
        namespace: &Namespace,
        view: &dyn View,
        op: &OpContext,
    ) -> Result<Vec<Document>> {
        let SourceStage::Sql(_) = stage else {
            return self.others.documents(stage, namespace, view, op);
        };
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The stage is the first of its pipeline, which is read once.
        Ok(rows.unwrap_or_default())
    }
}

impl Statement<'_> {
    fn relational(&self) -> Result<&dyn Relational> {
        match self.relational {
            Some(relational) => Ok(relational),
            None => bail!(CommandNotSupported, "$sql is not supported here"),
        }
    }

    /// The state of the server that `pipeline` on `ns` reads: with the rows of its query, if it begins with one.
    ///
    /// Errors: those of [`Relational::rows`]; 146 when they take too much memory.
    pub fn server_state(&self, view: &dyn View, ns: &Namespace, pipeline: &Pipeline) -> Result<Arc<dyn ServerState>> {
        let others = self.database.state.clone();
        let Some(query) = query_of(pipeline) else {
            return Ok(others);
        };
        let limit = self.database.blocking_memory_bytes_max();
        let (mut rows, mut bytes) = (Vec::new(), 0usize);
        let mut held = Held::by_this_statement();
        self.relational()?.rows(self, view, &ns.db, query, &mut |row| {
            bytes += size_of::<Document>() + row.weight();
            if bytes > limit {
                bail!(
                    ExceededMemoryLimit,
                    "The rows of $sql take more than {limit} bytes of memory. Group, limit or filter them in the statement."
                );
            }
            held.set(bytes);
            rows.push(row);
            statement::look()
        })?;
        Ok(Arc::new(Answered {
            rows: Mutex::new(Some(rows)),
            others,
        }))
    }

    /// The plan of the query that `pipeline` begins with, if it does.
    ///
    /// Errors: those of [`Relational::plan`].
    pub fn relational_plan(&self, view: &dyn View, ns: &Namespace, pipeline: &Pipeline) -> Result<Option<Value>> {
        let query = query_of(pipeline);
        query
            .map(|query| self.relational()?.plan(self, view, &ns.db, query))
            .transpose()
    }
}
