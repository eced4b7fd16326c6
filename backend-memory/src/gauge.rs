//! How full the memory is.

use backend_core::Pressure;

/// Writes between two looks at the memory that is used.
const WRITES_PER_MEMORY_CHECK: u32 = 1_024;

/// Watches the memory in use without adding it up at every write.
#[derive(Debug)]
pub(crate) struct MemoryGauge {
    bytes_max: Option<u64>,
    writes_left: u32,
    last: Pressure,
}

impl MemoryGauge {
    pub(crate) fn new(bytes_max: Option<u64>) -> Self {
        Self {
            bytes_max,
            writes_left: WRITES_PER_MEMORY_CHECK,
            last: Pressure::None,
        }
    }

    #[inline]
    pub(crate) fn after_write(&mut self, used: impl FnOnce() -> u64) -> Pressure {
        if self.bytes_max.is_none() {
            return Pressure::None;
        }
        self.writes_left -= 1;
        if self.writes_left == 0 {
            self.check(used());
        }
        self.last
    }

    pub(crate) fn check(&mut self, used: u64) -> Pressure {
        self.writes_left = WRITES_PER_MEMORY_CHECK;
        self.last = match self.bytes_max {
            Some(max) if used >= max => Pressure::Stop,
            Some(max) if used >= max / 10 * 9 => Pressure::Soon,
            _ => Pressure::None,
        };
        self.last
    }
}
