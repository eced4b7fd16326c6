//! What a manifest says, apart from how it is written.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::contract::TaskPart;
use crate::descriptor::{CodecId, SchemaVersion, StateDescriptor};
use crate::hash::HashId;
use crate::ids::{Digest, Epoch, JobId, OperatorId, SnapshotId, UniqueId};
use crate::names::ObjectName;
use crate::segment::SegmentLocation;

/// The place of a snapshot in its job. Positions order by epoch, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The epoch of the coordinator that committed it.
    pub epoch: Epoch,
    /// Its number.
    pub id: SnapshotId,
}

impl Position {
    /// The snapshot `id` of `epoch`.
    pub const fn new(epoch: Epoch, id: SnapshotId) -> Self {
        Self { epoch, id }
    }

    /// The name of its manifest.
    pub const fn object(self) -> ObjectName {
        ObjectName::Manifest(self.epoch, self.id)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.id)
    }
}

/// The snapshot that was the last confirmed one when another was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its place.
    pub position: Position,
    /// The unique id of its manifest.
    pub unique: UniqueId,
    /// Its identity.
    pub digest: Digest,
}

/// What the cut of a snapshot is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotKind {
    /// Exactly once, with no message in a channel.
    Aligned,
    /// Exactly once, with the messages in the channels.
    Unaligned,
    /// At least once: a restore may process some messages twice.
    AtLeastOnce,
    /// Aligned, self-contained, and owned by the user.
    Savepoint,
}

impl SnapshotKind {
    pub(super) const fn to_wire(self) -> u8 {
        match self {
            Self::Aligned => 1,
            Self::Unaligned => 2,
            Self::AtLeastOnce => 3,
            Self::Savepoint => 4,
        }
    }

    pub(super) const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Aligned),
            2 => Some(Self::Unaligned),
            3 => Some(Self::AtLeastOnce),
            4 => Some(Self::Savepoint),
            _ => None,
        }
    }
}

impl fmt::Display for SnapshotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aligned => "aligned",
            Self::Unaligned => "unaligned",
            Self::AtLeastOnce => "at least once",
            Self::Savepoint => "savepoint",
        })
    }
}

/// What a manifest says about the snapshot as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestMeta {
    /// The job.
    pub job: JobId,
    /// The snapshot's place.
    pub position: Position,
    /// What tells this manifest from every other attempt at the same place.
    pub unique: UniqueId,
    /// The last confirmed snapshot when this one was committed; `None` for a job's first.
    pub parent: Option<Parent>,
    /// The base that its trigger carried: no segment is older that is not in that snapshot.
    pub base: Option<SnapshotId>,
    /// When it was committed, in milliseconds since 1970. To read; nothing is decided by it.
    pub created_ms: u64,
    /// Entries that had expired at this time are dropped at a restore, in milliseconds since
    /// 1970.
    pub ttl_clock_ms: u64,
    /// What its cut is like.
    pub kind: SnapshotKind,
    /// The engine's own bytes for the job.
    pub engine: Bytes,
}

/// What a manifest says about an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorMeta {
    /// Its id, as its user chose it.
    pub id: OperatorId,
    /// The number of its tasks.
    pub parallelism: u32,
    /// How its keys are encoded.
    pub key_codec: CodecId,
    /// How its keys are hashed.
    pub hash: HashId,
    /// The states that any of its tasks knew. One name stands twice only if its tasks were under
    /// different times to live.
    pub states: Vec<StateMeta>,
}

/// What a manifest says about a state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateMeta {
    /// Its descriptor.
    pub descriptor: StateDescriptor,
    /// The schema versions that its entries may still have, ascending; never empty.
    pub versions: Vec<SchemaVersion>,
}

/// The part of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestPart {
    /// Its keyed state.
    pub task: Arc<TaskPart>,
    /// The messages that were in its channels. Version 1 writes none.
    pub channels: Vec<ChannelPart>,
    /// Its operator state, which belongs to no key. Version 1 writes none.
    pub operator_states: Vec<OperatorStatePart>,
}

impl ManifestPart {
    /// A part of keyed state only.
    pub fn keyed(task: TaskPart) -> Self {
        Self {
            task: Arc::new(task),
            channels: Vec::new(),
            operator_states: Vec::new(),
        }
    }

    /// Every place where the part keeps bytes.
    pub fn locations(&self) -> impl Iterator<Item = &SegmentLocation> {
        let segments = self.task.segments.iter().map(|s| &s.meta.location);
        let channels = self.channels.iter().map(|c| &c.blob.location);
        let operator = self.operator_states.iter().map(|s| &s.blob.location);
        segments.chain(channels).chain(operator)
    }
}

/// Bytes that a manifest refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Blob {
    /// Where they lie.
    pub location: SegmentLocation,
    /// Their number.
    pub bytes: u64,
    /// Their digest.
    pub digest: Digest,
}

/// On which side of a task a channel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelSide {
    /// It leads to the task.
    Input,
    /// It leads away.
    Output,
}

/// The messages of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelPart {
    /// Its side.
    pub side: ChannelSide,
    /// Its gate and its index within the gate.
    pub channel: (u32, u32),
    /// The messages, as the engine wrote them.
    pub blob: Blob,
}

/// How an operator state is dealt to other tasks at a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redistribution {
    /// Its elements are dealt out.
    Split,
    /// Every task gets all of them.
    Union,
    /// Every task has the same and gets one copy.
    Broadcast,
}

/// One operator state of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorStatePart {
    /// Its name.
    pub name: String,
    /// How it is dealt out.
    pub redistribution: Redistribution,
    /// Its elements.
    pub blob: Blob,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The snapshot as a whole.
    pub meta: ManifestMeta,
    /// Its operators.
    pub operators: Vec<OperatorMeta>,
    /// One part a task, in the order of operators and then of tasks.
    pub parts: Vec<ManifestPart>,
}

impl Manifest {
    /// The operator called `id`.
    pub fn operator(&self, id: &OperatorId) -> Option<&OperatorMeta> {
        self.operators.iter().find(|o| o.id == *id)
    }

    /// The parts of the operator called `id`, by task.
    pub fn parts_of<'a, 'b>(
        &'a self,
        id: &'b OperatorId,
    ) -> impl Iterator<Item = &'a ManifestPart> + use<'a, 'b> {
        self.parts.iter().filter(move |p| p.task.operator == *id)
    }

    /// The objects that it refers to, without repetition.
    pub fn objects(&self) -> std::collections::BTreeSet<ObjectName> {
        self.parts
            .iter()
            .flat_map(ManifestPart::locations)
            .filter_map(SegmentLocation::object)
            .collect()
    }
}
