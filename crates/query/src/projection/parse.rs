//! Parsing projection specifications.

use super::{Child, Compute, Mode, Node, Policy, Projection, Slice};
use crate::env::Scope;
use crate::expr::Expr;
use crate::field_names::validate_path;
use crate::matcher::{MatchExpr, Predicate};
use nestor_model::{DocRef, Document, Error, Path, RawDocBuf, Result, Str, ValueRef, bail};

/// The kind of projection, as far as the fields seen so far decide it.
struct Parser<'s> {
    scope: &'s mut Scope,
    policy: Policy,
    root: Node,
    mode: Option<Mode>,
    slices: Vec<(Path, Slice)>,
    positional: Option<Path>,
    has_elem_match: bool,
    /// `_id: 1` or `_id: 0` at the top.
    id: Option<bool>,
}

impl Projection {
    /// Parses a specification.
    ///
    /// # Errors
    /// 31249, 31250 path collisions; 31253, 31254 inclusion mixed with exclusion; 31252, 31310
    /// expressions in an exclusion; 51270 empty sub-projection; 51272 empty specification (`$project`);
    /// 31255, 31256, 31271, 31274, 31275, 31276, 31308, 31324, 31394, 31395 of `$elemMatch` and positional `$`;
    /// 31325 unknown operators; for `$addFields` 40176, 40181, 40182, 40183; those of paths and expressions.
    pub fn parse(spec: DocRef<'_>, scope: &mut Scope, policy: Policy) -> Result<Self> {
        if spec.is_empty() && policy == Policy::Project {
            bail!(51272, "projection specification must have at least one field");
        }
        let mut parser = Parser {
            scope,
            policy,
            root: Node::default(),
            mode: (policy == Policy::AddFields).then_some(Mode::Exclusion),
            slices: Vec::new(),
            positional: None,
            has_elem_match: false,
            id: None,
        };
        for (name, value) in spec {
            match policy {
                Policy::AddFields => parser.added_field(name, value)?,
                _ => parser.field(name, value)?,
            }
        }
        parser.finish(spec.to_raw())
    }

    /// Parses the operand of `$unset`: a path or an array of paths.
    ///
    /// # Errors
    /// 31002 for another type, 31119 for an empty array, 31120 for an item that is no string; those of paths.
    pub fn parse_unset(value: ValueRef<'_>) -> Result<Self> {
        let mut paths = Vec::new();
        match value {
            ValueRef::String(path) => paths.push(path),
            ValueRef::Array(items) => {
                for item in items {
                    let ValueRef::String(path) = item else {
                        bail!(
                            31120,
                            "$unset specification must be a string or an array containing only string values"
                        );
                    };
                    paths.push(path);
                }
                if paths.is_empty() {
                    bail!(
                        31119,
                        "$unset specification must be a string or an array with at least one field"
                    );
                }
            }
            _ => bail!(31002, "$unset specification must be a string or an array"),
        }
        if paths.iter().any(|path| path.contains('\0')) {
            bail!(9527900, "field names in $unset must not contain a null byte");
        }
        let mut spec = Document::new();
        for path in &paths {
            if path.split('.').count() > nestor_model::raw::DEPTH_MAX {
                bail!(
                    Overflow,
                    "field path is longer than {} components",
                    nestor_model::raw::DEPTH_MAX
                );
            }
            validate_path(path)?;
            spec.push(*path, false);
        }
        Self::parse(spec.as_ref(), &mut Scope::new(), Policy::Project)
    }
}

