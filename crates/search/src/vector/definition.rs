//! Definitions of indexes of the kind `vectorSearch`.

use super::read;
use nestor_model::{ArrayRef, DocRef, Path, Result, Str, ValueRef, bail};

/// The most dimensions that a vector has.
pub const DIMENSIONS_MAX: usize = 8192;

/// The most fields that an index has.
const FIELDS_MAX: usize = 1000;

/// A definition of this kind, checked.
#[derive(Debug)]
pub struct Definition {
    /// The fields that hold vectors, by distinct paths; at least one.
    pub(super) vectors: Vec<VectorField>,
    /// The fields that filters may name, by distinct paths.
    pub(super) filters: Vec<FilterField>,
    /// The array whose elements are searched one by one.
    pub(super) nested_root: Option<Path>,
    /// It says what to store of documents.
    pub(super) stores_source: bool,
}

/// A field that holds vectors.
#[derive(Debug)]
pub(super) struct VectorField {
    pub(super) path: Str,
    /// Where vectors are found from the documents of `level` on.
    pub(super) below: Path,
    pub(super) level: Level,
    pub(super) dimensions: usize,
    pub(super) similarity: Similarity,
}

/// A field that filters may name.
#[derive(Debug)]
pub(super) struct FilterField {
    pub(super) path: Str,
    pub(super) below: Path,
    pub(super) level: Level,
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Documents.
    Documents,
    /// The elements at `nestedRoot`.
    Elements,
}

/// How near two vectors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Similarity {
    Cosine,
    DotProduct,
    Euclidean,
}

impl Definition {
    /// Reads what `createSearchIndexes` was given.
    ///
    /// Errors: 8, those of the server that MongoDB runs beside itself for search; 125 for a `nestedRoot` with no vectors below it.
    pub fn parse(definition: DocRef<'_>) -> Result<Self> {
        const OPTIONS: [&str; 4] = ["fields", "nestedRoot", "storedSource", "numPartitions"];
        read::known("definition", definition, &OPTIONS)?;
        let nested_root = match read::text("nestedRoot", read::given(definition, "nestedRoot"))? {
            Some(text) => Some(path("nestedRoot", text)?),
            None => None,
        };
        if let Some(partitions) = read::whole("numPartitions", read::given(definition, "numPartitions"))?
            && !matches!(partitions, 1..=64)
        {
            bail!(UnknownError, "\"numPartitions\" must be between 1 and 64");
        }
        let mut parsed = Self {
            vectors: Vec::new(),
            filters: Vec::new(),
            nested_root,
            stores_source: stores_source(read::given(definition, "storedSource"))?,
        };
        let fields = match read::given(definition, "fields") {
            Some(ValueRef::Array(fields)) => fields,
            Some(_) => bail!(UnknownError, "\"fields\" must be an array"),
            None => bail!(UnknownError, "\"fields\" is required"),
        };
        parsed.read_fields(fields)?;
        if let Some(root) = &parsed.nested_root
            && !parsed.vectors.iter().any(|field| field.level == Level::Elements)
        {
            bail!(
                CommandFailed,
                "\"nestedRoot\" must be the beginning of the path of a vector field: {root}"
            );
        }
        Ok(parsed)
    }

    fn read_fields(&mut self, fields: ArrayRef<'_>) -> Result<()> {
        for (i, field) in fields.iter().enumerate() {
            if i == FIELDS_MAX {
                bail!(UnknownError, "\"fields\" has more than {FIELDS_MAX} elements");
            }
            let ValueRef::Document(field) = field else {
                bail!(UnknownError, "\"fields[{i}]\" must be a document");
            };
            self.read_field(field)?;
        }
        if self.vectors.is_empty() {
            bail!(UnknownError, "at least one of \"fields\" must be of type vector");
        }
        Ok(())
    }

