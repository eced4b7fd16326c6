//! What a store refuses until somebody puts it right: a full disk, missing permissions.

use std::error::Error as StdError;
use std::io;

use crate::error::{Error, ErrorKind};
use crate::names::ObjectName;

/// Whether asking again is of no use by itself.
pub(super) fn is_refusal(e: &object_store::Error) -> bool {
    if matches!(
        e,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }
    ) {
        return true;
    }
    let mut cause: Option<&(dyn StdError + 'static)> = Some(e);
    while let Some(e) = cause {
        if let Some(e) = e.downcast_ref::<io::Error>() {
            return matches!(
                e.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::ReadOnlyFilesystem
            );
        }
        cause = e.source();
    }
    false
}

pub(super) fn refused(name: &ObjectName, e: object_store::Error) -> Error {
    Error::new(
        ErrorKind::Refused,
        "the store is full, cannot be written to, or denies access: put that right, then call again",
    )
    .with("object", name)
    .because(e)
}
