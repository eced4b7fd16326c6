//! Time and chance, passed in so that tests own them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Where time and randomness come from.
///
/// No rule of the store protocol rests on the clock; it stamps creation times, drives time to
/// live and measures pauses.
pub trait Environment: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> u64;

    /// Time since an arbitrary fixed point; never goes back.
    fn monotonic(&self) -> Duration;

    /// 128 fresh random bits. Two calls anywhere must not agree.
    fn unique(&self) -> u128;
}

/// A shared [`Environment`].
pub type SharedEnvironment = Arc<dyn Environment>;

/// The machine's clock and random source.
#[derive(Debug)]
pub struct SystemEnvironment {
    started: Instant,
}

impl SystemEnvironment {
    /// The system's environment, ready to share.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub fn shared() -> SharedEnvironment {
        Arc::new(Self {
            started: Instant::now(),
        })
    }
}

impl Environment for SystemEnvironment {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn unique(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        u128::from_le_bytes(bytes)
    }
}

/// An environment for tests: time stands until moved, and randomness follows a seed.
#[derive(Debug)]
pub struct ManualEnvironment {
    state: Mutex<(u64, u64)>,
}

impl ManualEnvironment {
    /// Starts at `now_ms` with random numbers from `seed`.
    pub fn new(now_ms: u64, seed: u64) -> Self {
        Self {
            state: Mutex::new((now_ms, seed)),
        }
    }

    /// Sets the time, forwards or back.
    pub fn set_ms(&self, now_ms: u64) {
        self.state.lock().0 = now_ms;
    }
}

impl Environment for ManualEnvironment {
    fn now_ms(&self) -> u64 {
        self.state.lock().0
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.state.lock().0)
    }

    fn unique(&self) -> u128 {
        let mut state = self.state.lock();
        let mut half = || {
            // SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
            state.1 = state.1.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state.1;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            u128::from(z ^ (z >> 31))
        };
        let high = half();
        high << 64 | half()
    }
}
