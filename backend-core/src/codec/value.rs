//! The codec of values.

use crate::codec::sink::{ByteSink, StackBuffer};
use crate::descriptor::CodecId;
use crate::error::Result;

/// Encodes and decodes values of type `T`.
///
/// A codec is a type without fields, named where a handle is declared:
/// `ValueState<Order, Postcard>`.
/// What holds for every codec: [`Codec::decode`] of what [`Codec::encode`] wrote gives an equal
/// value, and anything else gives an error or a value, never a panic.
///
/// ```
/// use backend_core::codec::{ByteSink, Codec, Native, decode_error};
/// use backend_core::{CodecId, Result};
///
/// struct Celsius(i16);
///
/// /// Temperatures as two bytes.
/// struct CelsiusCodec;
///
/// impl Codec<Celsius> for CelsiusCodec {
///     fn id() -> CodecId {
///         CodecId::new("celsius")
///     }
///     fn encode<S: ByteSink>(value: &Celsius, out: &mut S) -> Result<()> {
///         out.push_bytes(&value.0.to_le_bytes());
///         Ok(())
///     }
///     fn decode(bytes: &[u8]) -> Result<Celsius> {
///         let degrees = Native::decode(bytes)?;
///         if degrees < -273 {
///             return Err(decode_error("celsius", "at least -273", degrees));
///         }
///         Ok(Celsius(degrees))
///     }
/// }
///
/// let mut bytes = Vec::new();
/// CelsiusCodec::encode(&Celsius(21), &mut bytes)?;
/// assert_eq!(CelsiusCodec::decode(&bytes)?.0, 21);
/// # Ok::<(), backend_core::Error>(())
/// ```
pub trait Codec<T>: 'static {
    /// The codec's name, stored with the state.
    fn id() -> CodecId;

    /// Appends the bytes of `value` to `out`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the codec has no form for this value.
    fn encode<S: ByteSink>(value: &T, out: &mut S) -> Result<()>;

    /// The value whose bytes are all of `bytes`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] that names the codec, what was expected and what was found.
    fn decode(bytes: &[u8]) -> Result<T>;

    /// Calls `f` with the bytes of `value`, without an allocation if they are few.
    ///
    /// Codecs whose values hold their own bytes pass those on uncopied.
    ///
    /// # Errors
    /// Those of [`Codec::encode`] and of `f`.
    #[inline]
    fn with_encoded<R>(value: &T, f: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let mut out = StackBuffer::new();
        Self::encode(value, &mut out)?;
        f(out.as_slice())
    }
}
