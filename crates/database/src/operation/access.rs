//! The namespaces that operations read and write, and the rights which they need.
//!
//! Actions and the resources they are granted on are named as in MongoDB's manual, "Privilege Actions" and "Resource
//! Document". Whoever may read a view may read it whatever it is on ("Views", "Access Control"): what views are on is read,
//! but no right on it is needed.

use super::views::bases;
use super::{Intent, Operation, Piped, Work};
use crate::rights::{Action, Privilege, Resource};
use crate::users::UserName;
use crate::write;
use crate::write::prepared::Prepared;
use crate::write::statements::{WriteOp, Writes};
use nestor_exec::catalog::id_collation;
use nestor_model::namespace::ADMIN;
use nestor_model::{Namespace, Result, Str};
use nestor_query::stage::change_stream::{ChangeStream, Watched};
use nestor_query::stage::{Merge, Pipeline, SessionsOf, SourceStage, Stage, WhenMatched, WhenNotMatched};
use nestor_storage::View;

/// The namespaces that an operation reads and writes, and the rights it needs. No entry comes twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Namespaces whose documents it may read, in the order in which they come up; what views are on stands behind them.
    pub reads: Vec<Namespace>,
    /// Namespaces whose documents it may change.
    pub writes: Vec<Namespace>,
    /// The rights that it needs, all of them.
    pub privileges: Vec<Privilege>,
    /// Names and databases of users whose sessions it shows, which needs no right for one's own.
    sessions_of: Vec<(Str, Str)>,
}

impl Access {
    /// What a command that wants this needs; views are looked up in `view`. The batches of a cursor need no right but having
    /// opened it.
    ///
    /// Errors: those of the pipelines of views.
    pub fn of(intent: &Intent<'_>, view: &dyn View) -> Result<Self> {
        match intent {
            Intent::Operation(operation) => Self::of_operation(operation, view),
            Intent::Writes(writes) => Self::of_writes(writes, view),
            Intent::Batch(ns) => Ok(Self {
                reads: vec![ns.clone()],
                ..Self::default()
            }),
        }
    }

    /// The rights that it needs when `caller` asks.
    pub fn privileges_of(self, caller: &UserName) -> Vec<Privilege> {
        let mut out = self.privileges;
        let own = (&caller.user, &caller.db);
        if self.sessions_of.iter().any(|(user, db)| (user, db) != own) {
            out.push(Privilege {
                resource: Resource::Cluster,
                action: Action::ListSessions,
            });
        }
        out
    }

    fn of_operation(operation: &Operation<'_>, view: &dyn View) -> Result<Self> {
        let mut out = Self::default();
        let ns = operation.ns();
        match &operation.work {
            Work::Find(_) | Work::Count(_) | Work::Distinct { .. } => out.find(ns, view)?,
            Work::Pipeline(piped) => out.pipeline(ns, piped, view)?,
            Work::Write(write) => out.write(ns, write, view)?,
        }
        Ok(out)
    }

    /// Reads the documents of `ns`.
    pub fn find(&mut self, ns: &Namespace, view: &dyn View) -> Result<()> {
        self.need(ns, Action::Find);
        self.read(ns, view)
    }

    /// Adds documents to `ns`.
    pub fn insert(&mut self, ns: &Namespace, bypass_validation: bool) {
        note(&mut self.writes, ns);
        self.need(ns, Action::Insert);
        self.bypass(ns, bypass_validation);
    }

    /// Finds documents of `ns` and changes them, or inserts one when there is none.
    pub fn update(&mut self, ns: &Namespace, upsert: bool, bypass_validation: bool, view: &dyn View) -> Result<()> {
        self.read(ns, view)?;
        note(&mut self.writes, ns);
        self.need(ns, Action::Update);
        if upsert {
            self.need(ns, Action::Insert);
        }
        self.bypass(ns, bypass_validation);
        Ok(())
    }

