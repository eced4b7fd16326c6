//! The states of an operator, by the ids that entries carry.

use std::collections::HashMap;

use crate::descriptor::{SchemaVersion, StateDescriptor, StateKind, StateUid};
use crate::entry::EntryKey;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{OperatorMeta, StateMeta};
use crate::segment::RawEntry;
use crate::timer::Timer;

/// A list's sub-key: generation and index.
const LIST_SUB_KEY_BYTES: usize = 8;

/// The states of an operator.
#[derive(Clone, Debug)]
pub(super) struct States {
    by_uid: HashMap<StateUid, StateMeta>,
}

impl States {
    pub(super) fn of(operator: &OperatorMeta) -> Self {
        let states = operator.states.iter();
        Self {
            by_uid: states
                .map(|state| (state.descriptor.uid(), state.clone()))
                .collect(),
        }
    }

    fn get(&self, uid: StateUid) -> Option<&StateMeta> {
        self.by_uid.get(&uid)
    }

    /// The state of a put, and the version of its value's schema.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the snapshot knows no such state or version, or a state of that
    /// kind has no such entries.
    pub(super) fn check(
        &self,
        key: &EntryKey<'_>,
        raw: &RawEntry<'_>,
    ) -> Result<(&StateDescriptor, SchemaVersion)> {
        let state = self.get(key.state).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "a segment holds a state that its snapshot does not know",
            )
            .with("state_uid", format_args!("{:#010x}", key.state.0))
        })?;
        let descriptor = &state.descriptor;
        let fits = match descriptor.kind {
            StateKind::Value => key.sub_key.is_empty(),
            StateKind::List => key.sub_key.len() == LIST_SUB_KEY_BYTES,
            StateKind::Map => true,
            StateKind::Timers => Timer::of_entry(key).is_some() && raw.value.is_empty(),
        };
        if !fits {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "an entry has a sub-key that its state cannot have",
            )
            .with("state", &descriptor.name)
            .with("kind", descriptor.kind)
            .with("key", raw.key.escape_ascii()));
        }
        let version = version_of(state, raw.schema.0)?;
        Ok((descriptor, version))
    }
}

/// The schema version that an entry's tag stands for.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if the state has no version of that tag.
pub(super) fn version_of(state: &StateMeta, tag: u8) -> Result<SchemaVersion> {
    let version = state.versions.get(usize::from(tag)).copied();
    version.ok_or_else(|| {
        Error::new(
            ErrorKind::Corrupt,
            "an entry is of a schema version that its snapshot does not know",
        )
        .with("state", &state.descriptor.name)
        .expected_got(format_args!("a tag below {}", state.versions.len()), tag)
    })
}
