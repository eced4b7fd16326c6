//! The codec of types with serde.

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::malformed::decode_error;
use crate::codec::sink::ByteSink;
use crate::codec::value::Codec;
use crate::descriptor::CodecId;
use crate::error::{Error, ErrorKind, Result};

/// The codec of types with serde, in the format of Postcard 1: compact, and without field names,
/// so a type whose fields change needs a new schema version.
///
/// The id is `postcard` for every type; give the type's name to
/// [`crate::StateOptions::with_type_name`] to have it stored and compared.
///
/// Unlike the other decoders it accepts more than what it writes: numbers in more bytes than they
/// need, and map keys that repeat. A list of a type without bytes, such as `Vec<()>`, is decoded
/// in a time that its input does not bound.
///
/// ```
/// use backend_core::codec::{Codec, Postcard};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Order {
///     id: u64,
///     lines: Vec<(String, u32)>,
/// }
///
/// let order = Order { id: 7, lines: vec![("tea".into(), 2)] };
/// let mut bytes = Vec::new();
/// Postcard::encode(&order, &mut bytes)?;
/// assert_eq!(bytes, b"\x07\x01\x03tea\x02");
/// assert_eq!(<Postcard as Codec<Order>>::decode(&bytes)?, order);
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Postcard {}

impl<T: Serialize + DeserializeOwned> Codec<T> for Postcard {
    fn id() -> CodecId {
        CodecId::new("postcard")
    }

    fn encode<S: ByteSink>(value: &T, out: &mut S) -> Result<()> {
        postcard::serialize_with_flavor(value, SinkFlavor(out)).map_err(|e| {
            Error::new(ErrorKind::Invalid, "a value cannot be encoded")
                .with("codec", "postcard")
                .with("type", std::any::type_name::<T>())
                .because(e)
        })
    }

    fn decode(bytes: &[u8]) -> Result<T> {
        let expected = || format!("a {}", std::any::type_name::<T>());
        let (value, rest) = postcard::take_from_bytes(bytes).map_err(|e| {
            decode_error(
                "postcard",
                expected(),
                format_args!("{} bytes", bytes.len()),
            )
            .because(e)
        })?;
        if rest.is_empty() {
            return Ok(value);
        }
        let got = format_args!("{} bytes more", rest.len()).to_string();
        Err(decode_error("postcard", expected(), got))
    }
}

struct SinkFlavor<'a, S>(&'a mut S);

impl<S: ByteSink> Flavor for SinkFlavor<'_, S> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push_bytes(&[byte]);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.push_bytes(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
