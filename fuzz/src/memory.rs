//! How much memory a decoder takes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What is measured is the memory of the process.
static MEASURING: Mutex<()> = Mutex::new(());

/// Keeps other threads from measuring.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What any decoder may take besides what its input justifies: errors with their facts, empty
/// tables, a task of the runtime.
pub(crate) const FREE_BYTES: usize = 64 << 10;

/// What `work` gives. The caller is [`alone`].
///
/// # Panics
/// If at some moment `work` held more than `bytes_max` and [`FREE_BYTES`].
pub(crate) fn bounded<T>(what: &str, bytes_max: usize, work: impl FnOnce() -> T) -> T {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let result = work();
    let held = ALLOCATOR.peak_usage().saturating_sub(before);
    let bytes_max = bytes_max + FREE_BYTES;
    assert!(
        held <= bytes_max,
        "{what} took {held} bytes of memory, at most {bytes_max} are justified"
    );
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "took")]
    fn memory_beyond_the_bound_is_noticed() {
        let _alone = alone();
        bounded("a list", 1_000, || Vec::<u8>::with_capacity(1 << 20));
    }
}
