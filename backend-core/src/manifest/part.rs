//! One task's part of a manifest.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::contract::TaskPart;
use crate::descriptor::StateDescriptor;
use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::ids::{Digest, TaskIndex};
use crate::limits::ENGINE_BYTES_MAX;
use crate::manifest::model::{
    ChannelPart, ChannelSide, ManifestPart, OperatorMeta, OperatorStatePart, Redistribution,
};
use crate::manifest::segment::{
    BLOB_BYTES_MIN, SEGMENT_BYTES_MIN, read_blob, read_range, read_segment, write_blob,
    write_range, write_segment,
};
use crate::segment::SegmentMeta;
use crate::wire::{Reader, Writer};

const STATE_BYTES: usize = 4;
const CHANNEL_BYTES_MIN: usize = 9 + BLOB_BYTES_MIN;
const OPERATOR_STATE_BYTES_MIN: usize = 5 + BLOB_BYTES_MIN;

/// Where each descriptor of an operator stands in its list, by name.
pub(super) type StateIndex<'a> = HashMap<&'a str, Vec<u32>>;

pub(super) fn index_states(operator: &OperatorMeta) -> StateIndex<'_> {
    let mut index = StateIndex::new();
    for (i, state) in operator.states.iter().enumerate() {
        let places = index.entry(&state.descriptor.name).or_default();
        places.push(i as u32);
    }
    index
}

/// Writes a part of operator `index`, whose states are found in `places`.
pub(super) fn write_part(
    index: u32,
    operator: &OperatorMeta,
    places: &StateIndex<'_>,
    part: &ManifestPart,
) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    let task = &part.task;
    out.u32(index);
    out.u32(task.task.0);
    write_range(&mut out, task.range);
    out.u32(task.generation_max.0);
    out.count(task.states.len())?;
    for state in &task.states {
        out.u32(place_of(operator, places, state)?);
    }
    out.count(task.segments.len())?;
    for segment in &task.segments {
        write_segment(&mut out, segment)?;
    }
    out.count(part.channels.len())?;
    for channel in &part.channels {
        out.u8(match channel.side {
            ChannelSide::Input => 1,
            ChannelSide::Output => 2,
        });
        out.u32(channel.channel.0);
        out.u32(channel.channel.1);
        write_blob(&mut out, &channel.blob)?;
    }
    out.count(part.operator_states.len())?;
    for state in &part.operator_states {
        out.name(&state.name)?;
        out.u8(match state.redistribution {
            Redistribution::Split => 1,
            Redistribution::Union => 2,
            Redistribution::Broadcast => 3,
        });
        write_blob(&mut out, &state.blob)?;
    }
    if task.engine.len() > ENGINE_BYTES_MAX {
        return Err(
            Error::new(ErrorKind::Limit, "a task's engine bytes are too many")
                .with("bytes_max", ENGINE_BYTES_MAX)
                .with("got", task.engine.len()),
        );
    }
    out.blob(&task.engine)?;
    Ok(out.finish())
}

fn place_of(
    operator: &OperatorMeta,
    places: &StateIndex<'_>,
    state: &StateDescriptor,
) -> Result<u32> {
    places
        .get(state.name.as_str())
        .into_iter()
        .flatten()
        .copied()
        .find(|i| operator.states[*i as usize].descriptor == *state)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "a task knows a state that its operator does not",
            )
            .with("operator", &operator.id)
            .with("state", &state.name)
        })
}

/// Reads parts, and keeps what they share once.
#[derive(Debug, Default)]
pub(super) struct PartReader {
    segments: HashMap<Digest, Arc<SegmentMeta>>,
    expansion_bytes: u64,
}

impl PartReader {
    /// Reads one part; `expansion_bytes_max` bounds the descriptors of all parts read so far.
    pub(super) fn read(
        &mut self,
        input: &mut Reader<'_>,
        operators: &[OperatorMeta],
        expansion_bytes_max: u64,
    ) -> Result<ManifestPart> {
        let index = input.u32()?;
        let operator = operators.get(index as usize).ok_or_else(|| {
            input
                .corrupt("a part belongs to no operator")
                .with("got", index)
        })?;
        let task = TaskIndex(input.u32()?);
        let range = read_range(input)?;
        let generation_max = Generation(input.u32()?);
        let states = self.read_states(input, operator, expansion_bytes_max)?;
        let segments = input.list(SEGMENT_BYTES_MIN, |input| {
            let mut segment = read_segment(input)?;
            match self.segments.entry(segment.meta.digest) {
                Entry::Occupied(known) if *known.get() == segment.meta => {
                    segment.meta = Arc::clone(known.get());
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    place.insert(Arc::clone(&segment.meta));
                }
            }
            Ok(segment)
        })?;
        let channels = input.list(CHANNEL_BYTES_MIN, read_channel)?;
        let operator_states = input.list(OPERATOR_STATE_BYTES_MIN, read_operator_state)?;
        let engine = input.bytes(ENGINE_BYTES_MAX)?;
        input.end()?;
        Ok(ManifestPart {
            task: Arc::new(TaskPart {
                operator: operator.id.clone(),
                task,
                range,
                key_codec: operator.key_codec.clone(),
                hash: operator.hash,
                generation_max,
                states,
                segments,
                engine,
            }),
            channels,
            operator_states,
        })
    }

    fn read_states(
        &mut self,
        input: &mut Reader<'_>,
        operator: &OperatorMeta,
        expansion_bytes_max: u64,
    ) -> Result<Vec<StateDescriptor>> {
        let mut names = HashSet::new();
        input.list(STATE_BYTES, |input| {
            let index = input.u32()?;
            let state = operator.states.get(index as usize).ok_or_else(|| {
                input
                    .corrupt("a part knows no such state")
                    .with("got", index)
            })?;
            if !names.insert(state.descriptor.name.as_str()) {
                return Err(input.corrupt("a part knows a state twice"));
            }
            self.expansion_bytes += expanded_bytes(&state.descriptor);
            if self.expansion_bytes > expansion_bytes_max {
                return Err(input
                    .corrupt("the parts know too many states for their bytes")
                    .with("bytes_max", expansion_bytes_max));
            }
            Ok(state.descriptor.clone())
        })
    }
}

/// The bytes of memory of a descriptor.
pub(super) fn expanded_bytes(descriptor: &StateDescriptor) -> u64 {
    let codec =
        |id: &Option<crate::descriptor::CodecId>| id.as_ref().map_or(0, |id| id.as_str().len());
    let text = descriptor.name.len()
        + descriptor.value_codec.as_str().len()
        + codec(&descriptor.sub_key_codec)
        + codec(&descriptor.namespace_codec);
    (size_of::<StateDescriptor>() + text) as u64
}

fn read_channel(input: &mut Reader<'_>) -> Result<ChannelPart> {
    Ok(ChannelPart {
        side: match input.u8()? {
            1 => ChannelSide::Input,
            2 => ChannelSide::Output,
            _ => return Err(input.corrupt("an unknown side of a channel")),
        },
        channel: (input.u32()?, input.u32()?),
        blob: read_blob(input)?,
    })
}

fn read_operator_state(input: &mut Reader<'_>) -> Result<OperatorStatePart> {
    Ok(OperatorStatePart {
        name: input.name()?.to_owned(),
        redistribution: match input.u8()? {
            1 => Redistribution::Split,
            2 => Redistribution::Union,
            3 => Redistribution::Broadcast,
            _ => return Err(input.corrupt("an unknown redistribution")),
        },
        blob: read_blob(input)?,
    })
}
