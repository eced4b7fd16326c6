//! Native encodings of options, arrays and tuples.

use crate::codec::malformed::{
    array_id, decode_error, option_id, take_array, tuple_id, wrong_length,
};
use crate::codec::native::NativeValue;
use crate::codec::sink::ByteSink;
use crate::descriptor::CodecId;
use crate::error::{Error, Result};

impl<T: NativeValue> NativeValue for Option<T> {
    fn native_id() -> CodecId {
        option_id(&T::native_id())
    }

    #[inline]
    fn write<S: ByteSink>(&self, out: &mut S) {
        out.push_bytes(&[u8::from(self.is_some())]);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(mut bytes: &[u8]) -> Result<Self> {
        if take_flag::<T>(&mut bytes)? {
            return T::read(bytes).map(Some).map_err(within::<Self>);
        }
        if bytes.is_empty() {
            Ok(None)
        } else {
            Err(wrong_length(Self::native_id(), 1, 1 + bytes.len()))
        }
    }

    #[inline]
    fn write_delimited<S: ByteSink>(&self, out: &mut S) {
        out.push_bytes(&[u8::from(self.is_some())]);
        if let Some(value) = self {
            value.write_delimited(out);
        }
    }

    fn read_delimited(input: &mut &[u8]) -> Result<Self> {
        if take_flag::<T>(input)? {
            T::read_delimited(input).map(Some).map_err(within::<Self>)
        } else {
            Ok(None)
        }
    }
}

fn take_flag<T: NativeValue>(input: &mut &[u8]) -> Result<bool> {
    let id = || option_id(&T::native_id());
    match take_array(input, id)? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(decode_error(id(), "0 or 1", other)),
    }
}

impl<T: NativeValue, const N: usize> NativeValue for [T; N] {
    fn native_id() -> CodecId {
        array_id(&T::native_id(), N)
    }

    #[inline]
    fn write<S: ByteSink>(&self, out: &mut S) {
        T::write_array(self, out);
    }

    fn read(mut bytes: &[u8]) -> Result<Self> {
        let length = bytes.len();
        let elements = Self::read_delimited(&mut bytes)?;
        if bytes.is_empty() {
            Ok(elements)
        } else {
            Err(wrong_length(
                Self::native_id(),
                length - bytes.len(),
                length,
            ))
        }
    }

    #[inline]
    fn write_delimited<S: ByteSink>(&self, out: &mut S) {
        self.write(out);
    }

    fn read_delimited(input: &mut &[u8]) -> Result<Self> {
        T::read_array(input).map_err(within::<Self>)
    }
}

macro_rules! native_tuple {
    ($($head:ident $h:tt),+; $last:ident $l:tt) => {
        impl<$($head: NativeValue,)+ $last: NativeValue> NativeValue for ($($head,)+ $last) {
            fn native_id() -> CodecId {
                tuple_id(&[$($head::native_id(),)+ $last::native_id()])
            }

            #[inline]
            fn write<S: ByteSink>(&self, out: &mut S) {
                $(self.$h.write_delimited(out);)+
                self.$l.write(out);
            }

            #[inline]
            fn read(mut bytes: &[u8]) -> Result<Self> {
                Ok((
                    $($head::read_delimited(&mut bytes).map_err(within::<Self>)?,)+
                    $last::read(bytes).map_err(within::<Self>)?,
                ))
            }

            #[inline]
            fn write_delimited<S: ByteSink>(&self, out: &mut S) {
                $(self.$h.write_delimited(out);)+
                self.$l.write_delimited(out);
            }

            #[inline]
            fn read_delimited(input: &mut &[u8]) -> Result<Self> {
                Ok((
                    $($head::read_delimited(input).map_err(within::<Self>)?,)+
                    $last::read_delimited(input).map_err(within::<Self>)?,
                ))
            }
        }
    };
}

native_tuple!(A 0; B 1);
native_tuple!(A 0, B 1; C 2);
native_tuple!(A 0, B 1, C 2; D 3);
native_tuple!(A 0, B 1, C 2, D 3; E 4);
native_tuple!(A 0, B 1, C 2, D 3, E 4; F 5);

/// Says which compound value the part that failed belongs to.
#[cold]
fn within<T: NativeValue>(error: Error) -> Error {
    error.with("within", T::native_id())
}
