//! Acknowledgements put together: operators once, parts in order, small state within its limit.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use crate::contract::TaskPart;
use crate::descriptor::{StateDescriptor, StateUid};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Digest, OperatorId, TaskIndex};
use crate::limits::STATES_MAX;
use crate::manifest::limits::INLINE_BYTES_MAX;
use crate::manifest::{ManifestPart, OperatorMeta, StateMeta, inline_bytes};
use crate::names::PartsName;
use crate::segment::{SegmentLocation, SegmentMeta};

/// The operators and parts of a manifest.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    pub(super) operators: Vec<OperatorMeta>,
    pub(super) parts: Vec<ManifestPart>,
    /// The bytes of a parts object, if the manifest has no room for all small state.
    pub(super) packed: Option<Bytes>,
}

/// Puts the parts of all tasks together. Small state beyond the limit of a manifest is to be
/// stored under `packed_name` first.
///
/// # Errors
/// [`ErrorKind::Invalid`] if a task stands twice or an inline segment is not what it says;
/// [`ErrorKind::Mismatch`] if the tasks of an operator differ in hash, key codec or the
/// descriptor of a state.
pub(super) fn assemble(parts: Vec<TaskPart>, packed_name: PartsName) -> Result<Assembled> {
    let mut by_operator = BTreeMap::<OperatorId, BTreeMap<TaskIndex, TaskPart>>::new();
    for part in parts {
        check_inline_bytes(&part)?;
        let (operator, task) = (part.operator.clone(), part.task);
        let tasks = by_operator.entry(operator.clone()).or_default();
        if tasks.insert(task, part).is_some() {
            return Err(Error::new(ErrorKind::Invalid, "a task acknowledged twice")
                .with("operator", operator)
                .with("task", task));
        }
    }
    let mut assembled = Assembled::default();
    for (id, tasks) in by_operator {
        assembled.operators.push(describe(id, &tasks)?);
        let parts = tasks.into_values().map(ManifestPart::keyed);
        assembled.parts.extend(parts);
    }
    assembled.packed = pack(&mut assembled.parts, packed_name, INLINE_BYTES_MAX);
    Ok(assembled)
}

fn check_inline_bytes(part: &TaskPart) -> Result<()> {
    for segment in &part.segments {
        let meta = &segment.meta;
        let is_true = match &meta.location {
            SegmentLocation::Inline(bytes) => {
                bytes.len() as u64 == meta.bytes && Digest::of(bytes) == meta.digest
            }
            SegmentLocation::Object(_) | SegmentLocation::Packed { .. } => true,
        };
        if !is_true {
            return Err(Error::new(
                ErrorKind::Invalid,
                "an inline segment is not what its size and digest say",
            )
            .with("operator", &part.operator)
            .with("task", part.task));
        }
    }
    Ok(())
}

fn describe(id: OperatorId, tasks: &BTreeMap<TaskIndex, TaskPart>) -> Result<OperatorMeta> {
    let first = tasks.values().next().expect("an operator has a part");
    let mut states = States::default();
    for part in tasks.values() {
        let differs = |field: &'static str, expected: String, got: String| {
            Error::new(ErrorKind::Mismatch, "the tasks of an operator differ")
                .with("operator", &id)
                .with("task", part.task)
                .with("field", field)
                .expected_got(expected, got)
        };
        if part.hash != first.hash {
            return Err(differs(
                "hash",
                first.hash.to_string(),
                part.hash.to_string(),
            ));
        }
        if part.key_codec != first.key_codec {
            let (expected, got) = (first.key_codec.to_string(), part.key_codec.to_string());
            return Err(differs("key codec", expected, got));
        }
        for state in &part.states {
            states
                .add(state)
                .map_err(|e| e.with("operator", &id).with("task", part.task))?;
        }
    }
    Ok(OperatorMeta {
        parallelism: tasks.len() as u32,
        key_codec: first.key_codec.clone(),
        hash: first.hash,
        states: states.all,
        id,
    })
}

