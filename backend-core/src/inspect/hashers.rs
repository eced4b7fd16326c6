//! Finding a hash function by its id.

use crate::error::{Error, ErrorKind, Result};
use crate::hash::{HashId, KeyHasher};

/// The hash function `id` among Stateline's own and `hashers`.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if it is not there.
pub(super) fn known_hasher(id: HashId, hashers: &[KeyHasher]) -> Result<KeyHasher> {
    let own = [KeyHasher::XXH3_64];
    let mut known = own.iter().chain(hashers);
    let hasher = known.find(|hasher| hasher.id() == id).copied();
    hasher.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "a hash function is not known").with("hash", id)
    })
}
