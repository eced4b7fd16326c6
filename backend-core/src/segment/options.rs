//! How segments are encoded.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// How segments are encoded: plain data. Every reader reads what any of these settings wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SegmentOptions {
    /// Raw bytes after which a block ends. Default 64 KiB, 1 KiB to 1 MiB.
    pub block_bytes_target: u32,
    /// Blocks of a region. Default 32, 1 to 1,024.
    pub region_blocks: u32,
    /// Bytes after which a segment ends and the next one begins. Default 32 MiB, 64 KiB to 1 GiB.
    pub segment_bytes_target: u64,
    /// The level of zstd. Default 1, 1 to 22.
    pub compression_level: i32,
    /// Filter bits for a key. Default 10; 0 writes no filters; at most 32.
    pub filter_bits_per_key: u32,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            block_bytes_target: 64 << 10,
            region_blocks: 32,
            segment_bytes_target: 32 << 20,
            compression_level: 1,
            filter_bits_per_key: 10,
        }
    }
}

impl SegmentOptions {
    /// Whether the settings are in their bounds.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] names the setting, its bounds and what it is.
    pub fn validate(&self) -> Result<()> {
        let settings: [(&'static str, i64, i64, i64); 5] = [
            (
                "block_bytes_target",
                i64::from(self.block_bytes_target),
                1 << 10,
                1 << 20,
            ),
            ("region_blocks", i64::from(self.region_blocks), 1, 1_024),
            (
                "segment_bytes_target",
                i64::try_from(self.segment_bytes_target).unwrap_or(i64::MAX),
                64 << 10,
                1 << 30,
            ),
            (
                "compression_level",
                i64::from(self.compression_level),
                1,
                22,
            ),
            (
                "filter_bits_per_key",
                i64::from(self.filter_bits_per_key),
                0,
                32,
            ),
        ];
        for (setting, got, low, high) in settings {
            if !(low..=high).contains(&got) {
                return Err(
                    Error::new(ErrorKind::Invalid, "a segment setting is out of bounds")
                        .with("setting", setting)
                        .expected_got(format_args!("{low} to {high}"), got),
                );
            }
        }
        Ok(())
    }
}
