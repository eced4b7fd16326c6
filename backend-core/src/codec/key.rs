//! The codec of keys, which keeps their order.

use smallvec::SmallVec;

use crate::codec::malformed::decode_error;
use crate::codec::sink::{ByteSink, StackBuffer};
use crate::descriptor::CodecId;
use crate::error::Result;

/// A key, a namespace, or a user key of a map: encoded so that bytes compare as values do.
///
/// What holds for every implementation:
/// - `a < b` exactly if the bytes of `a` are below those of `b`, compared from the left.
/// - [`KeyCodec::decode`] accepts what [`KeyCodec::encode`] gives and nothing else, so two keys
///   never have the same bytes, nor two byte strings the same key.
/// - Types with the same [`KeyCodec::Owned`], such as `str` and `String`, encode alike.
///
/// | type | id | bytes |
/// |---|---|---|
/// | `u8` .. `u128` | `u64`, .. | big-endian, fixed width |
/// | `i8` .. `i128` | `i64`, .. | big-endian, the sign bit flipped |
/// | [`crate::codec::OrderedF64`] | `f64` | its bits in total order, big-endian |
/// | `bool`, `char` | `bool`, `char` | 0 or 1; the code point as a `u32` |
/// | `()` | `()` | none |
/// | `str`, `String` | `utf8` | the text |
/// | `[u8]`, `Vec<u8>`, `Bytes` | `bytes` | themselves |
/// | `[u8; N]` | `[u8;16]` | themselves |
/// | `Option<K>` | `option(u32)` | 0, or 1 and the key |
/// | tuples of 2 to 6 | `(u64,utf8)` | the elements; all but the last are nested |
///
/// A newtype forwards, and an enum writes a byte for its variant:
///
/// ```
/// use backend_core::codec::{ByteSink, KeyCodec, decode_error};
/// use backend_core::{CodecId, Result};
///
/// #[derive(Debug, PartialEq, PartialOrd)]
/// enum Account {
///     House,
///     Customer(u64),
/// }
///
/// impl KeyCodec for Account {
///     type Owned = Self;
///
///     fn id() -> CodecId {
///         CodecId::new("account")
///     }
///     fn encode<S: ByteSink>(&self, out: &mut S) {
///         match self {
///             Self::House => out.push_bytes(&[0]),
///             Self::Customer(number) => {
///                 out.push_bytes(&[1]);
///                 number.encode(out);
///             }
///         }
///     }
///     fn decode(bytes: &[u8]) -> Result<Self> {
///         match bytes {
///             [0] => Ok(Self::House),
///             [1, number @ ..] => u64::decode(number).map(Self::Customer),
///             _ => Err(decode_error("account", "a variant", bytes.escape_ascii())),
///         }
///     }
/// }
///
/// let bytes_of = |account: Account| account.with_encoded(|bytes| bytes.to_vec());
/// assert!(bytes_of(Account::House) < bytes_of(Account::Customer(0)));
/// assert!(bytes_of(Account::Customer(255)) < bytes_of(Account::Customer(256)));
/// assert_eq!(Account::decode(&bytes_of(Account::Customer(9)))?, Account::Customer(9));
///
/// // It can stand in a tuple, too.
/// let pair = (Account::House, 1u8).with_encoded(|bytes| bytes.to_vec());
/// assert_eq!(<(Account, u8)>::decode(&pair)?, (Account::House, 1));
/// # Ok::<(), backend_core::Error>(())
/// ```
pub trait KeyCodec {
    /// What decoding gives: the type itself, or what owns a borrowed one, as `String` for `str`.
    type Owned;

    /// The encoding's name, stored with the state.
    fn id() -> CodecId;

    /// Appends the bytes of the key to `out`.
    fn encode<S: ByteSink>(&self, out: &mut S);

    /// The key whose bytes are all of `bytes`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] that names the codec, what was expected and what was found.
    fn decode(bytes: &[u8]) -> Result<Self::Owned>;

    /// Calls `f` with the bytes of the key, without an allocation if they are few.
    #[inline]
    fn with_encoded<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut out = StackBuffer::new();
        self.encode(&mut out);
        f(out.as_slice())
    }

    /// Appends the key as an element of a tuple that others follow: no nested form begins with
    /// another, and their order is that of the keys.
    ///
    /// Unless it is overridden, as for types of a fixed width, a zero byte becomes `00 ff` and
    /// `00 00` ends the key.
    fn encode_nested<S: ByteSink>(&self, out: &mut S) {
        self.with_encoded(|bytes| escape(bytes, out));
    }

    /// Splits a nested key off the front of `input`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if `input` does not begin with what
    /// [`KeyCodec::encode_nested`] gives.
    fn decode_nested(input: &mut &[u8]) -> Result<Self::Owned> {
        Self::decode(&unescape(input, Self::id)?)
    }
}

impl<K: KeyCodec + ?Sized> KeyCodec for &K {
    type Owned = K::Owned;

    fn id() -> CodecId {
        K::id()
    }

    #[inline]
    fn encode<S: ByteSink>(&self, out: &mut S) {
        K::encode(self, out);
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self::Owned> {
        K::decode(bytes)
    }

    #[inline]
    fn with_encoded<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        K::with_encoded(self, f)
    }

    #[inline]
    fn encode_nested<S: ByteSink>(&self, out: &mut S) {
        K::encode_nested(self, out);
    }

    #[inline]
    fn decode_nested(input: &mut &[u8]) -> Result<Self::Owned> {
        K::decode_nested(input)
    }
}

fn escape<S: ByteSink>(bytes: &[u8], out: &mut S) {
    for (index, run) in bytes.split(|&byte| byte == 0).enumerate() {
        if index > 0 {
            out.push_bytes(&[0, 0xff]);
        }
        out.push_bytes(run);
    }
    // Two bytes, because what follows may begin with `ff`; a shorter key sorts before a longer
    // one that begins with it, because 0 is below every byte that could stand there instead.
    out.push_bytes(&[0, 0]);
}

fn unescape(input: &mut &[u8], codec: fn() -> CodecId) -> Result<SmallVec<[u8; 64]>> {
    let mut out = SmallVec::new();
    loop {
        let zero = input.iter().position(|&byte| byte == 0);
        let Some(zero) = zero.filter(|&zero| zero + 1 < input.len()) else {
            let got = format!("{} bytes without one", input.len());
            return Err(decode_error(codec(), "an end mark", got));
        };
        out.extend_from_slice(&input[..zero]);
        let mark = input[zero + 1];
        *input = &input[zero + 2..];
        match mark {
            0 => return Ok(out),
            0xff => out.push(0),
            other => return Err(decode_error(codec(), "00 or ff behind 00", other)),
        }
    }
}