    fn read_field(&mut self, field: DocRef<'_>) -> Result<()> {
        let Some(kind) = read::text("type", read::given(field, "type"))? else {
            bail!(UnknownError, "\"type\" of a field is required");
        };
        match kind {
            "vector" | "filter" => {}
            "autoEmbed" | "text" => bail!(
                UnknownError,
                "fields of type {kind}, whose vectors the server computes, are not supported"
            ),
            _ => bail!(
                UnknownError,
                "\"type\" of a field must be one of vector, filter: {kind}"
            ),
        }
        let Some(text) = read::text("path", read::given(field, "path"))? else {
            bail!(UnknownError, "\"path\" of a field is required");
        };
        let whole = path("path", text)?;
        if self.vectors.iter().any(|other| other.path == text) || self.filters.iter().any(|other| other.path == text) {
            bail!(UnknownError, "there are two fields with path {text}");
        }
        let (level, below) = self.place(whole);
        if kind == "filter" {
            read::known("filter field", field, &["type", "path"])?;
            self.filters.push(FilterField {
                path: text.into(),
                below,
                level,
            });
            return Ok(());
        }
        let (dimensions, similarity) = vector_options(field)?;
        self.vectors.push(VectorField {
            path: text.into(),
            below,
            level,
            dimensions,
            similarity,
        });
        Ok(())
    }

    /// Of which level a path is, and what of it leads on from there.
    fn place(&self, path: Path) -> (Level, Path) {
        let root = self.nested_root.as_ref().map(Path::as_str);
        let below = root.and_then(|root| path.as_str().strip_prefix(root)?.strip_prefix('.'));
        match below {
            Some(below) => (Level::Elements, Path::new(below)),
            None => (Level::Documents, path),
        }
    }
}

fn vector_options(field: DocRef<'_>) -> Result<(usize, Similarity)> {
    const OPTIONS: [&str; 7] = [
        "type",
        "path",
        "numDimensions",
        "similarity",
        "quantization",
        "hnswOptions",
        "indexingMethod",
    ];
    read::known("vector field", field, &OPTIONS)?;
    let dimensions = match read::whole("numDimensions", read::given(field, "numDimensions"))? {
        Some(number) => usize::try_from(number).unwrap_or(0),
        None => bail!(UnknownError, "\"numDimensions\" is required"),
    };
    if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
        bail!(UnknownError, "\"numDimensions\" must be between 1 and {DIMENSIONS_MAX}");
    }
    let similarity = match read::text("similarity", read::given(field, "similarity"))? {
        Some("cosine") => Similarity::Cosine,
        Some("dotProduct") => Similarity::DotProduct,
        Some("euclidean") => Similarity::Euclidean,
        Some(other) => bail!(
            UnknownError,
            "\"similarity\" must be one of cosine, dotProduct, euclidean: {other}"
        ),
        None => bail!(UnknownError, "\"similarity\" is required"),
    };
    match read::text("quantization", read::given(field, "quantization"))? {
        None | Some("none" | "scalar") => {}
        Some("binary") if dimensions % 8 == 0 => {}
        Some("binary") => bail!(
            UnknownError,
            "with \"quantization\" binary \"numDimensions\" must be a multiple of 8"
        ),
        Some(other) => bail!(
            UnknownError,
            "\"quantization\" must be one of none, scalar, binary: {other}"
        ),
    }
    let method = read::text("indexingMethod", read::given(field, "indexingMethod"))?;
    if let Some(other) = method
        && !matches!(other, "hnsw" | "flat")
    {
        bail!(UnknownError, "\"indexingMethod\" must be one of hnsw, flat: {other}");
    }
    if let Some(options) = read::document("hnswOptions", read::given(field, "hnswOptions"))? {
        if method == Some("flat") {
            bail!(
                UnknownError,
                "\"hnswOptions\" cannot be given with \"indexingMethod\" flat"
            );
        }
        check_graph(options)?;
    }
    Ok((dimensions, similarity))
}

