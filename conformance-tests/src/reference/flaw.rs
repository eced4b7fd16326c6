//! What a reference backend can get wrong.

/// One thing that a [`crate::ReferenceBackend`] gets wrong on purpose, so that a named case
/// must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Flaw {
    /// Restores every entry of its parts, whatever its range.
    IgnoresRanges,
    /// Leaves deletes of single sub-keys out of increments.
    ForgetsDeletes,
    /// Leaves clears of whole keys out of increments.
    ForgetsClears,
    /// A clear hides what was written after it in the same generation.
    ClearsTooMuch,
    /// Restores the newest segment first.
    ReversesSegments,
    /// Puts new list elements in front.
    LosesListOrder,
    /// Numbers list elements from the start again after a restore.
    RenumbersLists,
    /// Drops an element that is in the list already.
    DropsDuplicates,
    /// Takes all namespaces for one.
    DropsNamespaces,
    /// Leaves the key's length out of its comparisons, so that key and namespace run together.
    JoinsKeyAndNamespace,
    /// Lists each key twice.
    ListsKeysTwice,
    /// Lists keys as they are when they are read, not as they were at the call.
    ListsLive,
    /// Writes what is there at the write, not at the freeze.
    SnapshotsLive,
    /// Passes over a segment that is missing.
    StartsFresh,
    /// Believes segments without a look at their digest.
    SkipsChecksums,
    /// An abort undoes what was written since the last durable snapshot.
    RollsBack,
    /// Takes a snapshot for durable when it is frozen.
    CoversTooEarly,
    /// Refers to durable segments although they are newer than the snapshot.
    RefersToNewer,
    /// Acknowledges a snapshot whose segment was not stored.
    HidesFailures,
    /// Writes everything into each increment.
    WritesEverything,
    /// Refers to older segments in a full snapshot.
    ReusesInFull,
    /// Keeps a note of each deletion for ever.
    KeepsTombstones,
    /// Copies its state when it is frozen.
    CopiesAtFreeze,
    /// Counts writes, not entries.
    CountsWrites,
    /// Takes keys that belong to other tasks.
    TakesForeignKeys,
    /// Takes values of any size.
    IgnoresLimits,
    /// Restores keys under another codec or hash function.
    IgnoresIdentity,
    /// Takes a state of one kind for one of another.
    IgnoresKinds,
    /// Takes an empty value for none.
    DropsEmptyValues,
    /// Leaves an emptied map behind.
    KeepsEmptyMaps,
    /// Ignores the bounds of a scan.
    IgnoresBounds,
    /// Takes triggers in any order.
    IgnoresTriggerOrder,
    /// Updates a key that stands twice in a batch once.
    UpdatesOnce,
    /// Never removes what has expired unless it is read.
    ForgetsSweeps,
    /// Sweeps away what lives.
    SweepsLiving,
    /// Stores what has expired.
    StoresExpired,
    /// Stores and restores what had expired.
    RestoresExpired,
    /// Its clock stands still.
    StopsItsClock,
    /// Reads what has expired as if it had not.
    ReadsExpired,
    /// Adds a timer that is there once more.
    AddsTimersTwice,
    /// Gives timers of one time in another order.
    MixesEqualTimes,
    /// Says of every timer that it is the next one.
    AlwaysChangesHead,
    /// Restores the timers of all keys.
    RestoresAllTimers,
    /// Forgets in increments that timers were removed.
    ForgetsPops,
}
