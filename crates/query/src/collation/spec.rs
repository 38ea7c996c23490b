//! The specification document of a collation.

use super::locale::Locale;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use nestor_model::{DocRef, Document, Result, Str, ValueRef, bail, doc};

/// The version of collations that MongoDB writes into specifications and understands.
const VERSION: &str = "57.1";

/// A collation other than simple, as its document describes it, with every default filled in.
///
/// Two are equal when their documents are, which is how MongoDB compares the collations of an operation,
/// an index and a view; that two differently written ones order alike does not make them equal.
/// Source: manual, "Collation" and "Collation Locales and Default Parameters".
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Collation {
    /// As given, in MongoDB's spelling: `de@collation=phonebook`.
    pub locale: Str,
    /// Case counts as a level of its own between accents and the tertiary level.
    pub case_level: bool,
    /// `upper`, `lower` or `off`.
    pub case_first: CaseFirst,
    /// 1 to 5.
    pub strength: u8,
    /// Digits compare as numbers.
    pub numeric_ordering: bool,
    /// White space and punctuation (see `max_variable`) do not count up to strength 3.
    pub shifted: bool,
    /// What `shifted` is about: `space` if so, else `punct`.
    pub only_space: bool,
    /// Kept for printing: equivalent sequences are always equal here.
    pub normalization: bool,
    /// Accents count from the end of the string.
    pub backwards: bool,
}

/// Whether capital letters come first at the tertiary level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CaseFirst {
    /// Capital letters first.
    Upper,
    /// Small letters first.
    Lower,
    /// As the language has it: small letters first.
    Off,
}

impl CaseFirst {
    fn name(self) -> &'static str {
        match self {
            Self::Upper => "upper",
            Self::Lower => "lower",
            Self::Off => "off",
        }
    }
}

/// The fields as given; null counts as not given.
#[derive(Default)]
struct Given<'a> {
    locale: Option<&'a str>,
    case_level: Option<bool>,
    case_first: Option<CaseFirst>,
    strength: Option<u8>,
    numeric_ordering: Option<bool>,
    shifted: Option<bool>,
    only_space: Option<bool>,
    normalization: Option<bool>,
    backwards: Option<bool>,
}

impl Collation {
    /// Reads a specification; `None` is the simple collation, whose other options are checked only for
    /// their types and values.
    ///
    /// Errors: 14 for wrong types, 40414 without locale, 40415 for unknown fields, 2 for unknown locales and
    /// values and for options that contradict each other, 161 for a version other than 57.1.
    pub fn parse(spec: DocRef<'_>) -> Result<Option<Self>> {
        let given = Given::read(spec)?;
        let Some(name) = given.locale else {
            bail!(40414, "BSON field 'collation.locale' is missing but a required field");
        };
        if name == "simple" {
            return Ok(None);
        }
        let Some((locale, defaults)) = Locale::parse(name).and_then(|locale| {
            let language = locale.preferences()?;
            let icu = CollatorBorrowed::try_new(language, CollatorOptions::default()).ok()?;
            Some((locale, icu.resolved_options()))
        }) else {
            bail!(BadValue, "Field 'locale' is invalid in: {{ locale: \"{name}\" }}");
        };
        let case_first = match defaults.case_first {
            CollationCaseFirst::Upper => CaseFirst::Upper,
            CollationCaseFirst::Lower => CaseFirst::Lower,
            _ => CaseFirst::Off,
        };
        let collation = Self {
            locale: name.into(),
            case_level: given.case_level.unwrap_or(false),
            case_first: given.case_first.unwrap_or(case_first),
            strength: given.strength.unwrap_or(3),
            numeric_ordering: given.numeric_ordering.unwrap_or(false),
            shifted: given
                .shifted
                .unwrap_or(defaults.alternate_handling == AlternateHandling::Shifted),
            only_space: given.only_space.unwrap_or(false),
            normalization: given.normalization.unwrap_or(locale.is_normalized()),
            backwards: given.backwards.unwrap_or(locale.is_backwards()),
        };
        // An option without meaning at the given strength is refused, but never a default of the language.
        if collation.strength == 1 && collation.backwards && !locale.is_backwards() {
            bail!(BadValue, "'backwards' is invalid with 'strength' of 1");
        }
        let cased = collation.case_level || collation.strength > 2;
        if !cased && collation.case_first != CaseFirst::Off && collation.case_first != case_first {
            bail!(
                BadValue,
                "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2"
            );
        }
        Ok(Some(collation))
    }

