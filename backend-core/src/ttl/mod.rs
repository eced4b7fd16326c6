//! Time to live: entries that expire, for every backend.
//!
//! [`TimedStore`] stands around a backend's store and does all that a reader or writer can see:
//! it gives every value, list element and map entry of a state with a time to live its expiry,
//! hides what has expired, removes it when it is met, and refreshes what is read. Times come from
//! the environment that it is given, so tests move them.
//!
//! The store inside holds *sealed* bytes for such a state: the expiry, then the value. Its part
//! is to open them on their way into a snapshot ([`stored`]), to seal what it restores
//! ([`seal`]), and to sweep ([`is_expired`]). States without a time to live are not touched.
//!
//! | what leaves expired entries | where |
//! |---|---|
//! | a read that meets one | [`TimedStore`] |
//! | a bounded sweep | the store's `maintain` |
//! | a snapshot | [`stored`]; the live entry stays until one of the others meets it |
//! | a merge of segments | [`crate::segment`] |
//! | a restore | by the snapshot's own clock, whatever the new descriptor says |
//!
//! What changes when a state is registered with another time to live than it was stored with:
//!
//! | stored | registered | what happens |
//! |---|---|---|
//! | some | some, longer or shorter | it holds from the next write of each entry on |
//! | some | none | what had not expired at the snapshot is permanent; the next snapshot is full |
//! | none | some | old entries live for good until they are written, or, with [`crate::TimeToLive::covers_old`], from the registration on; then the next snapshot is full |

mod at;
mod edit;
mod seal;
mod store;
mod switch;
mod timing;
mod view;
mod walk;

pub use seal::{SEAL_BYTES, is_expired, open, seal, stored};
pub use store::TimedStore;
pub use switch::{Switch, reseal};