/// The states of an operator, each once.
#[derive(Default)]
struct States {
    all: Vec<StateMeta>,
    by_uid: HashMap<StateUid, Vec<usize>>,
}

impl States {
    /// Adds a state. Only its time to live may differ from what another task said.
    fn add(&mut self, state: &StateDescriptor) -> Result<()> {
        let known = self.by_uid.entry(state.uid()).or_default();
        for i in known.iter() {
            let other = &self.all[*i].descriptor;
            if other == state {
                return Ok(());
            }
            if other.name != state.name {
                return Err(Error::new(
                    ErrorKind::Mismatch,
                    "the names of two states have one uid",
                )
                .with("state", &state.name)
                .with("other", &other.name));
            }
            other.check_compatible(state)?;
        }
        if self.all.len() >= STATES_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "an operator has too many states")
                    .with("states_max", STATES_MAX),
            );
        }
        known.push(self.all.len());
        self.all.push(StateMeta {
            descriptor: state.clone(),
            versions: vec![state.schema],
        });
        Ok(())
    }
}

/// Moves the inline segments of parts beyond `bytes_max` in all into one object.
fn pack(parts: &mut [ManifestPart], name: PartsName, bytes_max: u64) -> Option<Bytes> {
    let mut inline = 0;
    let mut packed = Vec::new();
    for part in parts {
        let bytes = inline_bytes(part);
        if inline + bytes <= bytes_max {
            inline += bytes;
            continue;
        }
        let task = Arc::make_mut(&mut part.task);
        for segment in &mut task.segments {
            if let SegmentLocation::Inline(bytes) = &segment.meta.location {
                let location = SegmentLocation::Packed {
                    name,
                    offset: packed.len() as u64,
                };
                packed.extend_from_slice(bytes);
                segment.meta = Arc::new(SegmentMeta {
                    location,
                    ..SegmentMeta::clone(&segment.meta)
                });
            }
        }
    }
    (!packed.is_empty()).then(|| packed.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::Generation;
    use crate::hash::HashId;
    use crate::ids::{Epoch, SnapshotId, UniqueId};
    use crate::range::HashRange;
    use crate::segment::{SegmentRef, Tier};

    fn part(task: u32, bytes: &'static [u8]) -> ManifestPart {
        let range = HashRange::of_task(task, 3);
        let meta = SegmentMeta {
            location: SegmentLocation::Inline(Bytes::from_static(bytes)),
            bytes: bytes.len() as u64,
            digest: Digest::of(bytes),
            puts: 1,
            deletes: 0,
            delete_prefixes: 0,
            shadowed_bytes: 0,
            generations: (Generation(1), Generation(1)),
            shards: (0, 0),
            expires_ms_min: None,
            regions: Vec::new(),
        };
        ManifestPart::keyed(TaskPart {
            operator: OperatorId::new("count").expect("a name"),
            task: TaskIndex(task),
            range,
            key_codec: crate::descriptor::CodecId::new("utf8"),
            hash: HashId::XXH3_64,
            generation_max: Generation(1),
            states: Vec::new(),
            segments: vec![SegmentRef {
                meta: meta.into(),
                clip: range,
                tier: Tier::BASE,
                run: 0,
            }],
            engine: Bytes::new(),
        })
    }

    #[test]
    fn parts_beyond_the_limit_are_packed_into_one_object() {
        let name = PartsName {
            epoch: Epoch(1),
            snapshot: SnapshotId(2),
            unique: UniqueId(3),
        };
        let contents: [&'static [u8]; 3] = [b"first", b"second", b"third"];
        let mut parts: Vec<_> = (0..).zip(contents).map(|(i, c)| part(i, c)).collect();
        let packed = pack(&mut parts, name, 5).expect("there is no room for all");
        assert_eq!(packed, "secondthird");
        let location = |i: usize| parts[i].task.segments[0].meta.location.clone();
        assert_eq!(location(0), SegmentLocation::Inline("first".into()));
        assert_eq!(location(1), SegmentLocation::Packed { name, offset: 0 });
        assert_eq!(location(2), SegmentLocation::Packed { name, offset: 6 });
    }
}
