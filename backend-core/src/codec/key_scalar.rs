//! Key encodings of numbers, text and bytes.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::codec::key::KeyCodec;
use crate::codec::malformed::{
    array_id, decode_error, take_array, text, whole_array, wrong_length,
};
use crate::codec::sink::ByteSink;
use crate::descriptor::CodecId;
use crate::error::Result;

/// A float as a key, in the total order of IEEE 754: -NaN, -inf, .., -0, +0, .., inf, NaN.
#[derive(Clone, Copy, Debug)]
pub struct OrderedF64(pub f64);

impl Ord for OrderedF64 {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for OrderedF64 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedF64 {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for OrderedF64 {}

impl Hash for OrderedF64 {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// A key of fixed width, which is its own nested form. `$to` and `$from` map it to the bits of an
/// unsigned integer of the same order; `$from` answers `None` for bits that no key has.
macro_rules! fixed_key {
    ($key:ty as $wire:ident, $id:expr, $expected:literal, $to:expr, $from:expr) => {
        impl KeyCodec for $key {
            type Owned = Self;

            fn id() -> CodecId {
                CodecId::new($id)
            }

            #[inline]
            fn encode<S: ByteSink>(&self, out: &mut S) {
                self.with_encoded(|bytes| out.push_bytes(bytes));
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<Self> {
                let wire: [u8; size_of::<$wire>()] = whole_array(bytes, Self::id)?;
                Self::decode_nested(&mut &wire[..])
            }

            #[inline]
            fn with_encoded<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let to: fn(Self) -> $wire = $to;
                f(&to(*self).to_be_bytes())
            }

            #[inline]
            fn encode_nested<S: ByteSink>(&self, out: &mut S) {
                self.encode(out);
            }

            #[inline]
            fn decode_nested(input: &mut &[u8]) -> Result<Self> {
                let wire = $wire::from_be_bytes(take_array(input, Self::id)?);
                let from: fn($wire) -> Option<Self> = $from;
                from(wire).ok_or_else(|| decode_error(Self::id(), $expected, wire))
            }
        }
    };
}

macro_rules! integer_key {
    ($($unsigned:ident $signed:ident),+) => {$(
        fixed_key!($unsigned as $unsigned, stringify!($unsigned), "an integer", |key| key, Some);
        fixed_key!(
            $signed as $unsigned,
            stringify!($signed),
            "an integer",
            |key| key.cast_unsigned() ^ $signed::MIN.cast_unsigned(),
            |wire| Some((wire ^ $signed::MIN.cast_unsigned()).cast_signed())
        );
    )+};
}

integer_key!(u8 i8, u16 i16, u32 i32, u64 i64, u128 i128);

fixed_key!(bool as u8, "bool", "0 or 1", u8::from, |wire| (wire <= 1)
    .then_some(wire == 1));
fixed_key!(
    char as u32,
    "char",
    "a code point",
    u32::from,
    char::from_u32
);

const F64_SIGN: u64 = 1 << 63;

// Positive floats sort as their bits do, so they only need to lie above the negative ones, which
// sort the other way round and so have all their bits flipped.
fixed_key!(
    OrderedF64 as u64,
    "f64",
    "a float",
    |key| {
        let bits = key.0.to_bits();
        if bits & F64_SIGN == 0 {
            bits | F64_SIGN
        } else {
            !bits
        }
    },
    |wire| {
        let bits = if wire & F64_SIGN == 0 {
            !wire
        } else {
            wire & !F64_SIGN
        };
        Some(OrderedF64(f64::from_bits(bits)))
    }
);

impl KeyCodec for () {
    type Owned = ();

    fn id() -> CodecId {
        CodecId::new("()")
    }

    #[inline]
    fn encode<S: ByteSink>(&self, _out: &mut S) {}

    fn decode(bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            Ok(())
        } else {
            Err(wrong_length("()", 0, bytes.len()))
        }
    }

    #[inline]
    fn encode_nested<S: ByteSink>(&self, _out: &mut S) {}

    #[inline]
    fn decode_nested(_input: &mut &[u8]) -> Result<()> {
        Ok(())
    }
}

impl<const N: usize> KeyCodec for [u8; N] {
    type Owned = Self;

    fn id() -> CodecId {
        array_id(&u8::id(), N)
    }

    #[inline]
    fn encode<S: ByteSink>(&self, out: &mut S) {
        out.push_bytes(self);
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self> {
        whole_array(bytes, Self::id)
    }

    #[inline]
    fn with_encoded<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }

    #[inline]
    fn encode_nested<S: ByteSink>(&self, out: &mut S) {
        self.encode(out);
    }

    #[inline]
    fn decode_nested(input: &mut &[u8]) -> Result<Self> {
        take_array(input, Self::id)
    }
}

/// A key that is its own bytes.
macro_rules! bytes_key {
    ($key:ty, $owned:ty, $id:literal, $from:expr) => {
        impl KeyCodec for $key {
            type Owned = $owned;

            fn id() -> CodecId {
                CodecId::new($id)
            }

            #[inline]
            fn encode<S: ByteSink>(&self, out: &mut S) {
                out.push_bytes(self.as_ref());
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<$owned> {
                let from: fn(&[u8]) -> Result<$owned> = $from;
                from(bytes)
            }

            #[inline]
            fn with_encoded<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(self.as_ref())
            }
        }
    };
}

bytes_key!(str, String, "utf8", |bytes| text(bytes).map(str::to_owned));
bytes_key!(String, String, "utf8", |bytes| text(bytes)
    .map(str::to_owned));
bytes_key!([u8], Vec<u8>, "bytes", |bytes| Ok(bytes.to_vec()));
bytes_key!(Vec<u8>, Vec<u8>, "bytes", |bytes| Ok(bytes.to_vec()));
bytes_key!(Bytes, Bytes, "bytes", |bytes| Ok(Bytes::copy_from_slice(
    bytes
)));
