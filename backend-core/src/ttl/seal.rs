//! A value with its expiry in front, as stores hold it in memory.

use crate::entry::{Entry, Op};

/// The bytes in front of a sealed value: its expiry, little-endian, in milliseconds since 1970;
/// all ones if it never expires.
pub const SEAL_BYTES: usize = 8;

const NEVER: u64 = u64::MAX;

/// Appends `value`, sealed, to `out`.
#[inline]
pub fn seal(expires_ms: Option<u64>, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&expires_ms.unwrap_or(NEVER).to_le_bytes());
    out.extend_from_slice(value);
}

/// The expiry and the value of a sealed value.
///
/// # Panics
/// If it was not sealed: it is shorter than [`SEAL_BYTES`].
#[inline]
pub fn open(sealed: &[u8]) -> (Option<u64>, &[u8]) {
    let (expiry, value) = sealed
        .split_first_chunk::<SEAL_BYTES>()
        .expect("values of a state with a time to live are sealed");
    let expiry = u64::from_le_bytes(*expiry);
    ((expiry != NEVER).then_some(expiry), value)
}

/// Whether a sealed value has expired at `now_ms`.
#[inline]
pub fn is_expired(sealed: &[u8], now_ms: u64) -> bool {
    open(sealed)
        .0
        .is_some_and(|expires_ms| expires_ms <= now_ms)
}

/// What a snapshot at `clock_ms` stores of an entry whose value is sealed: an expired one is a
/// deletion.
pub fn stored<'e>(sealed: &Entry<'e>, clock_ms: u64) -> Entry<'e> {
    if sealed.op != Op::Put {
        return *sealed;
    }
    if is_expired(sealed.value, clock_ms) {
        return Entry::delete(sealed.key);
    }
    let (expires_ms, value) = open(sealed.value);
    Entry {
        expires_ms,
        value,
        ..*sealed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::StateUid;
    use crate::entry::EntryKey;

    #[test]
    fn sealed_values_open_to_what_they_were() {
        for expires_ms in [None, Some(0), Some(7), Some(u64::MAX - 1)] {
            for value in [&b""[..], b"value"] {
                let mut sealed = Vec::new();
                seal(expires_ms, value, &mut sealed);
                assert_eq!(open(&sealed), (expires_ms, value));
                assert_eq!(sealed.len(), SEAL_BYTES + value.len());
            }
        }
    }

    #[test]
    fn snapshot_stores_what_lives_and_deletes_what_does_not() {
        let key = EntryKey {
            state: StateUid(1),
            shard: 2,
            key: b"key",
            namespace: b"",
            sub_key: b"sub",
        };
        let mut sealed = Vec::new();
        seal(Some(100), b"value", &mut sealed);
        let put = Entry::put(key, &sealed);
        let live = stored(&put, 99);
        assert_eq!(
            (live.op, live.expires_ms, live.value),
            (Op::Put, Some(100), &b"value"[..])
        );
        assert_eq!(stored(&put, 100), Entry::delete(key));
        assert_eq!(stored(&Entry::delete(key), 0), Entry::delete(key));
    }
}
