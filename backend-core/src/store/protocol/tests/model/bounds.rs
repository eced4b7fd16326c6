//! How far a model goes, and what it breaks.

use crate::contract::SnapshotMode;

/// What is left out of the protocol, or done wrongly. Drivers do it; the machines are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Variant {
    /// Nothing is.
    Whole,
    /// A manifest that was created counts, without a look for a successor.
    NoLook,
    /// A new coordinator goes on from its base at once.
    NoAdoptionManifest,
    /// A commit in doubt is given up within its epoch.
    GivesUpInDoubt,
    /// A claim takes the epoch after the next.
    ClaimsWithGaps,
    /// A coordinator that is fenced claims again by itself.
    ClaimsAgain,
    /// Aborting a snapshot deletes the segments that were written for it.
    AbortDeletes,
    /// A segment that no manifest names goes if its snapshot is neither pending nor confirmed.
    CollectsDeadIds,
    /// The floor is the last confirmed snapshot, whatever is pending.
    FloorIsConfirmed,
    /// Nothing says what is condemned.
    NoCondemnRecord,
    /// A condemn record lists the manifests that were seen.
    RecordListsNames,
    /// A collection does not look for a successor before it deletes.
    SweepsUnlooked,
    /// A collection lists the pins when it is planned, and not after its record.
    PinsBeforeRecord,
    /// A manifest that is to be kept and is gone is taken to name nothing.
    GoneNamesNothing,
    /// Segments go before the manifests that name them.
    SegmentsFirst,
    /// A reader trusts its pin without reading the condemn records again.
    NoReread,
    /// Condemn records go as soon as there is a newer one.
    ForgetsRecords,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Doubtful {
    Claim,
    Manifest,
    Segment,
    Record,
    Pin,
    Deletion,
}

/// How much happens. What is 0 or empty does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// For reports.
    pub(super) name: &'static str,
    /// Each claims once.
    pub(super) coordinators: usize,
    /// What each coordinator triggers.
    pub(super) snapshots: u8,
    /// What each has pending at a time.
    pub(super) pending: usize,
    /// Of what kind they are, in this order and over again.
    pub(super) modes: &'static [SnapshotMode],
    /// A snapshot is triggered, written by both tasks and its manifest created in one step, if
    /// nobody else can see what lies in between.
    pub(super) is_coarse: bool,
    /// Answers that say nothing, of all processes together. The object lands at once, at any
    /// time later, or never.
    pub(super) doubts: u8,
    /// What such answers are about.
    pub(super) doubtful: &'static [Doubtful],
    /// Snapshots that are given up, of all coordinators together.
    pub(super) aborts: u8,
    /// Restarts within an epoch, of all coordinators together.
    pub(super) restarts: u8,
    /// What each coordinator collects.
    pub(super) collections: u8,
    /// What all coordinators collect together.
    pub(super) collections_all: u8,
    /// A sweep deletes all manifests in one step, and all segments in another.
    pub(super) in_batches: bool,
    /// Pins of the one reader.
    pub(super) pins: u8,
    /// Adoptions of something else than the newest.
    pub(super) fallbacks: u8,
    /// One in so many states is run to its end.
    pub(super) sample: u64,
}

/// One coordinator, whose snapshots refer to what is there, and nothing else.
pub(super) const LEAST: Bounds = Bounds {
    name: "least",
    coordinators: 1,
    snapshots: 1,
    pending: 1,
    modes: &[SnapshotMode::Incremental],
    is_coarse: false,
    doubts: 0,
    doubtful: &[],
    aborts: 0,
    restarts: 0,
    collections: 0,
    collections_all: u8::MAX,
    in_batches: false,
    pins: 0,
    fallbacks: 0,
    sample: 64,
};
