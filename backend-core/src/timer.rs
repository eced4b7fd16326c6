//! Timers as bytes: where one stands in the order, and batches of them.

use crate::entry::EntryKey;
use crate::scan::EntryBatch;

/// The bytes of a time in the order of times.
pub const TIME_BYTES: usize = 8;

/// A time's bytes, which sort as the times do, those before 1970 first.
#[inline]
pub fn time_bytes(time: i64) -> [u8; TIME_BYTES] {
    (time.cast_unsigned() ^ 1 << 63).to_be_bytes()
}

/// The time of [`time_bytes`].
#[inline]
pub fn time_of(bytes: [u8; TIME_BYTES]) -> i64 {
    (u64::from_be_bytes(bytes) ^ 1 << 63).cast_signed()
}

/// One timer: it stands in the order of time, length of the key, key, namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer<'a> {
    /// When it is due, in the job's own unit, for example milliseconds of event time.
    pub time: i64,
    /// The encoded key.
    pub key: &'a [u8],
    /// The encoded namespace; empty if there is none.
    pub namespace: &'a [u8],
}

impl<'a> Timer<'a> {
    /// The timer that an entry of a timer state stands for; `None` if it stands for none.
    pub fn of_entry(key: &EntryKey<'a>) -> Option<Self> {
        let time = key.key.try_into().ok()?;
        Some(Self {
            time: time_of(time),
            key: key.namespace,
            namespace: key.sub_key,
        })
    }
}

/// A batch of timers in order, packed; reuse it to save allocations.
#[derive(Debug)]
pub struct TimerBatch {
    times: Vec<i64>,
    pairs: EntryBatch,
}

impl TimerBatch {
    /// A batch of at most `timers_max` timers.
    ///
    /// # Panics
    /// If `timers_max` is 0.
    pub fn new(timers_max: usize) -> Self {
        Self {
            times: Vec::new(),
            pairs: EntryBatch::new(timers_max, usize::MAX),
        }
    }

    /// Forgets all timers and keeps the memory.
    pub fn clear(&mut self) {
        self.times.clear();
        self.pairs.clear();
    }

    /// Adds a timer and says whether there is room for another.
    pub fn push(&mut self, timer: &Timer<'_>) -> bool {
        self.times.push(timer.time);
        self.pairs.push(timer.key, timer.namespace)
    }

    /// Whether the batch takes no more.
    pub fn is_full(&self) -> bool {
        self.pairs.is_full()
    }

    /// Says that nothing that was asked for lies behind this batch.
    pub fn set_complete(&mut self) {
        self.pairs.set_complete();
    }

    /// Whether nothing that was asked for lies behind this batch.
    pub fn is_complete(&self) -> bool {
        self.pairs.is_complete()
    }

    /// The number of timers.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The timers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Timer<'_>> + DoubleEndedIterator {
        let timers = self.times.iter().zip(self.pairs.iter());
        timers.map(|(time, (key, namespace))| Timer {
            time: *time,
            key,
            namespace,
        })
    }
}

impl Default for TimerBatch {
    /// 1,024 timers.
    fn default() -> Self {
        Self::new(1_024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_times_sort_as_times_do() {
        let times = [i64::MIN, -5, -1, 0, 1, 255, 256, i64::MAX];
        assert!(times.is_sorted_by_key(|time| time_bytes(*time)));
        for time in times {
            assert_eq!(time_of(time_bytes(time)), time);
        }
    }
}
