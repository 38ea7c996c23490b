//! Names in certificates as texts.

use x509_parser::x509::X509Name;

/// A distinguished name as RFC 4514 prints it: the last part first, special characters escaped. MongoDB uses these texts as names of
/// users who log in by certificate.
pub fn distinguished(name: &X509Name<'_>) -> String {
    let mut text = String::new();
    for (at, relative) in name.iter().collect::<Vec<_>>().into_iter().rev().enumerate() {
        if at > 0 {
            text.push(',');
        }
        for (at, attribute) in relative.iter().enumerate() {
            if at > 0 {
                text.push('+');
            }
            let oid = attribute.attr_type().to_id_string();
            text.push_str(short_name(&oid).unwrap_or(&oid));
            text.push('=');
            match attribute.as_str() {
                Ok(value) => escape(value, &mut text),
                // A value that is no text is shown as its bytes.
                Err(_) => {
                    text.push('#');
                    for byte in attribute.as_slice() {
                        text.push_str(&format!("{byte:02x}"));
                    }
                }
            }
        }
    }
    text
}

/// The short names of RFC 4514 and those that OpenSSL, and so MongoDB, adds.
fn short_name(oid: &str) -> Option<&'static str> {
    Some(match oid {
        "2.5.4.3" => "CN",
        "2.5.4.4" => "SN",
        "2.5.4.5" => "serialNumber",
        "2.5.4.6" => "C",
        "2.5.4.7" => "L",
        "2.5.4.8" => "ST",
        "2.5.4.9" => "street",
        "2.5.4.10" => "O",
        "2.5.4.11" => "OU",
        "2.5.4.12" => "title",
        "2.5.4.42" => "GN",
        "0.9.2342.19200300.100.1.1" => "UID",
        "0.9.2342.19200300.100.1.25" => "DC",
        "1.2.840.113549.1.9.1" => "emailAddress",
        _ => return None,
    })
}

fn escape(value: &str, text: &mut String) {
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let is_special = match c {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => true,
            '#' => at == 0,
            ' ' => at == 0 || at == last,
            _ => false,
        };
        match c {
            '\0' => text.push_str("\\00"),
            _ => {
                if is_special {
                    text.push('\\');
                }
                text.push(c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        for (value, expected) in [
            ("plain name", "plain name"),
            (" a, b+c ", "\\ a\\, b\\+c\\ "),
            ("#1#2", "\\#1#2"),
            ("a\\b\"<>;", "a\\\\b\\\"\\<\\>\\;"),
            (" ", "\\ "),
        ] {
            let mut text = String::new();
            escape(value, &mut text);
            assert_eq!(text, expected, "{value:?}");
        }
    }
}
