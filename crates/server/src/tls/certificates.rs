//! The files of certificates and keys, read and made into a configuration of TLS.

use super::{TlsOptions, name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What connections are made with.
pub struct Certificates {
    /// For the handshake.
    pub config: Arc<ServerConfig>,
    /// Of the server's own certificate.
    pub identity: Identity,
    /// Clients' certificates are verified.
    pub has_authority: bool,
}

impl fmt::Debug for Certificates {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("identity", &self.identity)
            .finish()
    }
}

/// Whose a certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its subject, see [`name::distinguished`].
    pub subject: String,
    /// The end of its life, in milliseconds since the Unix epoch.
    pub not_after_ms: i64,
}

impl Identity {
    /// Of a certificate in DER.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|e| e.to_string())?;
        Ok(Self {
            subject: name::distinguished(parsed.subject()),
            not_after_ms: parsed.validity().not_after.timestamp().saturating_mul(1000),
        })
    }
}

impl Certificates {
    /// Reads the files. An error names the file.
    pub fn load(options: &TlsOptions) -> Result<Self, String> {
        let path = &options.certificate_key_file;
        let bytes = read(path)?;
        let chain: Vec<CertificateDer<'static>> = sections(&bytes, path)?;
        let own = chain
            .first()
            .ok_or_else(|| format!("{} has no certificate", path.display()))?;
        let identity = Identity::of(own).map_err(|e| format!("the certificate in {}: {e}", path.display()))?;
        let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| no_key(&bytes, &error, path))?;

        let provider = Arc::new(provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions(options))
            .map_err(|e| format!("TLS: {e}"))?;
        let builder = match &options.ca_file {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in sections::<CertificateDer<'static>>(&read(path)?, path)? {
                    roots
                        .add(authority)
                        .map_err(|e| format!("an authority in {}: {e}", path.display()))?;
                }
                let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                if let Some(path) = &options.crl_file {
                    let lists: Vec<CertificateRevocationListDer<'static>> = sections(&read(path)?, path)?;
                    if lists.is_empty() {
                        return Err(format!("{} has no list of revoked certificates", path.display()));
                    }
                    verifier = verifier.with_crls(lists).only_check_end_entity_revocation();
                }
                if options.allow_without_certificates {
                    verifier = verifier.allow_unauthenticated();
                }
                let verifier = verifier.build().map_err(|e| format!("{}: {e}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|e| format!("{}: {e}", path.display()))?;
        config.ignore_client_order = true;
        Ok(Self {
            config: Arc::new(config),
            identity,
            has_authority: options.ca_file.is_some(),
        })
    }
}

/// The cryptography, with AES-128-GCM before other ciphers: most of what large replies cost beyond plain ones is the cipher, and with keys of 256 bits,
/// which clients list first, it does two fifths more rounds. Processors without AES instructions are not what a database runs on, so
/// ChaCha20 comes last.
fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    let preferred = ["AES_128_GCM", "AES_256_GCM"];
    // A stable sort: among the others the order remains.
    provider.cipher_suites.sort_by_key(|suite| {
        let name = format!("{:?}", suite.suite());
        preferred
            .iter()
            .position(|part| name.contains(part))
            .unwrap_or(preferred.len())
    });
    provider
}

fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let all = [
        (&rustls::version::TLS13, options.without_1_3),
        (&rustls::version::TLS12, options.without_1_2),
    ];
    all.into_iter()
        .filter(|(_, without)| !without)
        .map(|(version, _)| version)
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// All sections of one kind.
fn sections<T: pem::PemObject>(bytes: &[u8], path: &Path) -> Result<Vec<T>, String> {
    T::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// Why no key was found; the commonest reason has a message of its own.
fn no_key(bytes: &[u8], error: &pem::Error, path: &Path) -> String {
    let is_encrypted = String::from_utf8_lossy(bytes)
        .lines()
        .any(|line| line.contains("BEGIN ENCRYPTED PRIVATE KEY") || line.starts_with("Proc-Type: 4,ENCRYPTED"));
    match is_encrypted {
        true => format!(
            "the private key in {} is encrypted, which is not supported",
            path.display()
        ),
        false => format!("no private key in {}: {error}", path.display()),
    }
}
