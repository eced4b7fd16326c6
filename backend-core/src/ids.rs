//! Identifiers that reach stored bytes: newtypes, so that swapping two does not compile.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::NAME_BYTES_MAX;

/// A snapshot's number within its job: grows across epochs, is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotId(pub u64);

impl SnapshotId {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(
            self.0
                .checked_add(1)
                .expect("a job takes fewer than 2^64 snapshots"),
        )
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A coordinator's number within its job: 1, 2, 3, .. without gaps. The highest is the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the restarts of a job within an epoch; acknowledgements of older attempts are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt(pub u64);

/// A task's index among the tasks of its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskIndex(pub u32);

impl fmt::Display for TaskIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 128 random bits that tell two attempts at the same thing apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UniqueId(pub u128);

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A BLAKE3 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// Takes the name as its user chose it.
            ///
            /// # Errors
            /// [`ErrorKind::Invalid`] if it is empty, [`ErrorKind::Limit`] if it is longer than
            /// [`NAME_BYTES_MAX`] bytes.
            pub fn new(name: impl Into<Box<str>>) -> Result<Self> {
                let name = name.into();
                if name.is_empty() {
                    return Err(Error::new(ErrorKind::Invalid, concat!($what, " is not empty")));
                }
                if name.len() > NAME_BYTES_MAX {
                    return Err(Error::new(ErrorKind::Limit, concat!($what, " is too long"))
                        .with("bytes_max", NAME_BYTES_MAX)
                        .with("got", name.len()));
                }
                Ok(Self(name))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// A job's name, written into each of its manifests.
    JobId,
    "a job's name"
);
name_type!(
    /// An operator's id as its user chose it: state finds its operator again by this name.
    OperatorId,
    "an operator's id"
);