    /// Finds documents of `ns` and removes them.
    pub fn remove(&mut self, ns: &Namespace, view: &dyn View) -> Result<()> {
        self.read(ns, view)?;
        note(&mut self.writes, ns);
        self.need(ns, Action::Remove);
        Ok(())
    }

    fn of_writes(writes: &Writes<'_>, view: &dyn View) -> Result<Self> {
        let mut out = Self::default();
        for statement in &writes.statements {
            let ns = writes.ns(statement);
            match &statement.op {
                WriteOp::Insert(_) => out.insert(ns, writes.bypass_validation),
                WriteOp::Update(update) => out.update(ns, update.upsert, writes.bypass_validation, view)?,
                WriteOp::Delete(_) => out.remove(ns, view)?,
            }
        }
        Ok(out)
    }

    fn write(&mut self, ns: &Namespace, write: &Prepared<'_>, view: &dyn View) -> Result<()> {
        if write.images {
            // The document is returned.
            self.need(ns, Action::Find);
        }
        match &write.action {
            write::prepared::Action::Update { upsert, .. } => {
                self.update(ns, upsert.is_some(), write.bypass_validation, view)
            }
            write::prepared::Action::Delete => self.remove(ns, view),
        }
    }

    fn pipeline(&mut self, ns: &Namespace, piped: &Piped, view: &dyn View) -> Result<()> {
        self.stages(Some(ns), &piped.pipeline, view)?;
        match piped.pipeline.stages.last() {
            // The old documents go when the new ones come.
            Some(Stage::Out(out)) => {
                self.insert(&out.target, piped.bypass_validation);
                self.need(&out.target, Action::Remove);
            }
            Some(Stage::Merge(merge)) => self.merge(merge, piped.bypass_validation),
            _ => {}
        }
        debug_assert!(
            self.names_all(&piped.pipeline),
            "a right is needed on each namespace that a pipeline names"
        );
        Ok(())
    }

    fn names_all(&self, pipeline: &Pipeline) -> bool {
        let mut named = Vec::new();
        pipeline.involved_namespaces(&mut named);
        let is_known = |ns: Namespace| {
            let on = Resource::Collection(ns);
            self.privileges.iter().any(|privilege| privilege.resource == on)
        };
        named.into_iter().all(is_known)
    }

    fn merge(&mut self, merge: &Merge, bypass_validation: bool) {
        note(&mut self.writes, &merge.into);
        if !matches!(merge.when_matched, WhenMatched::KeepExisting | WhenMatched::Fail) {
            self.need(&merge.into, Action::Update);
        }
        if merge.when_not_matched == WhenNotMatched::Insert {
            self.need(&merge.into, Action::Insert);
        }
        self.bypass(&merge.into, bypass_validation);
    }

