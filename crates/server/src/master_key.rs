//! The file with the master key of an encrypted data directory: `--encryptionKeyFile`.
//!
//! Source: manual, "Configure Encryption", "Local Key Management": a base64 string of 32 bytes, as `openssl rand -base64 32`
//! writes it; nobody but the owner may read the file.

use crate::key_file;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nestor_storage::MasterKey;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Where the master key is, and where the one that is to replace it is.
#[derive(Clone, Debug)]
pub struct MasterKeyFile {
    path: PathBuf,
    /// The key that the data directory is to have from now on.
    pub replacement: Option<PathBuf>,
}

impl MasterKeyFile {
    /// A file that need not be there yet, and the one that is to replace it, if any.
    pub fn new(path: PathBuf, replacement: Option<PathBuf>) -> Self {
        Self { path, replacement }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the key. An error is a sentence that names the file.
    pub fn key(&self) -> Result<MasterKey, String> {
        read(&self.path)
    }
}

/// Reads a master key. An error is a sentence that names the file.
pub fn read(path: &Path) -> Result<MasterKey, String> {
    let text = Zeroizing::new(key_file::read_private(path, "encryption key file")?);
    parse(&text).ok_or_else(|| {
        let shown = path.display();
        format!("encryption key file {shown} does not hold 32 bytes in base64, as openssl rand -base64 32 writes them")
    })
}

fn parse(text: &str) -> Option<MasterKey> {
    // The longest that can be right; longer text would be decoded in memory that grows.
    let mut bytes = Zeroizing::new([0; 48]);
    let len = STANDARD.decode_slice(text.trim(), &mut bytes[..]).ok()?;
    MasterKey::new(&bytes[..len])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn thirty_two_bytes_and_nothing_else() {
        let key = |len| STANDARD.encode(vec![7; len]);
        assert!(parse(&key(32)).is_some() && parse(&format!(" {}\n", key(32))).is_some());
        for wrong in [
            String::new(),
            key(31),
            key(33),
            key(64),
            "x".repeat(44),
            format!("{}!", key(32)),
        ] {
            assert!(parse(&wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_file_is_the_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("master");
        assert!(read(&path).unwrap_err().contains("cannot read encryption key file"));
        std::fs::write(&path, STANDARD.encode([7; 32])).unwrap();
        for (mode, is_fine) in [(0o644, false), (0o640, false), (0o600, true), (0o400, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), is_fine, "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "a secret that is no key").unwrap();
        let said = read(&path).unwrap_err();
        assert!(
            said.contains("does not hold 32 bytes") && !said.contains("secret"),
            "{said}"
        );
    }
}
