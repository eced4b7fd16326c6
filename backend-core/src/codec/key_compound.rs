//! Key encodings of options and tuples.

use crate::codec::key::KeyCodec;
use crate::codec::malformed::{decode_error, option_id, take_array, tuple_id, wrong_length};
use crate::codec::sink::ByteSink;
use crate::descriptor::CodecId;
use crate::error::{Error, Result};

impl<K: KeyCodec> KeyCodec for Option<K> {
    type Owned = Option<K::Owned>;

    fn id() -> CodecId {
        option_id(&K::id())
    }

    #[inline]
    fn encode<S: ByteSink>(&self, out: &mut S) {
        out.push_bytes(&[u8::from(self.is_some())]);
        if let Some(key) = self {
            key.encode(out);
        }
    }

    fn decode(mut bytes: &[u8]) -> Result<Self::Owned> {
        if take_flag::<K>(&mut bytes)? {
            return K::decode(bytes).map(Some).map_err(within::<Self>);
        }
        if bytes.is_empty() {
            Ok(None)
        } else {
            Err(wrong_length(Self::id(), 1, 1 + bytes.len()))
        }
    }

    #[inline]
    fn encode_nested<S: ByteSink>(&self, out: &mut S) {
        out.push_bytes(&[u8::from(self.is_some())]);
        if let Some(key) = self {
            key.encode_nested(out);
        }
    }

    fn decode_nested(input: &mut &[u8]) -> Result<Self::Owned> {
        if take_flag::<K>(input)? {
            K::decode_nested(input).map(Some).map_err(within::<Self>)
        } else {
            Ok(None)
        }
    }
}

fn take_flag<K: KeyCodec>(input: &mut &[u8]) -> Result<bool> {
    let id = || option_id(&K::id());
    match take_array(input, id)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(decode_error(id(), "0 or 1", other)),
    }
}

macro_rules! tuple_key {
    ($($head:ident $h:tt),+; $last:ident $l:tt) => {
        impl<$($head: KeyCodec,)+ $last: KeyCodec> KeyCodec for ($($head,)+ $last) {
            type Owned = ($($head::Owned,)+ $last::Owned);

            fn id() -> CodecId {
                tuple_id(&[$($head::id(),)+ $last::id()])
            }

            #[inline]
            fn encode<S: ByteSink>(&self, out: &mut S) {
                $(self.$h.encode_nested(out);)+
                self.$l.encode(out);
            }

            #[inline]
            fn decode(mut bytes: &[u8]) -> Result<Self::Owned> {
                Ok((
                    $($head::decode_nested(&mut bytes).map_err(within::<Self>)?,)+
                    $last::decode(bytes).map_err(within::<Self>)?,
                ))
            }

            #[inline]
            fn encode_nested<S: ByteSink>(&self, out: &mut S) {
                $(self.$h.encode_nested(out);)+
                self.$l.encode_nested(out);
            }

            #[inline]
            fn decode_nested(input: &mut &[u8]) -> Result<Self::Owned> {
                Ok((
                    $($head::decode_nested(input).map_err(within::<Self>)?,)+
                    $last::decode_nested(input).map_err(within::<Self>)?,
                ))
            }
        }
    };
}

tuple_key!(A 0; B 1);
tuple_key!(A 0, B 1; C 2);
tuple_key!(A 0, B 1, C 2; D 3);
tuple_key!(A 0, B 1, C 2, D 3; E 4);
tuple_key!(A 0, B 1, C 2, D 3, E 4; F 5);

/// Says which compound key the part that failed belongs to.
#[cold]
fn within<K: KeyCodec>(error: Error) -> Error {
    error.with("within", K::id())
}
