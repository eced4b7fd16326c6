//! Timers of all keys, in the order of time.

use std::marker::PhantomData;

use crate::codec::KeyCodec;
use crate::contract::{KeyedStore, TimerAdded};
use crate::descriptor::{StateDescriptor, StateId};
use crate::error::Result;
use crate::fetch::Fetch;
use crate::handle::key::check_key_codec;
use crate::handle::types::Types;
use crate::hash::KeyHasher;
use crate::key::StateKey;
use crate::range::HashRange;
use crate::timer::{Timer, TimerBatch};

/// The timers of a task: a set of (time, key, namespace), ordered by time, then by the length of
/// the encoded key, its bytes, and those of the namespace.
///
/// Times are the engine's own: event time or processing time, in whatever unit. Nothing fires by
/// itself: the engine pops what is due when its clock or watermark has moved.
///
/// ```
/// use backend_core::{KeyedStore, Result, TimerQueue};
///
/// /// Sets an alarm for `user`, and says whether the engine has to wake up earlier than it would.
/// fn remind(store: &mut dyn KeyedStore, user: &str, at_ms: i64) -> Result<bool> {
///     let alarms = TimerQueue::<String>::register(store, "alarms")?; // once per store
///     let key = alarms.key(user)?;
///     Ok(alarms.add(store, &key, at_ms)?.head_changed)
/// }
///
/// fn on_watermark(store: &mut dyn KeyedStore, alarms: TimerQueue<String>, now_ms: i64) -> Result<()> {
///     loop {
///         let due = alarms.pop_until(store, now_ms, 1_000).wait()?;
///         if due.is_empty() {
///             return Ok(());
///         }
///         for timer in due {
///             println!("{} is reminded of {}", timer.key, timer.time);
///         }
///     }
/// }
/// ```
pub struct TimerQueue<K, N = ()> {
    state: StateId,
    hasher: KeyHasher,
    types: Types<(K, N)>,
}

/// A timer, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DueTimer<K, N> {
    /// When it is due.
    pub time: i64,
    /// Whose it is.
    pub key: K,
    /// Its namespace, for example the window that it closes.
    pub namespace: N,
}

// Derived, these would ask the same of the types of keys and namespaces.
impl<K, N> Clone for TimerQueue<K, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, N> Copy for TimerQueue<K, N> {}

impl<K, N> std::fmt::Debug for TimerQueue<K, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TimerQueue").field(&self.state).finish()
    }
}

impl<K: KeyCodec, N: KeyCodec> TimerQueue<K, N> {
    /// Makes the timers `name` known to `store`, or finds them again.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`]; [`crate::ErrorKind::Mismatch`] if the task's keys are not
    /// of type `K`.
    pub fn register(store: &mut dyn KeyedStore, name: &str) -> Result<Self> {
        check_key_codec::<K>(store.scope())?;
        let mut descriptor = StateDescriptor::timers(name);
        if N::id() != <() as KeyCodec>::id() {
            descriptor = descriptor.with_namespace(N::id());
        }
        Ok(Self {
            state: store.register(&descriptor)?,
            hasher: store.scope().hasher,
            types: PhantomData,
        })
    }

    /// The state's id in the store that registered it.
    pub fn id(&self) -> StateId {
        self.state
    }

    /// `key`, encoded and hashed. It serves every state of the store.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if its bytes are more than [`crate::limits::KEY_BYTES_MAX`].
    pub fn key<Q: KeyCodec<Owned = K::Owned> + ?Sized>(&self, key: &Q) -> Result<StateKey> {
        StateKey::encode(&self.hasher, key)
    }

    /// `key` in a namespace, for example the window that the timer closes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the namespace's bytes are more than
    /// [`crate::limits::NAMESPACE_BYTES_MAX`].
    pub fn namespaced<Q: KeyCodec<Owned = N::Owned> + ?Sized>(
        &self,
        key: &StateKey,
        namespace: &Q,
    ) -> Result<StateKey> {
        key.namespaced(namespace)
    }

    /// Adds a timer. One that is there already changes nothing.
    ///
    /// # Errors
    /// Those of [`KeyedStore::timer_add`].
    pub fn add(&self, store: &mut dyn KeyedStore, key: &StateKey, time: i64) -> Result<TimerAdded> {
        store.timer_add(self.state, key, time)
    }

    /// Removes a timer, and says whether it was there.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        time: i64,
    ) -> Fetch<'a, bool> {
        store.timer_remove(self.state, key, time)
    }

    /// The least time of all timers.
    ///
    /// # Errors
    /// Those of the store.
    pub fn next_time<'a>(&self, store: &'a mut dyn KeyedStore) -> Fetch<'a, Option<i64>> {
        store.timer_next(self.state)
    }

    /// Removes the timers that are due at `until` or earlier, in order, and gives them: at most
    /// `timers_max`, so as not to hold all of them at a time. If it gives so many, call again.
    ///
    /// # Errors
    /// Those of the store; [`crate::ErrorKind::Corrupt`] for bytes that are no key or namespace of
    /// these types, in which case these timers have been removed.
    ///
    /// # Panics
    /// If `timers_max` is 0.
    pub fn pop_until<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        until: i64,
        timers_max: usize,
    ) -> Fetch<'a, Vec<DueTimer<K::Owned, N::Owned>>>
    where
        K: 'a,
        N: 'a,
        K::Owned: Send,
        N::Owned: Send,
    {
        let state = self.state;
        let mut batch = TimerBatch::new(timers_max);
        Fetch::eager(async move {
            store.timers_pop(state, until, &mut batch).await?;
            batch.iter().map(decode::<K, N>).collect()
        })
    }

    /// All timers of keys whose hash lies in `range`, in order; they stay. Each batch is decoded as
    /// it is read, so `visit` may see many without all of them in memory.
    ///
    /// # Errors
    /// Those of the store, of decoding and of `visit`.
    pub fn for_each_in<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        range: HashRange,
        mut visit: impl FnMut(DueTimer<K::Owned, N::Owned>) -> Result<()> + Send + 'a,
    ) -> Fetch<'a, ()>
    where
        K: 'a,
        N: 'a,
        K::Owned: Send,
        N::Owned: Send,
    {
        let state = self.state;
        Fetch::eager(async move {
            let mut last: Option<(i64, Vec<u8>, Vec<u8>)> = None;
            let mut batch = TimerBatch::default();
            loop {
                batch.clear();
                let after = last.as_ref().map(|(time, key, namespace)| Timer {
                    time: *time,
                    key,
                    namespace,
                });
                store.timers_scan(state, range, after, &mut batch).await?;
                for timer in batch.iter() {
                    visit(decode::<K, N>(timer)?)?;
                }
                if batch.is_complete() {
                    return Ok(());
                }
                let end = batch.iter().next_back();
                last = end.map(|t| (t.time, t.key.to_vec(), t.namespace.to_vec()));
            }
        })
    }

    /// The exact number of timers.
    ///
    /// # Errors
    /// Those of the store.
    pub fn count<'a>(&self, store: &'a mut dyn KeyedStore) -> Fetch<'a, u64> {
        store.entry_count(self.state)
    }
}

fn decode<K: KeyCodec, N: KeyCodec>(timer: Timer<'_>) -> Result<DueTimer<K::Owned, N::Owned>> {
    Ok(DueTimer {
        time: timer.time,
        key: K::decode(timer.key)?,
        namespace: N::decode(timer.namespace)?,
    })
}
