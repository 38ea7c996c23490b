//! A store of S3's protocol whose conflicts are sent again.
//!
//! S3 answers a create that has a condition with 412 (`PreconditionFailed`) if the object is there, and with 409
//! (`ConditionalRequestConflict`) if another request for it is under way: nothing is known then, and the client is to send it again. `object_store` tells
//! both as [`Error::AlreadyExists`]. Whoever takes the second for the first is shut out by nobody, or believes that somebody wrote a file of the log that is not
//! there, goes on behind it, and leaves a gap that no writer opens the log with any more.

use slatedb::bytes::Bytes;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// How often a create is sent that meets conflicts, and how long it waits before.
const TRIES: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(50);

type BoxStream<T> = futures_core::stream::BoxStream<'static, T>;

/// The store below, without conflicts.
#[derive(Debug)]
pub(crate) struct Conflicts<S>(pub(crate) S);

impl<S: ObjectStore> fmt::Display for Conflicts<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Whether the answer says nothing of the object. Of one that is there it has the answer with which the condition was refused.
fn is_conflict(error: &Error) -> bool {
    let Error::AlreadyExists { source, .. } = error else {
        return false;
    };
    !matches!(
        source.downcast_ref::<Error>(),
        Some(Error::Precondition { .. } | Error::NotModified { .. })
    )
}

#[async_trait::async_trait]
impl<S: ObjectStore> ObjectStore for Conflicts<S> {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let mut tries = 1;
        loop {
            let conflict = match self.0.put_opts(location, payload.clone(), opts.clone()).await {
                Err(error) if is_conflict(&error) => error,
                result => return result,
            };
            if tries == TRIES {
                // Like any request that came to nothing: whoever sent it may do so again.
                return Err(Error::Generic {
                    store: "S3",
                    source: Box::new(conflict),
                });
            }
            tokio::time::sleep(BETWEEN * tries).await;
            tries += 1;
        }
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<Result<Path>>) -> BoxStream<Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<Result<ObjectMeta>> {
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.0.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_no_conflict() {
        let is_there = |source: Box<dyn std::error::Error + Send + Sync>| Error::AlreadyExists {
            path: "log/1".into(),
            source,
        };
        let refused = |path: &str| Error::Precondition {
            path: path.into(),
            source: "412".into(),
        };
        assert!(!is_conflict(&is_there(Box::new(refused("log/1")))));
        assert!(is_conflict(&is_there("409 Conflict".into())));
        assert!(!is_conflict(&refused("log/1")));
    }
}