/// What the graph of MongoDB's index is to look like. There is none here, as all vectors are compared.
fn check_graph(options: DocRef<'_>) -> Result<()> {
    const LIMITS: [(&str, i64, i64); 2] = [("maxEdges", 16, 64), ("numEdgeCandidates", 100, 3200)];
    read::known("hnswOptions", options, &LIMITS.map(|(name, ..)| name))?;
    for (name, least, most) in LIMITS {
        if let Some(number) = read::whole(name, read::given(options, name))?
            && !(least..=most).contains(&number)
        {
            bail!(
                UnknownError,
                "\"hnswOptions.{name}\" must be between {least} and {most}"
            );
        }
    }
    Ok(())
}

fn stores_source(value: Option<ValueRef<'_>>) -> Result<bool> {
    let choice = match value {
        None | Some(ValueRef::Bool(false)) => return Ok(false),
        Some(ValueRef::Document(choice)) => choice,
        Some(ValueRef::Bool(true)) => bail!(
            UnknownError,
            "\"storedSource\" true is not supported by indexes of type vectorSearch"
        ),
        Some(_) => bail!(UnknownError, "\"storedSource\" must be false or a document"),
    };
    read::known("storedSource", choice, &["include", "exclude"])?;
    let mut choices = choice.iter();
    let (Some((name, value)), None) = (choices.next(), choices.next()) else {
        bail!(
            UnknownError,
            "\"storedSource\" must have exactly one of \"include\" and \"exclude\""
        );
    };
    let ValueRef::Array(paths) = value else {
        bail!(UnknownError, "\"storedSource.{name}\" must be an array");
    };
    if paths.is_empty() {
        bail!(UnknownError, "\"storedSource.{name}\" must not be empty");
    }
    for item in paths {
        match item {
            ValueRef::String(text) => path("storedSource", text)?,
            _ => bail!(UnknownError, "\"storedSource.{name}\" must be an array of strings"),
        };
    }
    Ok(true)
}

