//! How fields are indexed.

use super::analysis::Analyzer;
use super::analyzers::Analyzers;
use super::grams::GramKind;
use super::source::Source;
use crate::operand::{Operand, refuse};
use nestor_model::{Result, ValueRef};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Levels of documents within documents of a definition.
const LEVELS_MAX: usize = 32;

/// How the fields of a document are indexed.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    fields: BTreeMap<String, Types>,
    /// How other fields are.
    dynamic: Option<Box<Types>>,
}

impl Mapping {
    /// The fields that the definition names.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &Types)> {
        self.fields.iter().map(|(name, types)| (name.as_str(), types))
    }
}

/// A level of documents.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level<'a> {
    Mapped(&'a Mapping),
    /// Fields of any name are indexed so.
    Dynamic(&'a Types),
}

impl<'a> Level<'a> {
    /// How a field is indexed.
    pub(super) fn types(self, name: &str) -> Option<&'a Types> {
        match self {
            Self::Mapped(mapping) => mapping.fields.get(name).or(mapping.dynamic.as_deref()),
            Self::Dynamic(types) => Some(types),
        }
    }
}

/// All the ways in which one field is indexed.
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) string: Option<StringType>,
    pub(super) autocomplete: Option<Autocomplete>,
    pub(super) token: Option<TokenType>,
    pub(super) number: Option<NumberType>,
    pub(super) date: bool,
    pub(super) boolean: bool,
    pub(super) object_id: bool,
    pub(super) uuid: bool,
    pub(super) geo: Option<GeoType>,
    pub(super) string_facet: bool,
    pub(super) number_facet: Option<NumberType>,
    pub(super) date_facet: bool,
    document: Option<Inner>,
    pub(super) embedded: Option<Embedded>,
}

#[derive(Debug)]
enum Inner {
    Own(Mapping),
    /// As the field itself.
    Again,
}

impl Types {
    /// The mapping of the documents in the field, where the definition has one.
    pub(super) fn own_document(&self) -> Option<&Mapping> {
        match &self.document {
            Some(Inner::Own(mapping)) => Some(mapping),
            _ => None,
        }
    }

    /// How the documents in the field are indexed.
    pub(super) fn document_level(&self) -> Option<Level<'_>> {
        match self.document.as_ref()? {
            Inner::Own(mapping) => Some(Level::Mapped(mapping)),
            Inner::Again => Some(Level::Dynamic(self)),
        }
    }
}

/// `string`.
#[derive(Clone, Debug)]
pub(super) struct StringType {
    pub(super) analyzer: Arc<Analyzer>,
    pub(super) search_analyzer: Arc<Analyzer>,
    /// Other ways to index the same text, by name.
    pub(super) multi: Vec<(String, StringType)>,
    /// Longer texts are not indexed; characters.
    pub(super) longest: Option<usize>,
    /// The text is kept for highlights.
    pub(super) is_stored: bool,
    /// Lengths of texts count.
    pub(super) has_lengths: bool,
    pub(super) holds: Holds,
}

/// What is kept of each term of a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Holds {
    Documents,
    Frequencies,
    Positions,
}

/// `autocomplete`.
#[derive(Clone, Debug)]
pub(super) struct Autocomplete {
    pub(super) analyzer: Arc<Analyzer>,
    pub(super) grams: super::grams::WordGrams,
}

/// `token`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenType {
    pub(super) lowercase: bool,
}

/// `number`.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberType {
    pub(super) integers: bool,
    pub(super) doubles: bool,
}

/// `geo`.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeoType {
    /// Not only points.
    pub(super) shapes: bool,
}

/// `embeddedDocuments`.
#[derive(Debug)]
pub(super) struct Embedded {
    pub(super) mapping: Arc<Mapping>,
    pub(super) source: Source,
}

/// Reads mappings.
pub(super) struct Reader<'a> {
    pub(super) analyzers: &'a Analyzers,
    pub(super) default: Arc<Analyzer>,
    pub(super) search: Option<Arc<Analyzer>>,
    pub(super) type_sets: HashMap<&'a str, ValueRef<'a>>,
}

