//! The part of the tree that stages run: plans of pipelines within `$lookup`, `$graphLookup`, `$unionWith`, `$facet` and `$rankFusion`.

use super::PlanNode;
use crate::catalog::IndexInfo;
use crate::collation::answers;
use nestor_model::{Namespace, Str, Value};
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;
use std::sync::Arc;

/// How a stage gets the rows of the pipelines that it runs.
#[derive(Clone, Debug)]
pub enum InnerPlan {
    /// By this plan: the pipeline of `$unionWith`, and that of a `$lookup` without equality.
    Whole(PlanNode),
    /// `$lookup`: by the value of each outer document, which is bound to the plan. `$graphLookup`: by the values of each step.
    Equality(Arc<EqualityPlan>),
    /// `$lookup`, `$graphLookup`: from a hash table of all rows of the other side, because no index finds a value.
    Table {
        /// The rows of the table.
        source: PlanNode,
        /// The plan for rows that have the value, over [`PlanNode::Given`].
        rest: Option<PlanNode>,
    },
    /// `$lookup`, `$graphLookup`: by a plan for each value, or for each step.
    ByValue,
    /// `$facet`: its pipelines by their fields; each reads [`PlanNode::Given`]. Likewise the pipelines of a `$rankFusion` in a `$facet`.
    Facets(Vec<(Str, PlanNode)>),
    /// `$rankFusion`: its pipelines by their names.
    Inputs(Vec<(Str, PlanNode)>),
}

impl InnerPlan {
    /// Further conditions on rows that equal a value.
    pub fn filter(&self) -> Option<&Arc<MatchExpr>> {
        match self {
            Self::Equality(plan) => plan.filter.as_ref(),
            _ => None,
        }
    }

    /// How many rows that equal a value are wanted.
    pub fn limit(&self) -> Option<u64> {
        match self {
            Self::Equality(plan) => plan.limit,
            _ => None,
        }
    }

    /// The plan for rows that equal a value, over [`PlanNode::Given`].
    pub fn rest(&self) -> Option<&PlanNode> {
        match self {
            Self::Equality(plan) => plan.rest.as_ref(),
            Self::Table { rest, .. } => rest.as_ref(),
            _ => None,
        }
    }
}

/// How the documents of a collection are found in which a field equals a value that is not known yet.
#[derive(Clone, Debug)]
pub struct EqualityPlan {
    /// The collection.
    pub namespace: Namespace,
    /// How they are found.
    pub access: EqualityAccess,
    /// Further conditions on them.
    pub filter: Option<Arc<MatchExpr>>,
    /// How many of them are wanted.
    pub limit: Option<u64>,
    /// The plan for them, over [`PlanNode::Given`].
    pub rest: Option<PlanNode>,
    /// How strings compare.
    pub(crate) collation: Option<Collator>,
}

/// How documents with one value are found.
#[derive(Clone, Debug)]
pub enum EqualityAccess {
    /// By their `_id`, in a collection that tells `_id`s apart by this collation.
    Id(Option<Collator>),
    /// By the entries of an index whose first part has the value, whatever the others have.
    Index(Arc<IndexInfo>),
}

impl EqualityPlan {
    /// Whether the documents that equal `value` are those found by the one point that it is in the index. They are not for null,
    /// which missing fields equal too, for arrays, which are stored as their elements, and for strings under another
    /// collation than the index's. For those the query has to be planned with the value.
    pub fn binds(&self, value: &Value) -> bool {
        let index = match &self.access {
            EqualityAccess::Id(collation) => collation.as_ref(),
            EqualityAccess::Index(index) => index.collation.as_ref(),
        };
        let is_point = !value.is_nullish() && !matches!(value, Value::Array(_) | Value::Regex(_));
        is_point && answers(index, self.collation.as_ref(), value)
    }
}
