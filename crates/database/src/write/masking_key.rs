//! The key of masked values, as it is made and kept.

use super::Progress;
use super::replace::replace_by_id;
use crate::login::secret_bytes;
use crate::statement::Statement;
use crate::users::{MASKING_KEY_ID, masking_key_namespace};
use nestor_model::{Binary, Result, Value, bail, doc};
use nestor_query::masking::Key;

impl Statement<'_> {
    /// Makes the key of hashes before the first policy is made, and keeps it.
    ///
    /// Errors: 263 within a transaction; those of writing.
    pub fn keep_masking_key(&self, progress: &mut Progress) -> Result<()> {
        if self.terms.in_transaction {
            bail!(
                OperationNotSupportedInTransaction,
                "a masking policy cannot be made within a transaction"
            );
        }
        let users = &self.database.users;
        let _alone = users.making_key();
        if users.masking_key().get().is_some() {
            return Ok(());
        }
        let key: Key = secret_bytes()?;
        let bytes = Value::Binary(Binary {
            subtype: 0,
            bytes: key.as_slice().into(),
        });
        let stored = doc! { "_id": MASKING_KEY_ID, "key": bytes };
        replace_by_id(self, &masking_key_namespace(), &stored, progress)?;
        users.masking_key().get_or_init(|| key);
        Ok(())
    }
}
