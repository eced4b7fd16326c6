//! Native encodings of numbers, text and bytes.

use bytes::Bytes;

use crate::codec::malformed::{decode_error, take_array, text, whole_array, wrong_length};
use crate::codec::native::NativeValue;
use crate::codec::sink::ByteSink;
use crate::descriptor::CodecId;
use crate::error::Result;

macro_rules! native_number {
    ($($number:ident),+) => {$(
        impl NativeValue for $number {
            fn native_id() -> CodecId {
                CodecId::new(stringify!($number))
            }

            #[inline]
            fn write<S: ByteSink>(&self, out: &mut S) {
                out.push_bytes(&self.to_le_bytes());
            }

            #[inline]
            fn read(bytes: &[u8]) -> Result<Self> {
                whole_array(bytes, Self::native_id).map(Self::from_le_bytes)
            }

            #[inline]
            fn write_delimited<S: ByteSink>(&self, out: &mut S) {
                self.write(out);
            }

            #[inline]
            fn read_delimited(input: &mut &[u8]) -> Result<Self> {
                take_array(input, Self::native_id).map(Self::from_le_bytes)
            }

            #[inline]
            fn write_array<S: ByteSink, const N: usize>(elements: &[Self; N], out: &mut S) {
                out.push_bytes(elements.map(Self::to_le_bytes).as_flattened());
            }

            #[inline]
            fn read_array<const N: usize>(input: &mut &[u8]) -> Result<[Self; N]> {
                const WIDTH: usize = size_of::<$number>();
                let split = input.split_at_checked(N * WIDTH);
                let (head, rest) =
                    split.ok_or_else(|| wrong_length(Self::native_id(), N * WIDTH, input.len()))?;
                let (elements, _) = head.as_chunks::<WIDTH>();
                *input = rest;
                Ok(std::array::from_fn(|i| Self::from_le_bytes(elements[i])))
            }

            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&self.to_le_bytes())
            }
        }
    )+};
}

native_number!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

/// A type that is written as another one of fixed width, not all of whose values it has.
macro_rules! native_checked {
    ($type:ident as $wire:ident, $expected:literal, $from:expr) => {
        impl NativeValue for $type {
            fn native_id() -> CodecId {
                CodecId::new(stringify!($type))
            }

            #[inline]
            fn write<S: ByteSink>(&self, out: &mut S) {
                $wire::from(*self).write(out);
            }

            fn read(mut bytes: &[u8]) -> Result<Self> {
                let value = Self::read_delimited(&mut bytes)?;
                if !bytes.is_empty() {
                    let width = size_of::<$wire>();
                    return Err(wrong_length(Self::native_id(), width, width + bytes.len()));
                }
                Ok(value)
            }

            #[inline]
            fn write_delimited<S: ByteSink>(&self, out: &mut S) {
                self.write(out);
            }

            fn read_delimited(input: &mut &[u8]) -> Result<Self> {
                let wire = $wire::from_le_bytes(take_array(input, Self::native_id)?);
                let from: fn($wire) -> Option<$type> = $from;
                from(wire).ok_or_else(|| decode_error(Self::native_id(), $expected, wire))
            }
        }
    };
}

native_checked!(bool as u8, "0 or 1", |wire| (wire <= 1)
    .then_some(wire == 1));
native_checked!(char as u32, "a code point", char::from_u32);

impl NativeValue for () {
    fn native_id() -> CodecId {
        CodecId::new("()")
    }

    #[inline]
    fn write<S: ByteSink>(&self, _out: &mut S) {}

    fn read(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            Ok(())
        } else {
            Err(wrong_length("()", 0, bytes.len()))
        }
    }

    #[inline]
    fn write_delimited<S: ByteSink>(&self, _out: &mut S) {}

    #[inline]
    fn read_delimited(_input: &mut &[u8]) -> Result<Self> {
        Ok(())
    }
}

macro_rules! native_bytes {
    ($type:ty, $id:literal, $from:expr) => {
        impl NativeValue for $type {
            fn native_id() -> CodecId {
                CodecId::new($id)
            }

            #[inline]
            fn write<S: ByteSink>(&self, out: &mut S) {
                out.push_bytes(self.as_ref());
            }

            #[inline]
            fn read(bytes: &[u8]) -> Result<Self> {
                let from: fn(&[u8]) -> Result<Self> = $from;
                from(bytes)
            }

            #[inline]
            fn write_delimited<S: ByteSink>(&self, out: &mut S) {
                write_length(self.len() as u64, out);
                self.write(out);
            }

            fn read_delimited(input: &mut &[u8]) -> Result<Self> {
                Self::read(take_delimited(input, $id)?)
            }

            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(self.as_ref())
            }
        }
    };
}

native_bytes!(String, "utf8", |bytes| text(bytes).map(str::to_owned));
native_bytes!(Vec<u8>, "bytes", |bytes| Ok(bytes.to_vec()));
native_bytes!(Bytes, "bytes", |bytes| Ok(Bytes::copy_from_slice(bytes)));

/// LEB128: seven bits a byte, the low ones first; the top bit says that more follow.
#[inline]
fn write_length<S: ByteSink>(mut length: u64, out: &mut S) {
    while length >= 0x80 {
        out.push_bytes(&[length as u8 | 0x80]);
        length >>= 7;
    }
    out.push_bytes(&[length as u8]);
}

/// Splits off a length in its shortest form, and as many bytes.
fn take_delimited<'a>(input: &mut &'a [u8], codec: &'static str) -> Result<&'a [u8]> {
    let length = take_length(input)
        .ok_or_else(|| decode_error(codec, "a length", format_args!("{} bytes", input.len())))?;
    let split = usize::try_from(length)
        .ok()
        .and_then(|length| input.split_at_checked(length));
    let Some((head, rest)) = split else {
        let expected = format_args!("{length} bytes").to_string();
        let got = format_args!("{} bytes", input.len()).to_string();
        return Err(decode_error(codec, expected, got));
    };
    *input = rest;
    Ok(head)
}

fn take_length(input: &mut &[u8]) -> Option<u64> {
    let mut length = 0;
    for (index, &byte) in input.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if (bits << shift) >> shift != bits {
            return None;
        }
        length |= bits << shift;
        if byte < 0x80 {
            // A last group of zero is not the shortest form, so no encoder wrote it.
            let is_shortest = byte != 0 || index == 0;
            *input = &input[index + 1..];
            return is_shortest.then_some(length);
        }
    }
    None
}
