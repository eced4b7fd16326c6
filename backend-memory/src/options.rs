//! Settings of the memory backend.

use backend_core::chain::ChainPolicy;
use backend_core::segment::SegmentOptions;
use backend_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Settings of a [`crate::MemoryBackend`]: plain data, checked before any I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// How segments are encoded.
    pub segment: SegmentOptions,
    /// How long chains of increments may grow.
    pub chain: ChainPolicy,
    /// A task's whole state up to this size lies in the manifest instead of an object of its
    /// own. Default 8 KiB, at most 8 KiB.
    pub inline_bytes_max: u64,
    /// Above this, writes answer [`backend_core::Pressure::Stop`]; above nine tenths of it,
    /// [`backend_core::Pressure::Soon`]. Default none.
    pub memory_bytes_max: Option<u64>,
    /// Threads for uploads, restores and merges. Default 2, 1 to 1,024.
    pub io_threads: usize,
    /// Whether increments are taken. If not, every snapshot is full and no deletion is
    /// remembered. Default true.
    pub incremental: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            segment: SegmentOptions::default(),
            chain: ChainPolicy::default(),
            inline_bytes_max: backend_core::limits::INLINE_BYTES_MAX,
            memory_bytes_max: None,
            io_threads: 2,
            incremental: true,
        }
    }
}

impl MemoryOptions {
    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] names the setting, what it may be and what it is.
    pub fn validate(&self) -> Result<()> {
        let bad = |setting: &'static str, expected: String, got: String| {
            Error::new(
                ErrorKind::Invalid,
                "a setting of the memory backend is out of bounds",
            )
            .with("setting", setting)
            .expected_got(expected, got)
        };
        let inline_max = backend_core::limits::INLINE_BYTES_MAX;
        if self.inline_bytes_max > inline_max {
            let got = self.inline_bytes_max.to_string();
            return Err(bad(
                "inline_bytes_max",
                format!("at most {inline_max}"),
                got,
            ));
        }
        let threads_max = backend_core::limits::IO_THREADS_MAX;
        if !(1..=threads_max).contains(&self.io_threads) {
            let got = self.io_threads.to_string();
            return Err(bad("io_threads", format!("1 to {threads_max}"), got));
        }
        if self.memory_bytes_max == Some(0) {
            return Err(bad(
                "memory_bytes_max",
                "above 0".to_owned(),
                "0".to_owned(),
            ));
        }
        self.chain.validate()?;
        self.segment.validate()
    }
}
