//! Settings of a snapshot store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::IO_THREADS_MAX;

/// How patient a [`crate::store::SnapshotStore`] is with its object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreOptions {
    /// How often a request is tried before its error is given to the caller; at least 1.
    /// Default: 8.
    pub tries_max: u32,
    /// How long one request may take before its outcome counts as unknown. Default: 60,000.
    pub request_ms_max: u64,
    /// The pause before the second try; it doubles for each further one. Default: 20.
    pub backoff_ms_first: u64,
    /// The longest pause between two tries. Default: 2,000.
    pub backoff_ms_max: u64,
    /// Threads for requests; 1 to [`IO_THREADS_MAX`]. Default: 2.
    pub io_threads: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            tries_max: 8,
            request_ms_max: 60_000,
            backoff_ms_first: 20,
            backoff_ms_max: 2_000,
            io_threads: 2,
        }
    }
}

impl StoreOptions {
    /// Whether the settings can be used.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] that names the setting.
    pub fn validate(&self) -> Result<()> {
        let settings = [
            ("tries_max", u64::from(self.tries_max)),
            ("request_ms_max", self.request_ms_max),
            ("io_threads", self.io_threads as u64),
        ];
        if let Some((name, _)) = settings.into_iter().find(|(_, value)| *value == 0) {
            return Err(
                Error::new(ErrorKind::Invalid, "a setting is above 0").with("setting", name)
            );
        }
        if self.io_threads > IO_THREADS_MAX {
            return Err(Error::new(ErrorKind::Invalid, "a setting is out of bounds")
                .with("setting", "io_threads")
                .expected_got(format_args!("1 to {IO_THREADS_MAX}"), self.io_threads));
        }
        Ok(())
    }

    /// The pause after try number `tried`, counted from 1.
    pub(crate) fn backoff(&self, tried: u32) -> Duration {
        let doubled = 1_u64
            .checked_shl(tried.saturating_sub(1))
            .unwrap_or(u64::MAX);
        let pause = self.backoff_ms_first.saturating_mul(doubled);
        Duration::from_millis(pause.min(self.backoff_ms_max))
    }

    pub(crate) fn request_time_max(&self) -> Duration {
        Duration::from_millis(self.request_ms_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_bounds_are_named() {
        let refused = |options: StoreOptions| {
            let e = options.validate().expect_err("it is out of bounds");
            e.fact("setting").map(str::to_owned)
        };
        let defaults = StoreOptions::default();
        assert!(defaults.validate().is_ok());
        let tries = StoreOptions {
            tries_max: 0,
            ..defaults.clone()
        };
        assert_eq!(refused(tries).as_deref(), Some("tries_max"));
        for io_threads in [0, IO_THREADS_MAX + 1, usize::MAX] {
            let threads = StoreOptions {
                io_threads,
                ..defaults.clone()
            };
            assert_eq!(refused(threads).as_deref(), Some("io_threads"));
        }
    }
}
