//! Entry keys as bytes whose order, byte by byte, is the order of entries.
//!
//! ```text
//! state u32, big-endian | shard u8 | length | key | length | namespace | sub-key
//! ```
//!
//! A length below 248 is one byte; a longer one is 247 plus the number of its bytes, then those
//! bytes, big-endian, without leading zeros. Shorter lengths sort first.

use crate::descriptor::StateUid;
use crate::entry::EntryKey;
use crate::limits::{KEY_BYTES_MAX, NAMESPACE_BYTES_MAX, SUB_KEY_BYTES_MAX};

/// The lengths that are one byte lie below.
const LONG: u8 = 248;

/// The longest encoded entry key.
pub(crate) const ENTRY_KEY_BYTES_MAX: usize =
    5 + 4 + KEY_BYTES_MAX + 4 + NAMESPACE_BYTES_MAX + SUB_KEY_BYTES_MAX;

/// Appends `key` to `out`, and answers how many bytes of it come before the sub-key.
#[inline]
pub(crate) fn encode_entry_key(key: &EntryKey<'_>, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    let [a, b, c, d] = key.state.0.to_be_bytes();
    if key.key.len() < usize::from(LONG) {
        out.extend_from_slice(&[a, b, c, d, key.shard, key.key.len() as u8]);
    } else {
        out.extend_from_slice(&[a, b, c, d, key.shard]);
        put_long(key.key.len(), out);
    }
    out.extend_from_slice(key.key);
    if key.namespace.len() < usize::from(LONG) {
        out.push(key.namespace.len() as u8);
    } else {
        put_long(key.namespace.len(), out);
    }
    out.extend_from_slice(key.namespace);
    let prefix_bytes = out.len() - start;
    out.extend_from_slice(key.sub_key);
    prefix_bytes
}

/// The part of an encoded entry key before its sub-key; all of it if it is not one.
pub fn prefix_of(key: &[u8]) -> &[u8] {
    decode_entry_key(key).map_or(key, |(_, prefix_bytes)| &key[..prefix_bytes])
}

fn put_long(length: usize, out: &mut Vec<u8>) {
    let bytes = length.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let count = bytes.len() - zeros;
    out.push(LONG - 1 + count as u8);
    out.extend_from_slice(&bytes[zeros..]);
}

/// Takes an encoded entry key apart, with the bytes that come before its sub-key; `None` if it
/// is not one.
#[inline]
pub(crate) fn decode_entry_key(bytes: &[u8]) -> Option<(EntryKey<'_>, usize)> {
    let (state, rest) = bytes.split_first_chunk::<4>()?;
    let (shard, rest) = rest.split_first()?;
    let (key, rest) = take_piece(rest, KEY_BYTES_MAX)?;
    let (namespace, sub_key) = take_piece(rest, NAMESPACE_BYTES_MAX)?;
    if sub_key.len() > SUB_KEY_BYTES_MAX {
        return None;
    }
    let state = StateUid(u32::from_be_bytes(*state));
    let prefix_bytes = bytes.len() - sub_key.len();
    Some((
        EntryKey {
            state,
            shard: *shard,
            key,
            namespace,
            sub_key,
        },
        prefix_bytes,
    ))
}

#[inline]
fn take_piece(bytes: &[u8], bytes_max: usize) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first < LONG {
        return rest.split_at_checked(usize::from(*first));
    }
    let (length, rest) = rest.split_at_checked(usize::from(*first - LONG + 1))?;
    if length[0] == 0 || length.len() > 4 {
        return None;
    }
    let length = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if length < usize::from(LONG) || length > bytes_max {
        return None;
    }
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0..3_u8, 0..4),
            (240..260_usize).prop_map(|len| vec![7; len]),
            Just(vec![1; 65_536]),
        ]
    }

    proptest! {
        #[test]
        fn encoding_keeps_the_order_and_decodes(
            a in (0..2_u32, 0..2_u8, piece(), piece(), piece()),
            b in (0..2_u32, 0..2_u8, piece(), piece(), piece()),
        ) {
            let encode = |(state, shard, key, namespace, sub_key): &(u32, u8, Vec<u8>, Vec<u8>, Vec<u8>)| {
                let state = StateUid(*state);
                let entry = EntryKey { state, shard: *shard, key, namespace, sub_key };
                let mut out = Vec::new();
                let prefix = encode_entry_key(&entry, &mut out);
                assert_eq!(decode_entry_key(&out), Some((entry, prefix)));
                out
            };
            let order = encode(&a).cmp(&encode(&b));
            let key = |(state, shard, key, namespace, sub_key): &(u32, u8, Vec<u8>, Vec<u8>, Vec<u8>)| {
                (*state, *shard, key.len(), key.clone(), namespace.len(), namespace.clone(), sub_key.clone())
            };
            prop_assert_eq!(order, key(&a).cmp(&key(&b)));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some((key, prefix)) = decode_entry_key(&bytes) {
                let mut again = Vec::new();
                prop_assert_eq!(encode_entry_key(&key, &mut again), prefix);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
