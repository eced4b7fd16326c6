//! The codec of Rust's own types.

use crate::codec::sink::{ByteSink, StackBuffer};
use crate::codec::value::Codec;
use crate::descriptor::CodecId;
use crate::error::Result;

/// The codec of Rust's own types: fixed width, little-endian, raw bytes and text.
///
/// | type | id | bytes |
/// |---|---|---|
/// | `u8` .. `u128`, `i8` .. `i128` | `u64`, .. | little-endian, fixed width |
/// | `f32`, `f64` | `f64` | their bits, little-endian |
/// | `bool` | `bool` | 0 or 1 |
/// | `char` | `char` | the code point as a `u32` |
/// | `()` | `()` | none |
/// | `String` | `utf8` | the text |
/// | `Vec<u8>`, `Bytes` | `bytes` | themselves |
/// | `Option<T>` | `option(u32)` | 0, or 1 and the value |
/// | tuples of 2 to 6 | `(u64,utf8)` | the elements; all but the last are delimited |
/// | `[T; N]` | `[u8;16]` | the elements, delimited |
///
/// 'Delimited' puts the length (LEB128) in front of text and bytes, and changes nothing for types
/// of a fixed width.
///
/// ```
/// use backend_core::codec::{Codec, Native};
///
/// let mut bytes = Vec::new();
/// Native::encode(&(7u16, String::from("ab")), &mut bytes)?;
/// assert_eq!(bytes, b"\x07\x00ab");
/// assert_eq!(<Native as Codec<(u16, String)>>::decode(&bytes)?, (7, "ab".into()));
/// assert_eq!(<Native as Codec<(u16, String)>>::id().as_str(), "(u16,utf8)");
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Native {}

impl<T: NativeValue> Codec<T> for Native {
    fn id() -> CodecId {
        T::native_id()
    }

    #[inline]
    fn encode<S: ByteSink>(value: &T, out: &mut S) -> Result<()> {
        value.write(out);
        Ok(())
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<T> {
        T::read(bytes)
    }

    #[inline]
    fn with_encoded<R>(value: &T, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        value.with_bytes(f)
    }
}

/// A type that [`Native`] encodes. A newtype implements it by forwarding.
pub trait NativeValue: Sized {
    /// The name of the encoding: [`Codec::id`] of [`Native`] for this type.
    fn native_id() -> CodecId;

    /// Appends the value, which may take all that follows when it is read.
    fn write<S: ByteSink>(&self, out: &mut S);

    /// The value whose bytes are all of `bytes`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if `bytes` are not exactly what [`NativeValue::write`] gives.
    fn read(bytes: &[u8]) -> Result<Self>;

    /// Appends the value so that its end can be told from what follows.
    fn write_delimited<S: ByteSink>(&self, out: &mut S);

    /// Splits the value off the front of `input`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if `input` does not begin with what
    /// [`NativeValue::write_delimited`] gives.
    fn read_delimited(input: &mut &[u8]) -> Result<Self>;

    /// Appends all of `elements`, delimited.
    #[inline]
    fn write_array<S: ByteSink, const N: usize>(elements: &[Self; N], out: &mut S) {
        for element in elements {
            element.write_delimited(out);
        }
    }

    /// Splits what [`NativeValue::write_array`] gives off the front of `input`.
    ///
    /// # Errors
    /// Those of [`NativeValue::read_delimited`].
    fn read_array<const N: usize>(input: &mut &[u8]) -> Result<[Self; N]> {
        let mut failure = None;
        let elements: [Option<Self>; N] = std::array::from_fn(|_| {
            if failure.is_some() {
                return None;
            }
            Self::read_delimited(input)
                .map_err(|e| failure = Some(e))
                .ok()
        });
        match failure {
            None => Ok(elements.map(|element| element.expect("no element failed"))),
            Some(error) => Err(error),
        }
    }

    /// Calls `f` with the bytes that [`NativeValue::write`] gives.
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut out = StackBuffer::new();
        self.write(&mut out);
        f(out.as_slice())
    }
}