fn path(name: &str, text: &str) -> Result<Path> {
    if text.split('.').any(str::is_empty) {
        bail!(
            UnknownError,
            "\"{name}\" must not be empty nor have empty parts: \"{text}\""
        );
    }
    Ok(Path::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    fn parse(text: &str) -> String {
        let document = extjson::parse_document(text).expect("a document");
        match Definition::parse(document.as_ref()) {
            Err(error) => format!("error {}", error.code().number()),
            Ok(definition) => {
                let vectors = definition.vectors.iter();
                let vectors = vectors.map(|f| format!("{:?} {} {} {:?}", f.level, f.below, f.dimensions, f.similarity));
                let filters = definition.filters.iter().map(|f| format!("{:?} {}", f.level, f.below));
                vectors.chain(filters).collect::<Vec<_>>().join(", ")
            }
        }
    }

    #[test]
    fn definitions() {
        const VECTOR: &str = r#""type": "vector", "path": "v""#;
        let with = |options: &str| format!(r#"{{"fields": [{{{VECTOR}, {options}}}]}}"#);
        let plain = r#""numDimensions": 8, "similarity": "euclidean""#;
        let top = |options: &str| format!(r#"{{"fields": [{{{VECTOR}, {plain}}}], {options}}}"#);
        let good = "Documents v 8 Euclidean";
        let cases = [
            (with(plain), good),
            (
                with(r#""numDimensions": 1.0, "similarity": "cosine""#),
                "Documents v 1 Cosine",
            ),
            (
                with(r#""numDimensions": 8192, "similarity": "dotProduct""#),
                "Documents v 8192 DotProduct",
            ),
            (with(r#""numDimensions": 8193, "similarity": "cosine""#), "error 8"),
            (with(r#""numDimensions": 0, "similarity": "cosine""#), "error 8"),
            (with(r#""numDimensions": -4, "similarity": "cosine""#), "error 8"),
            (with(r#""numDimensions": 1.5, "similarity": "cosine""#), "error 8"),
            (with(r#""numDimensions": "3", "similarity": "cosine""#), "error 8"),
            (with(r#""similarity": "cosine""#), "error 8"),
            (with(r#""numDimensions": 3"#), "error 8"),
            (with(r#""numDimensions": 3, "similarity": "COSINE""#), "error 8"),
            (with(&format!(r#"{plain}, "quantization": "scalar""#)), good),
            (with(&format!(r#"{plain}, "quantization": "binary""#)), good),
            (
                with(r#""numDimensions": 3, "similarity": "cosine", "quantization": "binary""#),
                "error 8",
            ),
            (with(&format!(r#"{plain}, "quantization": "half""#)), "error 8"),
            (
                with(&format!(
                    r#"{plain}, "hnswOptions": {{"maxEdges": 16, "numEdgeCandidates": 3200}}"#
                )),
                good,
            ),
            (
                with(&format!(r#"{plain}, "hnswOptions": {{"maxEdges": 65}}"#)),
                "error 8",
            ),
            (with(&format!(r#"{plain}, "hnswOptions": {{"edges": 16}}"#)), "error 8"),
            (with(&format!(r#"{plain}, "hnswOptions": 16"#)), "error 8"),
            (with(&format!(r#"{plain}, "indexingMethod": "flat""#)), good),
            (with(&format!(r#"{plain}, "indexingMethod": "tree""#)), "error 8"),
            (
                with(&format!(r#"{plain}, "indexingMethod": "flat", "hnswOptions": {{}}"#)),
                "error 8",
            ),
            (with(&format!(r#"{plain}, "size": 1"#)), "error 8"),
            (top(r#""storedSource": false"#), good),
            (top(r#""storedSource": true"#), "error 8"),
            (top(r#""storedSource": {"include": ["a", "b.c"]}"#), good),
            (top(r#""storedSource": {"exclude": ["v"]}"#), good),
            (top(r#""storedSource": {"exclude": []}"#), "error 8"),
            (
                top(r#""storedSource": {"include": ["a"], "exclude": ["b"]}"#),
                "error 8",
            ),
            (top(r#""storedSource": {"include": "a"}"#), "error 8"),
            (top(r#""nestedRoot": "reviews""#), "error 125"),
            (top(r#""nestedRoot": "v""#), "error 125"),
            (top(r#""nestedRoot": ".a""#), "error 8"),
            (top(r#""nestedRoot": 3"#), "error 8"),
            (top(r#""numPartitions": 4"#), good),
            (top(r#""numPartitions": 0"#), "error 8"),
            (top(r#""mappings": {"dynamic": true}"#), "error 8"),
            (r#"{"fields": []}"#.into(), "error 8"),
            (r#"{"fields": {}}"#.into(), "error 8"),
            (r#"{}"#.into(), "error 8"),
            (r#"{"fields": [1]}"#.into(), "error 8"),
            (r#"{"fields": [{"type": "filter", "path": "a"}]}"#.into(), "error 8"),
            (
                r#"{"fields": [{"type": "autoEmbed", "path": "a", "model": "m"}]}"#.into(),
                "error 8",
            ),
            (
                format!(r#"{{"fields": [{{{VECTOR}, {plain}}}, {{"type": "filter", "path": "v"}}]}}"#),
                "error 8",
            ),
            (
                format!(r#"{{"fields": [{{{VECTOR}, {plain}}}, {{"type": "filter"}}]}}"#),
                "error 8",
            ),
            (
                format!(r#"{{"fields": [{{{VECTOR}, {plain}}}, {{"type": "filter", "path": "f", "of": 1}}]}}"#),
                "error 8",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text), expected, "{text}");
        }
    }

    #[test]
    fn levels() {
        let text = r#"{"nestedRoot": "a.b", "fields": [
            {"type": "vector", "path": "a.b.v", "numDimensions": 2, "similarity": "cosine"},
            {"type": "vector", "path": "a.bv", "numDimensions": 2, "similarity": "cosine"},
            {"type": "filter", "path": "a.b.c.d"},
            {"type": "filter", "path": "a.c"}
        ]}"#;
        assert_eq!(
            parse(text),
            "Elements v 2 Cosine, Documents a.bv 2 Cosine, Elements c.d, Documents a.c"
        );
    }
}