    /// The stages of a pipeline, and what they read from: `ns`, unless the first one makes documents itself. `None` when
    /// the documents come from the pipeline around it.
    fn stages(&mut self, ns: Option<&Namespace>, pipeline: &Pipeline, view: &dyn View) -> Result<()> {
        match (pipeline.stages.first(), ns) {
            (Some(Stage::Source(source)), Some(ns)) => self.source(ns, source),
            (Some(Stage::Documents(_)), _) | (_, None) => {}
            (Some(Stage::ChangeStream(stream)), Some(ns)) => self.changes(ns, stream),
            (_, Some(ns)) => self.find(ns, view)?,
        }
        for stage in &pipeline.stages {
            match stage {
                Stage::Lookup(lookup) => self.stages(lookup.from.as_ref(), &lookup.pipeline, view)?,
                Stage::GraphLookup(graph) => self.find(&graph.from, view)?,
                Stage::UnionWith(union) => self.stages(union.coll.as_ref(), &union.pipeline, view)?,
                Stage::Facet(facet) => {
                    for (_, pipeline) in &facet.pipelines {
                        self.stages(None, pipeline, view)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The changes of documents are read, and those of whatever is looked up.
    fn changes(&mut self, ns: &Namespace, stream: &ChangeStream) {
        note(&mut self.reads, ns);
        let resource = match &stream.watched {
            Watched::Collection(_) => Resource::Collection(ns.clone()),
            Watched::Database(_) => Resource::Database(ns.db.clone()),
            Watched::Cluster => Resource::AllCollections,
        };
        self.need_on(resource.clone(), Action::ChangeStream);
        self.need_on(resource, Action::Find);
    }

    /// A stage that shows the server's own state.
    fn source(&mut self, ns: &Namespace, source: &SourceStage) {
        match source {
            SourceStage::CollStats(_) => self.need(ns, Action::CollStats),
            SourceStage::IndexStats => self.need(ns, Action::IndexStats),
            SourceStage::PlanCacheStats => self.need(ns, Action::PlanCacheRead),
            // Everybody may see their own operations and sessions.
            SourceStage::CurrentOp(asked) => self.of_others(asked.all_users, Action::Inprog),
            SourceStage::ListSessions(of) | SourceStage::ListLocalSessions(of) => match of {
                SessionsOf::Caller => {}
                SessionsOf::Users(users) => self.sessions_of.extend(users.iter().cloned()),
                SessionsOf::All => self.of_others(true, Action::ListSessions),
            },
            SourceStage::ListCatalog | SourceStage::ListClusterCatalog { .. } => {
                let resource = match ns.coll.is_empty() {
                    true if ns.db == ADMIN => Resource::Cluster,
                    true => Resource::Database(ns.db.clone()),
                    false => Resource::Collection(ns.clone()),
                };
                self.need_on(resource.clone(), Action::ListCollections);
                self.need_on(resource, Action::ListIndexes);
            }
            SourceStage::QuerySettings { .. } => self.need_on(Resource::Cluster, Action::QuerySettings),
            SourceStage::QueryStats { hmac_key } => {
                self.need_on(Resource::Cluster, Action::QueryStatsRead);
                if hmac_key.is_some() {
                    self.need_on(Resource::Cluster, Action::QueryStatsReadTransformed);
                }
            }
            SourceStage::ListSearchIndexes { .. } => self.need(ns, Action::ListSearchIndexes),
            SourceStage::ListSampledQueries => self.need_on(Resource::Cluster, Action::ListSampledQueries),
            // Its tables are known once it is bound, and who may not read one is told then. No pipeline that was parsed holds the other.
            SourceStage::Sql(_) | SourceStage::Unsupported(_) => {}
        }
    }

    fn of_others(&mut self, others: bool, action: Action) {
        if others {
            self.need_on(Resource::Cluster, action);
        }
    }

    /// Notes that documents of `ns` are read, and those that it is on when it is a view.
    fn read(&mut self, ns: &Namespace, view: &dyn View) -> Result<()> {
        if !note(&mut self.reads, ns) {
            return Ok(());
        }
        let Some(collection) = view.catalog().get(ns).filter(|found| found.is_view()) else {
            return Ok(());
        };
        let collator = id_collation(collection)?;
        for base in bases(ns, collection.options.view.as_ref(), collator.as_ref())? {
            self.read(&base, view)?;
        }
        Ok(())
    }

    fn bypass(&mut self, ns: &Namespace, bypass_validation: bool) {
        if bypass_validation {
            self.need(ns, Action::BypassDocumentValidation);
        }
    }

    fn need(&mut self, ns: &Namespace, action: Action) {
        self.need_on(Resource::Collection(ns.clone()), action);
    }

    fn need_on(&mut self, resource: Resource, action: Action) {
        let privilege = Privilege { resource, action };
        if !self.privileges.contains(&privilege) {
            self.privileges.push(privilege);
        }
    }
}

/// Adds `ns` unless it is there; whether it was added.
fn note(to: &mut Vec<Namespace>, ns: &Namespace) -> bool {
    let is_new = !to.contains(ns);
    if is_new {
        to.push(ns.clone());
    }
    is_new
}
