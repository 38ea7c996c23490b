//! The order of a language with accents counted from the end of the string.
//!
//! `icu_collator` has that for Canadian French alone, as a property of its data, not as an option. So this
//! hands out the library's own data with that one property added.

use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadataV1, CollationReorderingV1, CollationRootV1,
    CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_normalizer::provider::{NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::prelude::{DataError, DataProvider, DataRequest, DataResponse};

/// The bundled data, accents counting from the end.
pub(super) struct Backwards;

/// The bit of `CollationMetadata::bits` that Canadian French has set.
const BACKWARD_SECOND_LEVEL: u32 = 1 << 7;

impl DataProvider<CollationMetadataV1> for Backwards {
    fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<CollationMetadataV1>, DataError> {
        let mut response = DataProvider::<CollationMetadataV1>::load(&Baked, request)?;
        response
            .payload
            .with_mut(|metadata| metadata.bits |= BACKWARD_SECOND_LEVEL);
        Ok(response)
    }
}

/// Hands the library's data through.
macro_rules! unchanged {
    ($baked:expr; $($marker:ident),*) => {$(
        impl DataProvider<$marker> for Backwards {
            fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                $baked.load(request)
            }
        }
    )*};
}

unchanged!(Baked; CollationDiacriticsV1, CollationJamoV1, CollationReorderingV1, CollationRootV1);
unchanged!(Baked; CollationSpecialPrimariesV1, CollationTailoringV1);
unchanged!(icu_normalizer::provider::Baked; NormalizerNfdDataV1, NormalizerNfdTablesV1);
