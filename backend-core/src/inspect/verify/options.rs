//! What is verified, and how.

use crate::error::{Error, ErrorKind, Result};
use crate::hash::{HashId, KeyHasher};
use crate::inspect::hashers::known_hasher;
use crate::manifest::Position;

/// What is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every snapshot that is not condemned, and what else lies in the job's directory.
    Store,
    /// One snapshot.
    Snapshot(Position),
}

/// How a verification goes about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Objects that are read at a time; each takes the memory of one region. At least 1.
    /// Default: 4.
    pub objects_at_once: usize,
    /// Faults, and orphans, that are kept with all they say; others are counted only.
    /// Default: 1,000.
    pub faults_max: usize,
    /// Whether the live entries of each whole snapshot are counted, and its entries held against
    /// the states that it knows. It reads the segments of every snapshot once more, so of a store
    /// with many snapshots of large state it takes many times as long as the rest.
    /// Default: true.
    pub counts_live: bool,
    /// The job's own hash functions, if it has any. Where one is not known, keys are not held
    /// against their shards, and live entries are not counted. Default: none.
    pub hashers: Vec<KeyHasher>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            objects_at_once: 4,
            faults_max: 1_000,
            counts_live: true,
            hashers: Vec::new(),
        }
    }
}

impl VerifyOptions {
    /// Whether the settings can be used.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] that names the setting.
    pub fn validate(&self) -> Result<()> {
        if self.objects_at_once > 0 {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Invalid, "a setting is above 0")
            .with("setting", "objects_at_once"))
    }

    pub(super) fn hasher(&self, id: HashId) -> Option<KeyHasher> {
        known_hasher(id, &self.hashers).ok()
    }
}
