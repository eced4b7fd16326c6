//! Clocks, resident memory, and medians.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Where time is read from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// Time on the wall.
    Wall,
    /// CPU time of this thread.
    ThreadCpu,
    /// CPU time of all threads of this process.
    ProcessCpu,
}

impl Clock {
    /// Time since a fixed point.
    pub(crate) fn now(self) -> Duration {
        let id = match self {
            Self::Wall => ClockId::Monotonic,
            Self::ThreadCpu => ClockId::ThreadCPUTime,
            Self::ProcessCpu => ClockId::ProcessCPUTime,
        };
        let time = clock_gettime(id);
        let seconds = u64::try_from(time.tv_sec).expect("clocks start at 0");
        let nanos = u32::try_from(time.tv_nsec).expect("nanoseconds are below 10^9");
        Duration::new(seconds, nanos)
    }

    /// How long `work` takes, and what it gives.
    pub(crate) fn time<T>(self, work: impl FnOnce() -> T) -> (Duration, T) {
        let started = self.now();
        let result = work();
        (self.now().saturating_sub(started), result)
    }
}

/// Bytes of this process that are in memory, as Linux counts pages.
pub(crate) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The median of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    assert!(!figures.is_empty(), "a median needs a figure");
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Nanoseconds an operation.
pub(crate) fn nanos_each(time: Duration, operations: usize) -> f64 {
    time.as_nanos() as f64 / operations as f64
}

/// SplitMix64: the same numbers at every run.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}
