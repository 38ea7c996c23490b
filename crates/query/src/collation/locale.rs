//! Which locales there are, in MongoDB's spelling, and what they are called in BCP 47.
//!
//! MongoDB writes locales as ICU does: `lang[_Script][_REGION][_VARIANT][@collation=variant]`. Source of
//! the list: manual, "Collation Locales and Default Parameters", less the orders that the Unicode data
//! bundled here leaves out (`search`, `searchjl`, `big5han`, `gb2312han`).

use icu_collator::CollatorPreferences;
use icu_collator::preferences::CollationType;
use icu_locale_core::LanguageIdentifier;

/// Languages, with script or region where that changes the order. Ascending.
const LOCALES: [&str; 109] = [
    "af",
    "am",
    "ar",
    "as",
    "az",
    "be",
    "bg",
    "bn",
    "bo",
    "bs",
    "bs_Cyrl",
    "ca",
    "chr",
    "cs",
    "cy",
    "da",
    "de",
    "de_AT",
    "dsb",
    "dz",
    "ee",
    "el",
    "en",
    "en_US",
    "en_US_POSIX",
    "eo",
    "es",
    "et",
    "fa",
    "fa_AF",
    "fi",
    "fil",
    "fo",
    "fr",
    "fr_CA",
    "ga",
    "gl",
    "gu",
    "ha",
    "haw",
    "he",
    "hi",
    "hr",
    "hsb",
    "hu",
    "hy",
    "id",
    "ig",
    "is",
    "it",
    "ja",
    "ka",
    "kk",
    "kl",
    "km",
    "kn",
    "ko",
    "kok",
    "ky",
    "lb",
    "lkt",
    "ln",
    "lo",
    "lt",
    "lv",
    "mk",
    "ml",
    "mn",
    "mr",
    "ms",
    "mt",
    "my",
    "nb",
    "ne",
    "nl",
    "nn",
    "om",
    "or",
    "pa",
    "pl",
    "ps",
    "pt",
    "ro",
    "ru",
    "se",
    "si",
    "sk",
    "sl",
    "smn",
    "sq",
    "sr",
    "sr_Latn",
    "sv",
    "sw",
    "ta",
    "te",
    "th",
    "to",
    "tr",
    "ug",
    "uk",
    "ur",
    "vi",
    "wae",
    "yi",
    "yo",
    "zh",
    "zh_Hant",
    "zu",
];

/// Other orders of a language: language, name after `@collation=`.
const VARIANTS: [(&str, &str); 19] = [
    ("ar", "compat"),
    ("bn", "traditional"),
    ("de", "eor"),
    ("de", "phonebook"),
    ("de_AT", "phonebook"),
    ("es", "traditional"),
    ("fi", "traditional"),
    ("ja", "unihan"),
    ("kn", "traditional"),
    ("ko", "unihan"),
    ("ln", "phonetic"),
    ("si", "dictionary"),
    ("vi", "traditional"),
    ("zh", "pinyin"),
    ("zh", "stroke"),
    ("zh", "unihan"),
    ("zh", "zhuyin"),
    ("zh_Hant", "pinyin"),
    ("zh_Hant", "stroke"),
];

/// Languages whose order asks for normalization by default.
const NORMALIZED: [&str; 14] = [
    "as", "bn", "gu", "hi", "kn", "kok", "ml", "mr", "or", "pa", "ta", "te", "th", "vi",
];

/// A locale there is.
pub(super) struct Locale<'a> {
    /// Before `@`.
    base: &'a str,
    /// After `@collation=`.
    variant: Option<&'a str>,
}

impl<'a> Locale<'a> {
    /// Reads MongoDB's spelling; `None` when there is no such locale.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let (base, variant) = match name.split_once('@') {
            Some((base, keyword)) => (base, Some(keyword.strip_prefix("collation=")?)),
            None => (name, None),
        };
        LOCALES.binary_search(&base).ok()?;
        // `standard` is every language's own order.
        let known = variant.is_none_or(|variant| variant == "standard" || VARIANTS.contains(&(base, variant)));
        known.then_some(Self { base, variant })
    }

    /// Accents count from the end of the string unless the specification says otherwise.
    pub(super) fn is_backwards(&self) -> bool {
        self.base == "fr_CA"
    }

    /// `normalization` where it is not given.
    pub(super) fn is_normalized(&self) -> bool {
        NORMALIZED.contains(&self.base)
    }

    /// What the Unicode library calls it. Canadian French is French here: what sets it apart, the
    /// direction of accents, is an option of its own.
    pub(super) fn preferences(&self) -> Option<CollatorPreferences> {
        let base = match self.base {
            "fr_CA" => "fr",
            "en_US_POSIX" => "en-US-posix",
            base => base,
        };
        let language: LanguageIdentifier = base.replace('_', "-").parse().ok()?;
        let mut preferences = CollatorPreferences::from(&icu_locale_core::Locale::from(language));
        preferences.collation_type = match self.variant {
            None | Some("standard") => None,
            Some("compat") => Some(CollationType::Compat),
            Some("dictionary") => Some(CollationType::Dict),
            Some("eor") => Some(CollationType::Eor),
            Some("phonebook") => Some(CollationType::Phonebk),
            Some("phonetic") => Some(CollationType::Phonetic),
            Some("pinyin") => Some(CollationType::Pinyin),
            Some("stroke") => Some(CollationType::Stroke),
            Some("traditional") => Some(CollationType::Trad),
            Some("unihan") => Some(CollationType::Unihan),
            Some("zhuyin") => Some(CollationType::Zhuyin),
            Some(_) => return None,
        };
        Some(preferences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_has_an_order() {
        assert!(LOCALES.is_sorted());
        let variants = VARIANTS
            .iter()
            .map(|(base, variant)| format!("{base}@collation={variant}"));
        for name in LOCALES.iter().map(|s| s.to_string()).chain(variants) {
            let locale = Locale::parse(&name).expect("is listed");
            let preferences = locale.preferences().expect("has a BCP 47 name");
            assert!(
                icu_collator::Collator::try_new(preferences, Default::default()).is_ok(),
                "{name}"
            );
        }
    }

    #[test]
    fn others_are_unknown() {
        for name in [
            "",
            "xx",
            "EN",
            "en-US",
            "en_XX",
            "de@phonebook",
            "de@collation=",
            "en@collation=pinyin",
            "en\0",
        ] {
            assert!(Locale::parse(name).is_none(), "{name:?}");
        }
    }
}
