//! The names of a job's objects: made and parsed here, nowhere else.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, SnapshotId, TaskIndex, UniqueId};

/// The name of a segment object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentName {
    /// The epoch whose trigger it was written under.
    pub epoch: Epoch,
    /// The snapshot that it was written for; for a spill or a merge, the last id that the task
    /// acknowledged, plus 1.
    pub snapshot: SnapshotId,
    /// The task that wrote it.
    pub task: TaskIndex,
    /// Its number among the task's segments of that snapshot.
    pub index: u32,
    /// What tells it from every other attempt at the same segment.
    pub unique: UniqueId,
}

/// The name of an object that holds small segments for which a manifest had no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartsName {
    /// The epoch of the coordinator that wrote it.
    pub epoch: Epoch,
    /// The snapshot that it was written for.
    pub snapshot: SnapshotId,
    /// The unique id of the manifest that it was written for.
    pub unique: UniqueId,
}

/// A folder of a job's directory that is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Folder {
    /// The claims.
    Epochs,
    /// The manifests.
    Snapshots,
    /// The small segments that manifests had no room for.
    Parts,
    /// The segments.
    Segments,
    /// The condemn records.
    Collect,
    /// The pins.
    Pins,
    /// The claims of other jobs on savepoints.
    Claimed,
    /// What probes left behind.
    Probe,
}

impl Folder {
    /// Every folder.
    pub const ALL: [Self; 8] = [
        Self::Epochs,
        Self::Snapshots,
        Self::Parts,
        Self::Segments,
        Self::Collect,
        Self::Pins,
        Self::Claimed,
        Self::Probe,
    ];

    /// The folder's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Epochs => "epochs",
            Self::Snapshots => "snapshots",
            Self::Parts => "parts",
            Self::Segments => "segments",
            Self::Collect => "collect",
            Self::Pins => "pins",
            Self::Claimed => "claimed",
            Self::Probe => "probe",
        }
    }
}

/// The name of an object in a job's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ObjectName {
    /// `epochs/{epoch}`: a claim.
    Epoch(Epoch),
    /// `snapshots/{epoch}-{id}`: a manifest.
    Manifest(Epoch, SnapshotId),
    /// `parts/{epoch}-{id}-{unique}`: the inline state that a manifest has no room for.
    Parts(PartsName),
    /// `segments/{epoch}-{id}-{task}-{index}-{unique}`.
    Segment(SegmentName),
    /// `collect/{epoch}-{index}`: a condemn record.
    Collect(Epoch, u64),
    /// `pins/{unique}`.
    Pin(UniqueId),
    /// `claimed/{epoch}-{id}`: the savepoint at that place belongs to another job.
    Claimed(Epoch, SnapshotId),
    /// `probe/{unique}`: written when a store is opened, to see what it can do, and removed.
    Probe(UniqueId),
}

impl fmt::Display for ObjectName {
    /// Numbers have 20 digits (indexes 10), so that names sort as numbers do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoch(epoch) => write!(f, "epochs/{:020}", epoch.0),
            Self::Manifest(epoch, id) => write!(f, "snapshots/{:020}-{:020}", epoch.0, id.0),
            Self::Parts(name) => write!(
                f,
                "parts/{:020}-{:020}-{}",
                name.epoch.0, name.snapshot.0, name.unique
            ),
            Self::Segment(name) => write!(
                f,
                "segments/{:020}-{:020}-{:010}-{:010}-{}",
                name.epoch.0, name.snapshot.0, name.task.0, name.index, name.unique
            ),
            Self::Collect(epoch, index) => write!(f, "collect/{:020}-{index:020}", epoch.0),
            Self::Pin(unique) => write!(f, "pins/{unique}"),
            Self::Claimed(epoch, id) => write!(f, "claimed/{:020}-{:020}", epoch.0, id.0),
            Self::Probe(unique) => write!(f, "probe/{unique}"),
        }
    }
}

impl FromStr for ObjectName {
    type Err = Error;

