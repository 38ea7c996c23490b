//! Pipelines over one collection, for tests.

use super::{Entry, Namespaces, PipelineQuery};
use crate::catalog::{IndexInfo, Indexes};
use crate::rules::RULES;
use crate::rules::testing::parse;
use nestor_model::index_spec::IndexSpec;
use nestor_model::{Document, Namespace, Result, doc};

/// A collection, whatever it is called.
pub(crate) struct OneCollection(pub(crate) Indexes);

impl OneCollection {
    pub(crate) fn with(indexes: Vec<IndexInfo>) -> Self {
        Self(Indexes {
            all: indexes.into_iter().map(std::sync::Arc::new).collect(),
            id_collation: None,
            clustered: false,
        })
    }
}

impl Namespaces for OneCollection {
    fn entry(&self, _: &Namespace) -> Result<Entry<'_>> {
        Ok(Entry::Collection {
            masking: None,
            buckets: None,
        })
    }

    fn indexes(&self, _: &Namespace) -> Result<Option<&Indexes>> {
        Ok(Some(&self.0))
    }
}

/// An ascending index on these paths, called by them. `multikey[i]` belongs to path `i`; `partial` is its filter.
pub(crate) fn index(id: u32, paths: &[&str], multikey: &[u64], partial: Option<Document>) -> IndexInfo {
    let key: Document = paths.iter().map(|path| ((*path).into(), 1.into())).collect();
    let mut spec = doc! { "key": key, "name": paths.join("_") };
    spec.push("partialFilterExpression", partial);
    let spec = IndexSpec::parse(spec.to_raw()).expect("a specification");
    crate::kinds::open(id, &spec, multikey).expect("a good index")
}

/// The pipeline in JSON, as it is planned.
pub(crate) fn query<'q>(namespace: &'q Namespace, stages: &str) -> PipelineQuery<'q> {
    PipelineQuery {
        namespace: Some(namespace),
        stages: parse(stages),
        collation: None,
        hint: None,
        restrict: None,
        rules: RULES,
        keeps_sort_keys: false,
        is_explained: false,
    }
}
