//! What decoders answer to bytes that no encoder wrote, and what they share.

use std::fmt::Display;

use crate::descriptor::CodecId;
use crate::error::{Error, ErrorKind, Result};

/// The error of a decoder: bytes that are no value of `codec`, what was expected, and what was
/// there. Its kind is [`ErrorKind::Corrupt`].
///
/// ```
/// let error = backend_core::codec::decode_error("side", "byte 0 or 1", "byte 7");
/// assert_eq!(
///     error.to_string(),
///     "corrupt: bytes are not a value of their codec (codec: side, expected: byte 0 or 1, got: byte 7)"
/// );
/// ```
#[cold]
pub fn decode_error(codec: impl Display, expected: impl Display, got: impl Display) -> Error {
    Error::new(ErrorKind::Corrupt, "bytes are not a value of their codec")
        .with("codec", codec)
        .expected_got(expected, got)
}

/// The error for a wrong number of bytes.
#[cold]
pub(super) fn wrong_length(codec: impl Display, expected: usize, got: usize) -> Error {
    decode_error(
        codec,
        format_args!("{expected} bytes"),
        format_args!("{got} bytes"),
    )
}

/// Splits off the first `N` bytes of `input`.
#[inline]
pub(super) fn take_array<const N: usize>(
    input: &mut &[u8],
    codec: impl FnOnce() -> CodecId,
) -> Result<[u8; N]> {
    match input.split_first_chunk::<N>() {
        Some((head, rest)) => {
            *input = rest;
            Ok(*head)
        }
        None => Err(wrong_length(codec(), N, input.len())),
    }
}

/// All of `bytes`, if they are `N`.
#[inline]
pub(super) fn whole_array<const N: usize>(
    bytes: &[u8],
    codec: impl FnOnce() -> CodecId,
) -> Result<[u8; N]> {
    <[u8; N]>::try_from(bytes).map_err(|_| wrong_length(codec(), N, bytes.len()))
}

/// `bytes` as text.
pub(super) fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| {
        let valid = e.valid_up_to();
        decode_error("utf8", "UTF-8", format_args!("{valid} bytes of it")).because(e)
    })
}

/// The id of a tuple of elements with the given ids, for example `(u64,utf8)`.
pub(super) fn tuple_id(elements: &[CodecId]) -> CodecId {
    let names: Vec<&str> = elements.iter().map(CodecId::as_str).collect();
    CodecId::new(format!("({})", names.join(",")))
}

/// The id of an optional value, for example `option(u32)`.
pub(super) fn option_id(inner: &CodecId) -> CodecId {
    CodecId::new(format!("option({inner})"))
}

/// The id of an array, for example `[u8;16]`.
pub(super) fn array_id(element: &CodecId, count: usize) -> CodecId {
    CodecId::new(format!("[{element};{count}]"))
}