    /// Only the form that [`fmt::Display`] writes is a name.
    fn from_str(text: &str) -> Result<Self> {
        parse(text)
            .filter(|name| name.to_string() == text)
            .ok_or_else(|| {
                Error::new(ErrorKind::Invalid, "not the name of an object of a job")
                    .with("name", text.escape_default())
            })
    }
}

fn parse(text: &str) -> Option<ObjectName> {
    let (folder, name) = text.split_once('/')?;
    let mut fields = Fields(name.split('-'));
    Some(match folder {
        "epochs" => ObjectName::Epoch(fields.epoch()?),
        "snapshots" => ObjectName::Manifest(fields.epoch()?, fields.snapshot()?),
        "parts" => ObjectName::Parts(PartsName {
            epoch: fields.epoch()?,
            snapshot: fields.snapshot()?,
            unique: fields.unique()?,
        }),
        "segments" => ObjectName::Segment(SegmentName {
            epoch: fields.epoch()?,
            snapshot: fields.snapshot()?,
            task: TaskIndex(fields.number()?),
            index: fields.number()?,
            unique: fields.unique()?,
        }),
        "collect" => ObjectName::Collect(fields.epoch()?, fields.number()?),
        "pins" => ObjectName::Pin(fields.unique()?),
        "claimed" => ObjectName::Claimed(fields.epoch()?, fields.snapshot()?),
        "probe" => ObjectName::Probe(fields.unique()?),
        _ => return None,
    })
}

/// The fields of a name behind its folder.
struct Fields<'a>(std::str::Split<'a, char>);

impl Fields<'_> {
    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }

    /// A number with one after it: no object of a job has the last of all.
    fn counted(&mut self) -> Option<u64> {
        self.number().filter(|number| *number < u64::MAX)
    }

    fn epoch(&mut self) -> Option<Epoch> {
        self.counted().map(Epoch)
    }

    fn snapshot(&mut self) -> Option<SnapshotId> {
        self.counted().map(SnapshotId)
    }

    fn unique(&mut self) -> Option<UniqueId> {
        let text = self.0.next()?;
        u128::from_str_radix(text, 16).ok().map(UniqueId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back_and_sorts_as_its_numbers() {
        let segment = |epoch, index| {
            ObjectName::Segment(SegmentName {
                epoch: Epoch(epoch),
                snapshot: SnapshotId(2),
                task: TaskIndex(3),
                index,
                unique: UniqueId(0xabc),
            })
        };
        let names = [
            ObjectName::Epoch(Epoch(9)),
            ObjectName::Epoch(Epoch(10)),
            ObjectName::Manifest(Epoch(1), SnapshotId(u64::MAX - 1)),
            ObjectName::Parts(PartsName {
                epoch: Epoch(1),
                snapshot: SnapshotId(2),
                unique: UniqueId(u128::MAX),
            }),
            segment(1, u32::MAX),
            segment(2, 0),
            ObjectName::Collect(Epoch(3), 4),
            ObjectName::Pin(UniqueId(0)),
            ObjectName::Claimed(Epoch(5), SnapshotId(6)),
            ObjectName::Probe(UniqueId(7)),
        ];
        for name in names {
            assert_eq!(
                name.to_string().parse::<ObjectName>().expect("parses"),
                name
            );
        }
        assert!(names[0].to_string() < names[1].to_string());
        assert!(segment(1, u32::MAX).to_string() < segment(2, 0).to_string());
    }

    #[test]
    fn near_misses_are_refused() {
        for text in [
            "",
            "epochs/",
            "epochs/1",
            "epochs/+0000000000000000001",
            "epochs/00000000000000000001-1",
            "snapshots/00000000000000000001",
            "other/00000000000000000001",
            "pins/ABC",
            // The next one would have no number.
            "epochs/18446744073709551615",
            "snapshots/00000000000000000001-18446744073709551615",
        ] {
            assert!(text.parse::<ObjectName>().is_err(), "{text:?} is no name");
        }
    }
}
