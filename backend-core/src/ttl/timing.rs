//! When the entries of one state expire.

use crate::descriptor::TimeToLive;
use crate::ttl::seal::{open, seal};

/// The time to live of a state, applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing(pub(super) TimeToLive);

/// What to do with a sealed value that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Show it.
    Live,
    /// Show it, and store it with a later expiry.
    Refresh,
    /// Remove it; show it this once if the state returns what has expired.
    Expired,
}

impl Timing {
    /// When something that is written at `now_ms` expires.
    pub(super) fn expiry(self, now_ms: u64) -> Option<u64> {
        // The largest number is that of entries which never expire.
        now_ms
            .checked_add(self.0.ttl_ms)
            .filter(|ms| *ms < u64::MAX)
    }

    /// Appends `value`, written at `now_ms`, to `out`.
    pub(super) fn seal(self, value: &[u8], now_ms: u64, out: &mut Vec<u8>) {
        seal(self.expiry(now_ms), value, out);
    }

    /// What a read at `now_ms` does with a sealed value.
    pub(super) fn judge(self, sealed: &[u8], now_ms: u64) -> Verdict {
        let (expires_ms, _) = open(sealed);
        if expires_ms.is_some_and(|ms| ms <= now_ms) {
            return Verdict::Expired;
        }
        if !self.0.refresh_on_read {
            return Verdict::Live;
        }
        let number = |expires_ms: Option<u64>| expires_ms.unwrap_or(u64::MAX);
        let moved_ms = number(self.expiry(now_ms)).abs_diff(number(expires_ms));
        if moved_ms >= self.0.refresh_ms_min.max(1) {
            Verdict::Refresh
        } else {
            Verdict::Live
        }
    }

    /// Whether a value of this verdict is shown.
    pub(super) fn shows(self, verdict: Verdict) -> bool {
        verdict != Verdict::Expired || self.0.returns_expired
    }
}
