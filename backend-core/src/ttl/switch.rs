//! A state whose time to live is switched on or off when it is registered after a restore.

use crate::descriptor::{StateDescriptor, StateUid};
use crate::error::Result;
use crate::generation::Generation;
use crate::table::{FrozenTable, SortedMode, Table};
use crate::ttl::seal::{open, seal};

/// What becomes of the entries that were restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// They stay as they are.
    Nothing,
    /// They are opened, and permanent from now on.
    Off,
    /// They are sealed with this expiry.
    On(Option<u64>),
}

impl Switch {
    /// From how a state was stored to how it is `wanted` at `now_ms`.
    pub fn between(stored: &StateDescriptor, wanted: &StateDescriptor, now_ms: u64) -> Self {
        match (stored.ttl, wanted.ttl) {
            (Some(_), Some(_)) | (None, None) => Self::Nothing,
            (Some(_), None) => Self::Off,
            (None, Some(ttl)) => {
                let expiry = now_ms.checked_add(ttl.ttl_ms).filter(|ms| *ms < u64::MAX);
                Self::On(expiry.filter(|_| ttl.covers_old))
            }
        }
    }

    /// Whether entries that nobody writes are to be stored otherwise than they are: the segments
    /// that hold them say something else, so increments must not refer to those.
    pub fn needs_full(self) -> bool {
        match self {
            Self::Nothing | Self::On(None) => false,
            Self::Off | Self::On(Some(_)) => true,
        }
    }
}

/// Fills `table`, which is empty, with what was restored, as of generation `stamp`.
///
/// # Errors
/// None, if `restored` is a table of the same range.
pub fn reseal(
    restored: FrozenTable,
    state: StateUid,
    switch: Switch,
    stamp: Generation,
    table: &mut Table,
) -> Result<()> {
    let mut buffer = Vec::new();
    restored.into_sorted(
        state,
        Generation::ZERO,
        SortedMode::Full,
        &mut |entry, _| {
            let mut entry = *entry;
            match switch {
                Switch::Nothing => {}
                Switch::Off => entry.value = open(entry.value).1,
                Switch::On(expires_ms) => {
                    buffer.clear();
                    seal(expires_ms, entry.value, &mut buffer);
                    entry.value = &buffer;
                }
            }
            table.load(&entry, stamp)
        },
    )
}
