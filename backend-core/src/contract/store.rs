//! The state of one task.

use crate::contract::snapshot::{PendingSnapshot, Trigger};
use crate::contract::task::TaskScope;
use crate::contract::view::StateView;
use crate::descriptor::{StateDescriptor, StateId};
use crate::error::Result;
use crate::fetch::Fetch;
use crate::ids::SnapshotId;
use crate::key::StateKey;
use crate::range::HashRange;
use crate::scan::{EntryBatch, KeyCursor, SubKeyRange};
use crate::timer::{Timer, TimerBatch};
use crate::value::{ValueBatch, ValueEdit, ValueRef};

/// How full a store's memory is. A write has always been applied when it returns this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pressure {
    /// Go on.
    #[default]
    None,
    /// Call [`KeyedStore::maintain`] when it suits.
    Soon,
    /// Await [`KeyedStore::maintain`] before the next record.
    Stop,
}

/// What adding a timer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerAdded {
    /// How full the store is.
    pub pressure: Pressure,
    /// Whether the least time of the queue is another one now: a sleeper is to be set anew.
    pub head_changed: bool,
}

/// What [`KeyedStore::try_update`] calls with the old value.
pub type EditFn<'f> = dyn FnMut(Option<&[u8]>, &mut ValueEdit) + 'f;

/// What [`KeyedStore::try_update_many`] calls with the index of a key and its old value.
pub type EditManyFn<'f> = dyn FnMut(usize, Option<&[u8]>, &mut ValueEdit) + 'f;

/// The keyed state of one task: one owner, and `&mut` is the only lock.
///
/// Bytes at this line; [`crate::ValueState`], [`crate::ListState`] and [`crate::MapState`] put
/// types above it.
///
/// What holds for every implementation:
/// - Writes are applied before they return and never wait for I/O.
/// - A read shows every write that returned before it.
/// - Reads are ready when the answer is in memory. A pending read awaits channels only, so any
///   executor can drive it, and dropping it changes nothing.
/// - A call with a state of another kind is refused with [`crate::ErrorKind::Mismatch`], a key
///   outside the task's range with [`crate::ErrorKind::Invalid`].
pub trait KeyedStore: Send {
    /// The task that this store belongs to.
    fn scope(&self) -> &TaskScope;

    /// Makes a state known, or finds it again: by name, in what was restored or registered.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Mismatch`] if it is there under another kind, codec or schema; the
    /// error says which field differs. [`crate::ErrorKind::Limit`] for too many states.
    fn register(&mut self, descriptor: &StateDescriptor) -> Result<StateId>;

    /// Every state that was registered or restored, in no particular order.
    fn states(&self) -> Vec<StateDescriptor>;

