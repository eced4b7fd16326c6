//! Manifests: one object a snapshot, written once, and readable in part.
//!
//! The bytes are in `docs/format.md`; [`Manifest`] is what they mean.

mod check;
mod codec;
mod dump;
mod frame;
pub mod limits;
mod meta;
mod model;
mod part;
mod pin;
mod record;
mod segment;

#[cfg(test)]
mod tests;

pub(crate) use check::inline_bytes;
pub use codec::EncodedManifest;
pub use frame::{Footer, IndexEntry, MANIFEST_END_BYTES, MANIFEST_VERSION, Span};
pub use model::{
    Blob, ChannelPart, ChannelSide, Manifest, ManifestMeta, ManifestPart, OperatorMeta,
    OperatorStatePart, Parent, Position, Redistribution, SnapshotKind, StateMeta,
};
pub use pin::{Pin, SavepointClaim};
pub use record::{Claim, Condemn};
