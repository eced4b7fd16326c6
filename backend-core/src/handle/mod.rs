//! Typed state over the bytes of a [`crate::KeyedStore`].
//!
//! A handle is a small `Copy` id with types: [`ValueState`], [`ListState`], [`MapState`]; with a
//! function, [`ReducingState`] and [`AggregatingState`]; of all keys together, [`TimerQueue`]. It is
//! registered once per store, and its operations take the store and a [`crate::StateKey`], which
//! is encoded and hashed once per record and used for every state:
//!
//! ```
//! use backend_core::{KeyedStore, Result, ValueState};
//!
//! async fn count(store: &mut dyn KeyedStore, user: &str) -> Result<u64> {
//!     let visits = ValueState::<u64>::register(&mut *store, "visits")?; // once per store
//!     let key = visits.key(user)?;
//!     let n = visits.get(&mut *store, &key).await?.unwrap_or(0);
//!     visits.put(&mut *store, &key, &(n + 1))?;
//!     Ok(n + 1)
//! }
//! ```
//!
//! A handle belongs to the store that registered it. Given to another one it means whatever state
//! has its index there, so keep handles and their store together.
//!
//! Reads and read-modify-writes answer with a [`crate::Fetch`]: await it, or call
//! [`crate::Fetch::wait`]. What is at hand is answered at once; dropping a fetch that is not
//! ready changes nothing. All of them are `Send` where the types are.

mod aggregating;
mod base;
mod cursor;
mod key;
mod key_stream;
mod list;
mod map;
mod map_cursor;
mod map_merge;
mod options;
mod reducing;
mod sources;
mod timers;
mod types;
mod value;

pub use aggregating::{Aggregate, AggregatingState};
pub use key::KeyEncoder;
pub use key_stream::KeyStream;
pub use list::{ListCursor, ListState};
pub use map::MapState;
pub use map_cursor::MapCursor;
pub use options::StateOptions;
pub use reducing::ReducingState;
pub use timers::{DueTimer, TimerQueue};
pub use value::ValueState;

#[cfg(test)]
mod tests;
