//! How typed values and keys become bytes.
//!
//! - [`Codec`] is for values: the types of Rust through [`Native`], anything with serde through
//!   [`Postcard`], or your own.
//! - [`KeyCodec`] is for keys, namespaces and the user keys of maps. It keeps the order: encoded
//!   bytes compare as the keys do.
//!
//! Every codec has a [`crate::CodecId`] that is stored with the state and compared at a restore.
//! Values and keys have ids of their own in separate fields, so `u64` means eight little-endian
//! bytes as a value and eight big-endian bytes as a key.
//!
//! Decoders take untrusted bytes: they do not panic, and allocate no more than their input
//! justifies. All but [`Postcard`] accept only what the encoder writes.

mod key;
mod key_compound;
mod key_scalar;
mod malformed;
mod native;
mod native_compound;
mod native_scalar;
mod postcard;
mod sink;
mod value;

pub use key::KeyCodec;
pub use key_scalar::OrderedF64;
pub use malformed::decode_error;
pub use native::{Native, NativeValue};
pub use postcard::Postcard;
pub use sink::ByteSink;
pub use value::Codec;

#[cfg(test)]
mod tests;