    /// The whole document as MongoDB prints it.
    pub fn to_document(&self) -> Document {
        doc! {
            "locale": self.locale.clone(),
            "caseLevel": self.case_level,
            "caseFirst": self.case_first.name(),
            "strength": i32::from(self.strength),
            "numericOrdering": self.numeric_ordering,
            "alternate": if self.shifted { "shifted" } else { "non-ignorable" },
            "maxVariable": if self.only_space { "space" } else { "punct" },
            "normalization": self.normalization,
            "backwards": self.backwards,
            "version": VERSION,
        }
    }

    /// The same in the terms of the Unicode library, but for `backwards`; `None` never happens to what
    /// [`Collation::parse`] returned.
    pub(super) fn settings(&self) -> Option<(CollatorPreferences, CollatorOptions)> {
        let mut preferences = Locale::parse(&self.locale)?.preferences()?;
        preferences.case_first = Some(match self.case_first {
            CaseFirst::Upper => CollationCaseFirst::Upper,
            CaseFirst::Lower => CollationCaseFirst::Lower,
            CaseFirst::Off => CollationCaseFirst::False,
        });
        preferences.numeric_ordering = Some(if self.numeric_ordering {
            CollationNumericOrdering::True
        } else {
            CollationNumericOrdering::False
        });
        let mut options = CollatorOptions::default();
        options.strength = Some(match self.strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            3 => Strength::Tertiary,
            4 => Strength::Quaternary,
            _ => Strength::Identical,
        });
        options.case_level = Some(if self.case_level { CaseLevel::On } else { CaseLevel::Off });
        options.alternate_handling = Some(if self.shifted {
            AlternateHandling::Shifted
        } else {
            AlternateHandling::NonIgnorable
        });
        options.max_variable = Some(if self.only_space {
            MaxVariable::Space
        } else {
            MaxVariable::Punctuation
        });
        Some((preferences, options))
    }
}

impl<'a> Given<'a> {
    fn read(spec: DocRef<'a>) -> Result<Self> {
        let mut given = Self::default();
        for (name, value) in spec {
            match name {
                "locale" => given.locale = Some(text(name, value)?),
                "version" if value.is_nullish() => {}
                "version" => {
                    let version = text(name, value)?;
                    if version != VERSION {
                        bail!(
                            IncompatibleCollationVersion,
                            "requested collation version {version} is not available; this is {VERSION}"
                        );
                    }
                }
                "caseLevel" => given.case_level = flag(name, value)?,
                "numericOrdering" => given.numeric_ordering = flag(name, value)?,
                "normalization" => given.normalization = flag(name, value)?,
                // Null leaves out any option but this one.
                "backwards" if value.is_nullish() => bail!(
                    TypeMismatch,
                    "BSON field 'collation.backwards' is the wrong type '{}', expected type 'bool'",
                    value.bson_type().alias()
                ),
                "backwards" => given.backwards = flag(name, value)?,
                "strength" => given.strength = strength(value)?,
                "caseFirst" => {
                    let orders = [
                        ("upper", CaseFirst::Upper),
                        ("lower", CaseFirst::Lower),
                        ("off", CaseFirst::Off),
                    ];
                    given.case_first = choice(name, value, &orders)?;
                }
                "alternate" => given.shifted = choice(name, value, &[("shifted", true), ("non-ignorable", false)])?,
                "maxVariable" => given.only_space = choice(name, value, &[("space", true), ("punct", false)])?,
                other => bail!(40415, "BSON field 'collation.{other}' is an unknown field"),
            }
        }
        Ok(given)
    }
}

fn wrong_type<T>(name: &str, value: ValueRef<'_>, wanted: &str) -> Result<T> {
    bail!(
        TypeMismatch,
        "BSON field 'collation.{name}' is the wrong type '{}', expected type '{wanted}'",
        value.bson_type().alias()
    )
}

fn text<'a>(name: &str, value: ValueRef<'a>) -> Result<&'a str> {
    match value {
        ValueRef::String(text) => Ok(text),
        other => wrong_type(name, other, "string"),
    }
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<Option<bool>> {
    match value {
        ValueRef::Bool(flag) => Ok(Some(flag)),
        other if other.is_nullish() => Ok(None),
        other => wrong_type(name, other, "bool"),
    }
}

