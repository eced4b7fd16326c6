//! The reference backend's own segments: an increment as a list of changes.
//!
//! ```text
//! change:  state u32 | has value u8 | key | namespace | sub-key | value
//! field:   length u32 | bytes
//! ```
//! Little-endian. A change without a value is a deletion and has no value field.

use std::collections::BTreeSet;
use std::sync::Arc;

use backend_core::range::shard_of;
use backend_core::{Error, ErrorKind, KeyHasher, Result, StateUid};
use bytes::Bytes;

use super::entries::{Entries, Inner, Place};
use super::flaw::Flaw;

/// A change of one entry.
pub(super) struct Change {
    pub(super) place: Place,
    pub(super) sub_key: Box<[u8]>,
    /// `None` for a deletion.
    pub(super) value: Option<Bytes>,
}

/// An encoded segment and what its meta data needs.
#[derive(Default)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) puts: u64,
    pub(super) deletes: u64,
    pub(super) shards: Option<(u8, u8)>,
}

impl Encoded {
    /// What leads from `old` to `new`. `cleared` are the keys that were cleared in between.
    pub(super) fn difference(
        old: &Entries,
        new: &Entries,
        cleared: &BTreeSet<Place>,
        hasher: &KeyHasher,
        flaw: Option<Flaw>,
    ) -> Self {
        let mut out = Self::default();
        let nothing = Arc::new(Inner::new());
        let gone = old.keys().filter(|place| !new.contains_key(*place));
        for place in new.keys().chain(gone) {
            let was = old.get(place).unwrap_or(&nothing);
            let is = new.get(place).unwrap_or(&nothing);
            if Arc::ptr_eq(was, is) {
                continue;
            }
            let owner = if place.0.is_timers() {
                &place.2
            } else {
                &place.1
            };
            let shard = shard_of(hasher.hash(owner));
            let forgets = if is.is_empty() {
                flaw == Some(Flaw::ForgetsClears)
                    || flaw == Some(Flaw::ForgetsPops) && place.0.is_timers()
            } else {
                flaw == Some(Flaw::ForgetsDeletes)
            };
            for sub_key in was.keys().filter(|k| !is.contains_key(*k) && !forgets) {
                out.push(shard, place, sub_key, None);
            }
            if flaw == Some(Flaw::ClearsTooMuch) && cleared.contains(place) {
                continue;
            }
            for (sub_key, value) in &**is {
                if was.get(sub_key) != Some(value) {
                    out.push(shard, place, sub_key, Some(value));
                }
            }
        }
        out
    }

    fn push(&mut self, shard: u8, place: &Place, sub_key: &[u8], value: Option<&Bytes>) {
        self.bytes.extend_from_slice(&place.0.0.to_le_bytes());
        self.bytes.push(u8::from(value.is_some()));
        let fields = [&*place.1, &*place.2, sub_key];
        for field in fields.into_iter().chain(value.map(|value| &value[..])) {
            self.bytes
                .extend_from_slice(&(field.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(field);
        }
        match value {
            Some(_) => self.puts += 1,
            None => self.deletes += 1,
        }
        let (first, last) = self.shards.unwrap_or((shard, shard));
        self.shards = Some((first.min(shard), last.max(shard)));
    }
}

/// Reads the next change off the front of `input`.
pub(super) fn decode(input: &mut Bytes) -> Result<Change> {
    let head = take(input, 5)?;
    let state = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let key = field(input)?;
    let namespace = field(input)?;
    let sub_key = field(input)?;
    let value = match head[4] {
        0 => None,
        1 => Some(field(input)?),
        other => {
            return Err(
                Error::new(ErrorKind::Corrupt, "no such change").expected_got("0 or 1", other)
            );
        }
    };
    Ok(Change {
        place: (StateUid(state), key[..].into(), namespace[..].into()),
        sub_key: sub_key[..].into(),
        value,
    })
}

fn field(input: &mut Bytes) -> Result<Bytes> {
    let length = take(input, 4)?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
    take(input, length as usize)
}

fn take(input: &mut Bytes, count: usize) -> Result<Bytes> {
    if count > input.len() {
        return Err(
            Error::new(ErrorKind::Corrupt, "a segment ends early").expected_got(count, input.len())
        );
    }
    Ok(input.split_to(count))
}
