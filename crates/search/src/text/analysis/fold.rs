//! Letters without their marks.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// A text without the marks of its letters, and with plain letters for those that have no others in them.
pub(in crate::text) fn unmarked(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let apart = const { DecomposingNormalizerBorrowed::new_nfkd() }.normalize(text);
    let mut out = String::with_capacity(text.len());
    for c in apart.chars() {
        match c {
            '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' => {}
            'ß' => out.push_str("ss"),
            'ẞ' => out.push_str("SS"),
            'æ' => out.push_str("ae"),
            'Æ' => out.push_str("AE"),
            'œ' => out.push_str("oe"),
            'Œ' => out.push_str("OE"),
            'þ' => out.push_str("th"),
            'Þ' => out.push_str("TH"),
            'ø' => out.push('o'),
            'Ø' => out.push('O'),
            'ð' | 'đ' => out.push('d'),
            'Ð' | 'Đ' => out.push('D'),
            'ł' => out.push('l'),
            'Ł' => out.push('L'),
            'ħ' => out.push('h'),
            'Ħ' => out.push('H'),
            'ı' => out.push('i'),
            '‘' | '’' | '‚' | '‛' => out.push('\''),
            '“' | '”' | '„' | '‟' => out.push('"'),
            '‐'..='―' => out.push('-'),
            c => out.push(c),
        }
    }
    Some(out)
}
