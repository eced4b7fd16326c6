//! A timer as one string of bytes that sorts as timers do.

use crate::timer::{TIME_BYTES, Timer, time_bytes, time_of};

/// The bytes of a key's length: keys have at most 64 KiB.
const LENGTH_BYTES: usize = 3;

/// Writes `time | length of the key, big-endian | key | namespace` over `out`.
pub(super) fn encode(timer: &Timer<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&time_bytes(timer.time));
    let length = (timer.key.len() as u32).to_be_bytes();
    out.extend_from_slice(&length[length.len() - LENGTH_BYTES..]);
    out.extend_from_slice(timer.key);
    out.extend_from_slice(timer.namespace);
}

/// The timer of [`encode`].
pub(super) fn decode(bytes: &[u8]) -> Timer<'_> {
    const OURS: &str = "the tree holds what was encoded here";
    let (time, rest) = bytes.split_first_chunk::<TIME_BYTES>().expect(OURS);
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>().expect(OURS);
    let length = u32::from_be_bytes([0, length[0], length[1], length[2]]);
    let (key, namespace) = rest.split_at(length as usize);
    Timer {
        time: time_of(*time),
        key,
        namespace,
    }
}