fn choice<T: Copy>(name: &str, value: ValueRef<'_>, choices: &[(&str, T)]) -> Result<Option<T>> {
    if value.is_nullish() {
        return Ok(None);
    }
    let given = text(name, value)?;
    match choices.iter().find(|(choice, _)| *choice == given) {
        Some((_, choice)) => Ok(Some(*choice)),
        None => bail!(
            BadValue,
            "Enumeration value '{given}' for field 'collation.{name}' is not a valid value."
        ),
    }
}

/// Any number, its fraction cut off: drivers send doubles too.
fn strength(value: ValueRef<'_>) -> Result<Option<u8>> {
    if value.is_nullish() {
        return Ok(None);
    }
    if !value.is_number() {
        return wrong_type("strength", value, "int");
    }
    let whole = match value {
        ValueRef::Double(v) => Some(v as i64),
        other => nestor_model::number::whole_number(other),
    };
    match whole {
        Some(strength @ 1..=5) => Ok(Some(strength as u8)),
        _ => bail!(
            BadValue,
            "Enumeration value for field 'collation.strength' is not a valid value, it must be from 1 to 5"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    fn parse(json: &str) -> Result<Option<Collation>> {
        Collation::parse(extjson::parse_document(json).expect("valid JSON").as_ref())
    }

    #[test]
    fn defaults_are_filled_in() {
        let printed = |json| {
            let collation = parse(json).expect("parses").expect("is not simple");
            let printed = collation.to_document();
            assert_eq!(
                Collation::parse(printed.as_ref()).expect("reads its own document"),
                Some(collation)
            );
            extjson::to_string(&printed, extjson::Form::Relaxed)
        };
        assert_eq!(
            printed(r#"{"locale":"en"}"#),
            concat!(
                r#"{"locale":"en","caseLevel":false,"caseFirst":"off","strength":3,"numericOrdering":false,"#,
                r#""alternate":"non-ignorable","maxVariable":"punct","normalization":false,"backwards":false,"version":"57.1"}"#
            )
        );
        for (json, wanted) in [
            (r#"{"locale":"fr_CA"}"#, r#""backwards":true"#),
            (r#"{"locale":"fr_CA","backwards":false}"#, r#""backwards":false"#),
            (r#"{"locale":"fr_CA","strength":1}"#, r#""backwards":true"#),
            (r#"{"locale":"th"}"#, r#""alternate":"shifted""#),
            (r#"{"locale":"da"}"#, r#""caseFirst":"upper""#),
            (r#"{"locale":"vi"}"#, r#""normalization":true"#),
            (r#"{"locale":"en","strength":2.5,"caseLevel":null}"#, r#""strength":2"#),
            (
                r#"{"locale":"de@collation=phonebook"}"#,
                r#""locale":"de@collation=phonebook""#,
            ),
        ] {
            let printed = printed(json);
            assert!(printed.contains(wanted), "{json} gave {printed}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (json, code) in [
            (r#"{}"#, 40414),
            (r#"{"locale":1}"#, 14),
            (r#"{"locale":"xx"}"#, 2),
            (r#"{"locale":""}"#, 2),
            (r#"{"locale":"en","strength":0}"#, 2),
            (r#"{"locale":"en","strength":6}"#, 2),
            (r#"{"locale":"en","strength":0.5}"#, 2),
            (r#"{"locale":"en","strength":1e300}"#, 2),
            (r#"{"locale":"en","strength":"2"}"#, 14),
            (r#"{"locale":"en","caseLevel":1}"#, 14),
            (r#"{"locale":"en","caseFirst":"both"}"#, 2),
            (r#"{"locale":"en","caseFirst":"upper","strength":2}"#, 2),
            (r#"{"locale":"en","alternate":"none"}"#, 2),
            (r#"{"locale":"en","maxVariable":"symbol"}"#, 2),
            (r#"{"locale":"en","backwards":true,"strength":1}"#, 2),
            (r#"{"locale":"en","version":"58.1"}"#, 161),
            (r#"{"locale":"en","colour":1}"#, 40415),
            (r#"{"locale":"simple","strength":9}"#, 2),
        ] {
            let error = parse(json).expect_err(json);
            assert_eq!(error.code().number(), code, "{json}");
        }
        assert_eq!(
            parse(r#"{"locale":"simple","caseFirst":"upper","strength":1}"#).expect("parses"),
            None
        );
    }
}