impl Reader<'_> {
    /// The mapping of a document, which may have these fields.
    pub(super) fn mapping(&self, spec: &Operand<'_>, known: &[&str]) -> Result<Mapping> {
        self.mapping_at(spec, known, 0)
    }

    fn mapping_at(&self, spec: &Operand<'_>, known: &[&str], depth: usize) -> Result<Mapping> {
        if depth > LEVELS_MAX {
            refuse!("\"{}\" lies deeper than {LEVELS_MAX} levels", spec.name());
        }
        spec.only(known)?;
        let dynamic = match spec.get("dynamic") {
            None | Some(ValueRef::Bool(false)) => None,
            Some(ValueRef::Bool(true)) => Some(Box::new(self.dynamic()?)),
            Some(ValueRef::Document(doc)) => {
                let set = Operand::new(spec.name_of("dynamic"), doc);
                set.only(&["typeSet"])?;
                Some(Box::new(self.type_set(&set)?))
            }
            Some(_) => refuse!("\"{}\" must be a boolean or a document", spec.name_of("dynamic")),
        };
        let mut fields = BTreeMap::new();
        if let Some(written) = spec.document("fields")? {
            for (name, value) in written.doc() {
                let types = self.types(&written.name_of(name), value, depth)?;
                fields.insert(name.to_owned(), types);
            }
        }
        Ok(Mapping { fields, dynamic })
    }

    /// How fields are indexed of which the definition says nothing, where `dynamic` is true.
    fn dynamic(&self) -> Result<Types> {
        let number = NumberType {
            integers: true,
            doubles: true,
        };
        Ok(Types {
            string: Some(self.plain_string(Arc::clone(&self.default), None)),
            number: Some(number),
            date: true,
            boolean: true,
            object_id: true,
            uuid: true,
            document: Some(Inner::Again),
            ..Types::default()
        })
    }

    fn type_set(&self, set: &Operand<'_>) -> Result<Types> {
        let name = set.required_string("typeSet")?;
        let Some(value) = self.type_sets.get(name) else {
            refuse!("\"{}\" names {name:?}, which is not there", set.name_of("typeSet"));
        };
        let mut types = self.types(&format!("typeSets.{name}"), *value, 0)?;
        if types.document.is_some() || types.embedded.is_some() {
            refuse!("type set {name:?} cannot have types of documents");
        }
        types.document = Some(Inner::Again);
        Ok(types)
    }

    fn types(&self, name: &str, value: ValueRef<'_>, depth: usize) -> Result<Types> {
        let mut types = Types::default();
        match value {
            ValueRef::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.add(&Operand::of(format!("{name}[{at}]"), item)?, depth, &mut types)?;
                }
            }
            value => self.add(&Operand::of(name, value)?, depth, &mut types)?,
        }
        Ok(types)
    }

    fn add(&self, spec: &Operand<'_>, depth: usize, types: &mut Types) -> Result<()> {
        let kind = spec.required_string("type")?;
        let is_new = match kind {
            "string" => types.string.replace(self.string(spec, true)?).is_none(),
            "autocomplete" => types.autocomplete.replace(self.autocomplete(spec)?).is_none(),
            "token" => {
                spec.only(&["type", "normalizer"])?;
                let normalizers = [("none", false), ("lowercase", true)];
                let lowercase = spec.choice("normalizer", &normalizers)?.unwrap_or(false);
                types.token.replace(TokenType { lowercase }).is_none()
            }
            "number" => types.number.replace(number(spec)?).is_none(),
            "numberFacet" => types.number_facet.replace(number(spec)?).is_none(),
            "date" => flag(spec, &mut types.date)?,
            "dateFacet" => flag(spec, &mut types.date_facet)?,
            "boolean" => flag(spec, &mut types.boolean)?,
            "objectId" => flag(spec, &mut types.object_id)?,
            "uuid" => flag(spec, &mut types.uuid)?,
            "stringFacet" => flag(spec, &mut types.string_facet)?,
            "geo" => {
                spec.only(&["type", "indexShapes"])?;
                let shapes = spec.boolean("indexShapes")?.unwrap_or(false);
                types.geo.replace(GeoType { shapes }).is_none()
            }
            "document" => {
                let mapping = self.mapping_at(spec, &["type", "dynamic", "fields"], depth + 1)?;
                types.document.replace(Inner::Own(mapping)).is_none()
            }
            "embeddedDocuments" => {
                let known = ["type", "dynamic", "fields", "storedSource"];
                let embedded = Embedded {
                    mapping: Arc::new(self.mapping_at(spec, &known, depth + 1)?),
                    source: Source::read(spec, "storedSource")?,
                };
                types.embedded.replace(embedded).is_none()
            }
            _ => refuse!("\"{}\": the type {kind:?} is not supported", spec.name()),
        };
        match is_new {
            true => Ok(()),
            false => refuse!("\"{}\" has the type {kind:?} twice", spec.name()),
        }
    }

    fn plain_string(&self, analyzer: Arc<Analyzer>, search: Option<Arc<Analyzer>>) -> StringType {
        let search_analyzer = search
            .or_else(|| self.search.clone())
            .unwrap_or_else(|| Arc::clone(&analyzer));
        StringType {
            analyzer,
            search_analyzer,
            multi: Vec::new(),
            longest: None,
            is_stored: true,
            has_lengths: true,
            holds: Holds::Positions,
        }
    }

    fn named(&self, spec: &Operand<'_>, field: &str) -> Result<Option<Arc<Analyzer>>> {
        match spec.string(field)? {
            Some(name) => self.analyzers.named(&spec.name_of(field), name).map(Some),
            None => Ok(None),
        }
    }

    fn string(&self, spec: &Operand<'_>, is_outer: bool) -> Result<StringType> {
        let known = [
            "type",
            "analyzer",
            "searchAnalyzer",
            "indexOptions",
            "store",
            "ignoreAbove",
            "norms",
            "similarity",
            "multi",
        ];
        spec.only(&known[..known.len() - usize::from(!is_outer)])?;
        let own = self.named(spec, "analyzer")?;
        let mut search = self.named(spec, "searchAnalyzer")?;
        if own.is_some() && search.is_none() {
            search.clone_from(&own);
        }
        let mut string = self.plain_string(own.unwrap_or_else(|| Arc::clone(&self.default)), search);
        let holds = [
            ("docs", Holds::Documents),
            ("freqs", Holds::Frequencies),
            ("positions", Holds::Positions),
            ("offsets", Holds::Positions),
        ];
        string.holds = spec.choice("indexOptions", &holds)?.unwrap_or(Holds::Positions);
        string.is_stored = spec.boolean("store")?.unwrap_or(true);
        string.longest = spec
            .integer_within("ignoreAbove", 1..=i32::MAX)?
            .map(|longest| longest as usize);
        string.has_lengths = spec
            .choice("norms", &[("include", true), ("omit", false)])?
            .unwrap_or(true);
        only_bm25(spec)?;
        if is_outer && let Some(multi) = spec.document("multi")? {
            for (name, value) in multi.doc() {
                let inner = Operand::of(multi.name_of(name), value)?;
                if inner.required_string("type")? != "string" {
                    refuse!("\"{}\" must be \"string\"", inner.name_of("type"));
                }
                string.multi.push((name.to_owned(), self.string(&inner, false)?));
            }
        }
        Ok(string)
    }

    fn autocomplete(&self, spec: &Operand<'_>) -> Result<Autocomplete> {
        spec.only(&[
            "type",
            "analyzer",
            "maxGrams",
            "minGrams",
            "tokenization",
            "foldDiacritics",
            "similarity",
        ])?;
        only_bm25(spec)?;
        let kinds = [
            ("edgeGram", GramKind::Beginnings),
            ("rightEdgeGram", GramKind::Ends),
            ("nGram", GramKind::All),
        ];
        let min = spec.integer_within("minGrams", 1..=255)?.unwrap_or(2);
        let max = spec.integer_within("maxGrams", 1..=255)?.unwrap_or(15);
        if min > max {
            refuse!("\"{}\" cannot be greater than maxGrams", spec.name_of("minGrams"));
        }
        let analyzer = self
            .named(spec, "analyzer")?
            .unwrap_or_else(|| Arc::clone(&self.default));
        Ok(Autocomplete {
            analyzer,
            grams: super::grams::WordGrams {
                kind: spec.choice("tokenization", &kinds)?.unwrap_or(GramKind::Beginnings),
                min: min as usize,
                max: max as usize,
                unmarked: spec.boolean("foldDiacritics")?.unwrap_or(true),
            },
        })
    }
}

fn flag(spec: &Operand<'_>, flag: &mut bool) -> Result<bool> {
    spec.only(&["type"])?;
    Ok(!std::mem::replace(flag, true))
}

fn number(spec: &Operand<'_>) -> Result<NumberType> {
    spec.only(&["type", "representation", "indexIntegers", "indexDoubles"])?;
    if spec.choice("representation", &[("double", false), ("int64", true)])? == Some(true) {
        refuse!("\"{}\": int64 is not supported", spec.name_of("representation"));
    }
    let number = NumberType {
        integers: spec.boolean("indexIntegers")?.unwrap_or(true),
        doubles: spec.boolean("indexDoubles")?.unwrap_or(true),
    };
    if !(number.integers || number.doubles) {
        refuse!("\"{}\" must index integers or doubles", spec.name());
    }
    Ok(number)
}

fn only_bm25(spec: &Operand<'_>) -> Result<()> {
    let Some(similarity) = spec.document("similarity")? else {
        return Ok(());
    };
    similarity.only(&["type"])?;
    match similarity.required_string("type")? {
        "bm25" => Ok(()),
        other => refuse!("\"{}\": {other:?} is not supported", similarity.name_of("type")),
    }
}
