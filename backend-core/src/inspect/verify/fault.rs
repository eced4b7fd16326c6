//! What is wrong with an object.

use std::fmt;

use crate::error::Error;
use crate::manifest::Position;
use crate::segment::FlawKind;

/// In which way an object is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// It is not there.
    Missing,
    /// It is longer or shorter than its manifest says.
    Size,
    /// It is another segment, by the unique id in its header.
    Foreign,
    /// A segment's header is damaged.
    Header,
    /// The index of a region is damaged, or points elsewhere.
    Index,
    /// A filter is damaged, or excludes a key that its region holds.
    Filter,
    /// A block is damaged.
    Block,
    /// Entries, blocks, regions or the segments of a run are not in the order of their keys.
    Order,
    /// A key is filed under another shard than its hash says.
    Shard,
    /// A segment holds more, fewer or other entries than its manifest says.
    Counts,
    /// A segment's footer is damaged, or says something else than its manifest.
    Footer,
    /// All that was looked at is in order, and the digest differs nevertheless.
    Digest,
    /// An entry does not fit the states that its snapshot knows.
    State,
    /// A manifest cannot be read, or contradicts itself.
    Manifest,
    /// The snapshot before it is there, and is another one than the manifest says.
    Parent,
    /// A claim or condemn record is damaged or missing: nobody can claim the job.
    Record,
    /// It has a name that no version of this crate gives.
    Name,
}

impl FaultKind {
    /// The kind in lower-case words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Size => "size",
            Self::Foreign => "another segment",
            Self::Header => "header",
            Self::Index => "index",
            Self::Filter => "filter",
            Self::Block => "block",
            Self::Order => "order",
            Self::Shard => "shard",
            Self::Counts => "counts",
            Self::Footer => "footer",
            Self::Digest => "digest",
            Self::State => "state",
            Self::Manifest => "manifest",
            Self::Parent => "parent",
            Self::Record => "record",
            Self::Name => "name",
        }
    }

    pub(super) fn of_flaw(kind: FlawKind) -> Self {
        match kind {
            FlawKind::Foreign => Self::Foreign,
            FlawKind::Header => Self::Header,
            FlawKind::Index => Self::Index,
            FlawKind::Filter => Self::Filter,
            FlawKind::Block => Self::Block,
            FlawKind::Order => Self::Order,
            FlawKind::Shard => Self::Shard,
            FlawKind::Counts => Self::Counts,
            FlawKind::Footer => Self::Footer,
            FlawKind::Digest => Self::Digest,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that is wrong: the first such thing of an object.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The name of the object; for an inline segment that of its manifest.
    pub object: String,
    /// In which way it is wrong.
    pub kind: FaultKind,
    /// What was expected, what was found, and where.
    pub error: Error,
    /// The snapshots that cannot be restored for it, ascending; perhaps none.
    pub hurts: Vec<Position>,
}
