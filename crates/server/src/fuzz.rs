//! What the fuzz targets of certificates and of the configuration file do with their input, and tests that replay the corpus
//! (`fuzz/corpus/`) the same way, changed byte by byte.

use crate::config;
use crate::tls::certificates::Identity;
use rustls::pki_types::CertificateDer;

/// A certificate in DER: whose it is, or it is refused.
pub fn certificate(bytes: &[u8]) {
    let certificate = CertificateDer::from(bytes);
    if let Ok(identity) = Identity::of(&certificate) {
        assert_eq!(
            Identity::of(&certificate).ok(),
            Some(identity),
            "a certificate is of one subject"
        );
    }
}

/// The text of a configuration file: flags, each of which begins as flags do or is the value of one, or it is refused.
pub fn configuration(text: &str) {
    if let Ok(flags) = config::flags(text, &[]) {
        let first = flags.first();
        assert!(
            first.is_none_or(|flag| flag.starts_with('-')),
            "{flags:?} begins with a value"
        );
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::corpus::corpus;
    use super::*;
    use rustls::pki_types::pem::PemObject as _;
    /// The input, each beginning of it, and what it becomes when its bytes change one by one.
    fn changed(seed: &[u8], mut run: impl FnMut(&[u8])) {
        let mut bytes = seed.to_vec();
        run(&bytes);
        for at in 0..seed.len() {
            run(&seed[..at]);
            for change in [1, 0x10, 0x80, 0xff] {
                bytes[at] ^= change;
                run(&bytes);
                bytes[at] ^= change;
            }
        }
    }

    #[test]
    fn certificates() {
        let mut understood = 0;
        for seed in corpus("certificate") {
            let der = CertificateDer::from_pem_slice(&seed).map_or(seed.clone(), |der| der.to_vec());
            understood += usize::from(Identity::of(&CertificateDer::from(der.as_slice())).is_ok());
            changed(&der, certificate);
        }
        assert!(
            understood >= 3,
            "{understood} certificates of the corpus are understood"
        );
    }

    #[test]
    fn configurations() {
        for seed in corpus("configuration") {
            changed(&seed, |bytes| {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    configuration(text);
                }
            });
        }
    }
}