    /// The value of `key`.
    fn get<'a>(&'a mut self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>>;

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] for a value above [`crate::limits::VALUE_BYTES_MAX`].
    fn put(&mut self, state: StateId, key: &StateKey, value: &[u8]) -> Result<Pressure>;

    /// Removes the value, the list or the whole map of `key`.
    fn clear(&mut self, state: StateId, key: &StateKey) -> Result<Pressure>;

    /// Reads and writes the value of `key` with one look-up, if it is at hand. `None` means
    /// that it is not: await [`KeyedStore::prefetch`] and try again; nothing was called.
    fn try_update(
        &mut self,
        state: StateId,
        key: &StateKey,
        edit: &mut EditFn<'_>,
    ) -> Option<Result<Pressure>>;

    /// The values of `keys`, appended to `out` in their order.
    fn get_many<'a>(
        &'a mut self,
        state: StateId,
        keys: &'a [StateKey],
        out: &'a mut ValueBatch,
    ) -> Fetch<'a, ()>;

    /// [`KeyedStore::try_update`] for each of `keys` in order, with its index; all are at hand, or
    /// none is updated and the answer is `None`. A key that stands twice is updated twice.
    fn try_update_many(
        &mut self,
        state: StateId,
        keys: &[StateKey],
        edit: &mut EditManyFn<'_>,
    ) -> Option<Result<Pressure>>;

    /// Appends an element to the list of `key`, without reading it.
    fn list_append(&mut self, state: StateId, key: &StateKey, element: &[u8]) -> Result<Pressure>;

    /// Replaces the list of `key`. No elements leave no list.
    fn list_replace(
        &mut self,
        state: StateId,
        key: &StateKey,
        elements: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Pressure>;

    /// Replaces or removes the element of the list of `key` that stands at `sub_key`, as a scan
    /// gave it. The others stay where they are.
    fn list_set(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        element: Option<&[u8]>,
    ) -> Result<Pressure>;

    /// The value of `sub_key` in the map of `key`.
    fn map_get<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>>;

    /// Sets the value of `sub_key` in the map of `key`.
    fn map_put(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        value: &[u8],
    ) -> Result<Pressure>;

    /// Removes `sub_key` from the map of `key`, whether it is there or not.
    fn map_remove(&mut self, state: StateId, key: &StateKey, sub_key: &[u8]) -> Result<Pressure>;

    /// The next entries of the map or list of `key` within `range`, in order, appended to
    /// `batch` until it is full or complete. To go on, scan again from behind its last sub-key.
    fn scan<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()>;

    /// Adds a timer of `key`, and of its namespace, that is due at `time`. One that is there stays
    /// as it is; the answer does not tell.
    fn timer_add(&mut self, state: StateId, key: &StateKey, time: i64) -> Result<TimerAdded>;

    /// Removes a timer, and says whether it was there.
    fn timer_remove<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        time: i64,
    ) -> Fetch<'a, bool>;

    /// The least time of all timers.
    fn timer_next(&mut self, state: StateId) -> Fetch<'_, Option<i64>>;

    /// Removes the timers that are due at `until` or earlier, in order, and adds them to `batch`
    /// until it is full or complete.
    fn timers_pop<'a>(
        &'a mut self,
        state: StateId,
        until: i64,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()>;

    /// The timers of keys whose hash lies in `range`, in order, behind `after` if there is one,
    /// added to `batch` until it is full or complete. They stay.
    fn timers_scan<'a>(
        &'a mut self,
        state: StateId,
        range: HashRange,
        after: Option<Timer<'a>>,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()>;

    /// The keys that have a value, list or map, each with its namespace: those in `namespace`,
    /// or all. The cursor shows the state as it is now, whatever is written while it is read.
    fn keys(&mut self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>>;

    /// The exact number of values, list elements, map entries or timers of a state.
    fn entry_count(&mut self, state: StateId) -> Fetch<'_, u64>;

    /// Brings `keys` to hand and keeps them there until they are read or a snapshot is taken.
    /// The future borrows nothing; misses overlap.
    fn prefetch(&mut self, state: StateId, keys: &[StateKey]) -> Fetch<'static, ()>;

    /// The state as it is now, to be read on another thread while the owner goes on.
    fn view(&mut self) -> Result<Box<dyn StateView>>;

    /// Freezes the state for a snapshot: the only pause. What is written later does not show in
    /// it. The answer writes the snapshot from anywhere.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the trigger's id is not above every earlier one.
    fn snapshot(&mut self, trigger: &Trigger) -> Result<PendingSnapshot>;

    /// Tells the store that a snapshot was confirmed.
    fn confirm(&mut self, snapshot: SnapshotId);

    /// Tells the store that a snapshot will not be confirmed. It rolls nothing back.
    fn abort(&mut self, snapshot: SnapshotId);

    /// Does bounded background work: drains, sweeps. Ready if there is none.
    fn maintain(&mut self) -> Fetch<'_, Pressure>;

    /// The bytes of memory that the state takes, as the store accounts for them.
    fn memory_bytes(&self) -> u64;
}
