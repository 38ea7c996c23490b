//! What a definition of kind `search` says.
//!
//! ```text
//! {mappings: {dynamic: false, fields: {title: {type: "string"}, tags: {type: "embeddedDocuments", dynamic: true}}},
//!  analyzers: […], analyzer: "lucene.english", storedSource: {include: ["title"]}}
//! ```
//!
//! Embedded documents are scopes: what is indexed of one is found only by who looks within it. Scope 0 is the document.

use super::analyzers::Analyzers;
use super::mapping::{Level, Mapping, Reader, Types};
use super::source::Source;
use super::synonyms;
use crate::operand::{Operand, refuse};
use nestor_model::{DocRef, Result, Str, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;

/// The analyzer of texts for which none is named.
const STANDARD: &str = "lucene.standard";

/// The number of a scope.
pub(super) type ScopeId = u16;

/// The scope of the documents themselves.
pub(super) const ROOT: ScopeId = 0;

/// Embedded documents that are indexed by themselves.
#[derive(Debug)]
pub(super) struct Scope {
    /// The scope that they are embedded in.
    pub(super) parent: ScopeId,
    /// The path of the field that holds them, from the root.
    pub(super) path: String,
    /// What is stored of each.
    pub(super) source: Source,
    mapping: Arc<Mapping>,
}

/// A definition of this kind, checked.
#[derive(Debug)]
pub struct Definition {
    scopes: Vec<Scope>,
    synonyms: Vec<synonyms::Mapping>,
    inner: HashMap<(ScopeId, Str), ScopeId>,
}

impl Definition {
    /// Reads what `createSearchIndexes` was given.
    ///
    /// Errors: 8 for what it must not have, and for what is not supported.
    pub fn parse(definition: DocRef<'_>) -> Result<Self> {
        let spec = Operand::new("", definition);
        spec.only(&[
            "mappings",
            "analyzer",
            "searchAnalyzer",
            "analyzers",
            "storedSource",
            "typeSets",
            "numPartitions",
            "synonyms",
        ])?;
        // Into how many pieces an index is cut says nothing about what is found; here it is not cut.
        if spec
            .integer("numPartitions")?
            .is_some_and(|number| ![1, 2, 4].contains(&number))
        {
            refuse!("\"numPartitions\" must be 1, 2 or 4");
        }
        let analyzers = Analyzers::read(&spec)?;
        let default = spec.string("analyzer")?.unwrap_or(STANDARD);
        let reader = Reader {
            default: analyzers.named("analyzer", default)?,
            search: match spec.string("searchAnalyzer")? {
                Some(name) => Some(analyzers.named("searchAnalyzer", name)?),
                None => None,
            },
            analyzers: &analyzers,
            type_sets: type_sets(&spec)?,
        };
        let mapping = Arc::new(reader.mapping(&spec.required_document("mappings")?, &["dynamic", "fields"])?);
        let mut made = Self {
            scopes: vec![Scope {
                parent: ROOT,
                path: String::new(),
                source: Source::read(&spec, "storedSource")?,
                mapping: Arc::clone(&mapping),
            }],
            synonyms: synonym_mappings(&spec, &analyzers)?,
            inner: HashMap::new(),
        };
        made.add_scopes(ROOT, &mapping, "")?;
        Ok(made)
    }

    /// Adds the scopes that a mapping has in it.
    fn add_scopes(&mut self, scope: ScopeId, mapping: &Mapping, prefix: &str) -> Result<()> {
        for (name, types) in mapping.fields() {
            let path = joined(prefix, name);
            if let Some(inner) = types.own_document() {
                self.add_scopes(scope, inner, &path)?;
            }
            if let Some(embedded) = &types.embedded {
                let Ok(id) = ScopeId::try_from(self.scopes.len()) else {
                    refuse!("there are too many embeddedDocuments fields");
                };
                self.scopes.push(Scope {
                    parent: scope,
                    path: path.clone(),
                    source: embedded.source.clone(),
                    mapping: Arc::clone(&embedded.mapping),
                });
                self.inner.insert((scope, path.as_str().into()), id);
                self.add_scopes(id, &embedded.mapping, &path)?;
            }
        }
        Ok(())
    }

    /// The synonyms of a name.
    ///
    /// Errors: 8 for a name that is not there.
    pub(super) fn synonyms(&self, name: &str) -> Result<&synonyms::Mapping> {
        match self.synonyms.iter().find(|mapping| mapping.name == name) {
            Some(mapping) => Ok(mapping),
            None => refuse!("the index has no synonyms {name:?}"),
        }
    }

    /// A scope.
    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[usize::from(id)]
    }

    /// The mapping of what is in a scope.
    pub(super) fn level(&self, id: ScopeId) -> Level<'_> {
        Level::Mapped(&self.scope(id).mapping)
    }

    /// The scope that the field at `path` begins within this one.
    pub(super) fn inner(&self, scope: ScopeId, path: &str) -> Option<ScopeId> {
        self.inner.get(&(scope, path.into())).copied()
    }

    /// The scope of a path within this one or a scope in it.
    pub(super) fn scope_at(&self, within: ScopeId, path: &str) -> Option<ScopeId> {
        let ids = (1..self.scopes.len()).map(|id| id as ScopeId);
        ids.filter(|id| self.scope(*id).path == path)
            .find(|id| self.is_within(*id, within))
    }

    /// Whether a scope is within another, or is it.
    pub(super) fn is_within(&self, scope: ScopeId, outer: ScopeId) -> bool {
        let mut at = scope;
        loop {
            match at {
                at if at == outer => return true,
                ROOT => return false,
                inner => at = self.scope(inner).parent,
            }
        }
    }

    /// How the field at a path is indexed within a scope.
    pub(super) fn types(&self, scope: ScopeId, path: &str) -> Option<&Types> {
        let own = &self.scope(scope).path;
        let rest = match own.is_empty() {
            true => path,
            false => path.strip_prefix(own.as_str())?.strip_prefix('.')?,
        };
        let mut level = self.level(scope);
        let mut names = rest.split('.').peekable();
        while let Some(name) = names.next() {
            let types = level.types(name)?;
            if names.peek().is_none() {
                return Some(types);
            }
            level = types.document_level()?;
        }
        None
    }
}

