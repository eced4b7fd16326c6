//! The namespaces that are merged into another one.

use crate::error::{Error, ErrorKind, Result};
use crate::key::StateKey;

/// The sources of a merge, each once and without the target.
///
/// # Errors
/// [`ErrorKind::Invalid`] if one is of another key: its task may be another one.
pub(super) fn distinct_sources<'a>(
    target: &StateKey,
    sources: &'a [StateKey],
) -> Result<Vec<&'a StateKey>> {
    let mut distinct: Vec<&StateKey> = Vec::with_capacity(sources.len());
    for source in sources {
        if source.key() != target.key() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "namespaces of two keys cannot be merged",
            )
            .expected_got(target.key().escape_ascii(), source.key().escape_ascii()));
        }
        if source != target && !distinct.contains(&source) {
            distinct.push(source);
        }
    }
    Ok(distinct)
}