impl Parser<'_> {
    /// One field of a find or `$project` specification; `path` may be dotted.
    fn field(&mut self, path: &str, value: ValueRef<'_>) -> Result<()> {
        let components = path.split('.').count();
        if components > nestor_model::raw::DEPTH_MAX {
            bail!(
                Overflow,
                "field path is longer than {} components",
                nestor_model::raw::DEPTH_MAX
            );
        }
        if let Some(array) = path.strip_suffix(".$") {
            return self.positional(array, value);
        }
        if path.contains(".$.") {
            bail!(31394, "positional projection '.$' is only allowed at the end of a path");
        }
        validate_path(path)?;
        match value {
            ValueRef::Document(doc) => self.document(path, doc),
            ValueRef::Bool(_) => self.flag(path, value.truthy()),
            _ if value.is_number() => self.flag(path, value.truthy()),
            _ => {
                let expr = Expr::parse(value, self.scope)?;
                self.computed(path, expr, 31310)
            }
        }
    }

    fn document(&mut self, path: &str, doc: DocRef<'_>) -> Result<()> {
        let Some((first, operand)) = doc.iter().next() else {
            bail!(
                51270,
                "an empty sub-projection is not a valid value; found empty object at path {path}"
            );
        };
        if !first.starts_with('$') {
            // A field of an object may itself be dotted.
            for (name, value) in doc {
                self.field(&format!("{path}.{name}"), value)?;
            }
            return Ok(());
        }
        if self.policy == Policy::Find && doc.iter().nth(1).is_none() {
            match first {
                // Beside the positional operator on the same array it can only be the expression.
                "$slice" if self.positional.as_ref().is_none_or(|array| array.as_str() != path) => {
                    if let Some(slice) = Slice::parse(operand)? {
                        return self.slice(path, slice);
                    }
                }
                "$elemMatch" => return self.elem_match(path, operand),
                _ => {}
            }
        }
        if !Expr::is_operator(first) {
            bail!(31325, "unknown expression {first}");
        }
        let is_meta = first == "$meta";
        let expr = Expr::parse(ValueRef::Document(doc), self.scope)?;
        if is_meta && self.policy == Policy::Find {
            return self.insert(path, Child::Computed(Compute::Expr(expr)));
        }
        self.computed(path, expr, 31252)
    }

    fn insert(&mut self, path: &str, child: Child) -> Result<()> {
        self.root.insert(&Path::new(path), child, self.policy)
    }

    /// `path: 1` or `path: 0`.
    fn flag(&mut self, path: &str, include: bool) -> Result<()> {
        if path == "_id" {
            // Collides with another _id, but fits either mode.
            self.id = Some(include);
            return self.insert(path, if include { Child::Kept } else { Child::Dropped });
        }
        self.set_mode(path, if include { Mode::Inclusion } else { Mode::Exclusion })?;
        self.insert(path, Child::Listed)
    }

    fn set_mode(&mut self, path: &str, mode: Mode) -> Result<()> {
        match (self.mode, mode) {
            (Some(Mode::Exclusion), Mode::Inclusion) => {
                bail!(31253, "Cannot do inclusion on field {path} in exclusion projection")
            }
            (Some(Mode::Inclusion), Mode::Exclusion) => {
                bail!(31254, "Cannot do exclusion on field {path} in inclusion projection")
            }
            _ => self.mode = Some(mode),
        }
        Ok(())
    }

    fn computed(&mut self, path: &str, expr: Expr, code_in_exclusion: i32) -> Result<()> {
        if self.mode == Some(Mode::Exclusion) {
            return Err(Error::location(
                code_in_exclusion,
                format!("cannot use an expression at {path} in an exclusion projection"),
            ));
        }
        self.mode = Some(Mode::Inclusion);
        self.insert(path, Child::Computed(Compute::Expr(expr)))
    }

    fn slice(&mut self, path: &str, slice: Slice) -> Result<()> {
        // Its place in the tree depends on the mode, which is known at the end.
        self.insert(path, Child::Listed)?;
        self.slices.push((Path::new(path), slice));
        Ok(())
    }

    fn elem_match(&mut self, path: &str, operand: ValueRef<'_>) -> Result<()> {
        if !matches!(operand, ValueRef::Document(_)) {
            bail!(
                31274,
                "elemMatch: invalid argument, object required, but got {}",
                operand.bson_type().alias()
            );
        }
        if self.positional.is_some() {
            bail!(31255, "cannot specify positional operator and $elemMatch");
        }
        if path.contains('.') {
            bail!(31275, "cannot use $elemMatch projection on a nested field");
        }
        let mut condition = Document::new();
        condition.push("$elemMatch", operand.to_value());
        let mut filter = Document::new();
        filter.push(path, condition);
        let parsed = MatchExpr::parse(filter.as_ref(), self.scope)?;
        let MatchExpr::Leaf(leaf) = parsed else {
            bail!(BadValue, "elemMatch: invalid argument");
        };
        let predicate: Predicate = leaf.predicate;
        self.has_elem_match = true;
        let field = Str::from(path);
        self.insert(path, Child::Computed(Compute::ElemMatch { field, predicate }))
    }

    /// `array.$: 1`.
    fn positional(&mut self, array: &str, value: ValueRef<'_>) -> Result<()> {
        if self.policy != Policy::Find {
            bail!(31324, "cannot use positional projection in aggregation projection");
        }
        match value {
            ValueRef::Document(_) => {
                bail!(
                    31271,
                    "positional projection cannot be used with an expression or sub object"
                )
            }
            ValueRef::Bool(_) if value.truthy() => {}
            _ if value.is_number() && value.truthy() => {}
            ValueRef::Bool(_) => bail!(31395, "positional projection cannot be used with exclusion"),
            _ if value.is_number() => bail!(31395, "positional projection cannot be used with exclusion"),
            _ => bail!(31308, "positional projection cannot be used with a literal"),
        }
        if self.positional.is_some() {
            bail!(31276, "cannot specify more than one positional projection per query");
        }
        if self.has_elem_match {
            bail!(31256, "cannot specify positional operator and $elemMatch");
        }
        if array.contains(".$.") || array.ends_with(".$") {
            bail!(31394, "positional projection '.$' is only allowed at the end of a path");
        }
        validate_path(array)?;
        self.set_mode(array, Mode::Inclusion)?;
        self.insert(array, Child::Listed)?;
        self.positional = Some(Path::new(array));
        Ok(())
    }

    /// One field of an `$addFields` specification.
    fn added_field(&mut self, path: &str, value: ValueRef<'_>) -> Result<()> {
        validate_path(path)?;
        // An empty object is a value that takes the place of the old one.
        if let (ValueRef::Document(doc), Some((first, _))) = (value, first_field(value)) {
            let operators = doc.iter().filter(|(name, _)| name.starts_with('$')).count();
            let fields = doc.iter().count();
            if operators > 0 && fields > 1 {
                let code = if first.starts_with('$') { 40181 } else { 40182 };
                return Err(Error::location(
                    code,
                    format!(
                        "an expression at {path} must contain exactly one field, the name of the expression; found {fields}"
                    ),
                ));
            }
            if operators == 0 {
                for (name, value) in doc {
                    if name.contains('.') {
                        bail!(
                            40183,
                            "cannot use dotted field name '{name}' in a sub object of path {path}"
                        );
                    }
                    self.added_field(&format!("{path}.{name}"), value)?;
                }
                return Ok(());
            }
        }
        let expr = Expr::parse(value, self.scope)?;
        self.insert(path, Child::Computed(Compute::Expr(expr)))
    }

    /// `spec` is what was parsed.
    fn finish(mut self, spec: RawDocBuf) -> Result<Projection> {
        let mode = self.mode.unwrap_or(match self.id {
            Some(true) => Mode::Inclusion,
            _ if self.has_elem_match => Mode::Inclusion,
            // `_id: 0`, $slice, $meta or nothing at all.
            _ => Mode::Exclusion,
        });
        if mode == Mode::Inclusion && self.policy != Policy::AddFields {
            // _id is kept unless the specification says something else of it.
            if self.root.child("_id").is_none() {
                self.root.push("_id".into(), Child::Kept);
            }
        }
        if mode == Mode::Exclusion {
            // Slicing keeps the field.
            for (path, _) in &self.slices {
                self.root.replace(path, Child::Kept);
            }
        }
        self.root.finish();
        Ok(Projection {
            mode,
            root: self.root,
            slices: self.slices,
            positional: self.positional,
            spec,
        })
    }
}

fn first_field(value: ValueRef<'_>) -> Option<(&str, ValueRef<'_>)> {
    value.as_document()?.iter().next()
}