/// A path of two.
pub(super) fn joined(prefix: &str, name: &str) -> String {
    match prefix.is_empty() {
        true => name.to_owned(),
        false => format!("{prefix}.{name}"),
    }
}

fn type_sets<'a>(spec: &Operand<'a>) -> Result<HashMap<&'a str, ValueRef<'a>>> {
    let mut sets = HashMap::new();
    if let Some(items) = spec.array("typeSets")? {
        for (at, item) in items.iter().enumerate() {
            let set = Operand::of(format!("typeSets[{at}]"), item)?;
            set.only(&["name", "types"])?;
            if sets
                .insert(set.required_string("name")?, set.required("types")?)
                .is_some()
            {
                refuse!("\"{}\" is there twice", set.name_of("name"));
            }
        }
    }
    Ok(sets)
}

fn synonym_mappings(spec: &Operand<'_>, analyzers: &Analyzers) -> Result<Vec<synonyms::Mapping>> {
    let mut mappings: Vec<synonyms::Mapping> = Vec::new();
    if let Some(items) = spec.array("synonyms")? {
        for (at, item) in items.iter().enumerate() {
            let written = Operand::of(format!("synonyms[{at}]"), item)?;
            written.only(&["name", "source", "analyzer"])?;
            let source = written.required_document("source")?;
            source.only(&["collection"])?;
            let mapping = synonyms::Mapping {
                name: written.required_string("name")?.to_owned(),
                collection: source.required_string("collection")?.to_owned(),
                analyzer: analyzers.named(&written.name_of("analyzer"), written.required_string("analyzer")?)?,
            };
            if mapping.name.is_empty() || mapping.collection.is_empty() {
                refuse!(
                    "\"{}\" must have a name and a collection that are not empty",
                    written.name()
                );
            }
            if mappings.iter().any(|other| other.name == mapping.name) {
                refuse!("there are two synonyms {:?}", mapping.name);
            }
            mappings.push(mapping);
        }
    }
    Ok(mappings)
}
