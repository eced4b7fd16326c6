//! Two snapshots side by side, one piece of the hash space after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::contract::TaskPart;
use crate::descriptor::SchemaVersion;
use crate::error::Result;
use crate::hash::KeyHasher;
use crate::ids::OperatorId;
use crate::inspect::difference::Difference;
use crate::inspect::merged::Merged;
use crate::inspect::pump::Source;
use crate::inspect::states::States;
use crate::inspect::stored::StoredValue;
use crate::manifest::OperatorMeta;
use crate::range::HashRange;
use crate::runtime::IoRuntime;
use crate::segment::{RawEntry, SegmentRef};
use crate::storage::Storage;
use crate::store::Snapshot;

/// One side of an operator.
pub(super) struct Operand {
    source: Storage,
    states: States,
    /// In the order of their ranges.
    parts: Vec<Arc<TaskPart>>,
    hasher: KeyHasher,
    clock_ms: u64,
}

impl Operand {
    pub(super) fn of(snapshot: &Snapshot, meta: &OperatorMeta, hasher: KeyHasher) -> Self {
        let parts = snapshot.manifest().parts_of(&meta.id);
        let mut parts: Vec<_> = parts.map(|part| Arc::clone(&part.task)).collect();
        parts.sort_unstable_by_key(|part| part.range);
        Self {
            source: snapshot.source().clone(),
            states: States::of(meta),
            parts,
            hasher,
            clock_ms: snapshot.manifest().meta.ttl_clock_ms,
        }
    }

    /// The part that owns all of `range`, which no task's range cuts.
    fn part(&self, range: HashRange) -> Option<&Arc<TaskPart>> {
        let at = self
            .parts
            .partition_point(|p| p.range.last() < range.first());
        self.parts.get(at)
    }
}

/// A piece of the hash space of one operator.
pub(super) struct Piece {
    operator: OperatorId,
    range: HashRange,
    sides: [Option<Arc<Operand>>; 2],
}

/// The pieces between all first hashes of tasks.
pub(super) fn cut(operator: &OperatorId, sides: &[Option<Arc<Operand>>; 2]) -> Vec<Piece> {
    let parts = sides.iter().flatten().flat_map(|side| &side.parts);
    let mut firsts: Vec<u64> = parts.map(|part| part.range.first()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let lasts = firsts.iter().skip(1).map(|first| first - 1);
    let lasts = lasts.chain([u64::MAX]);
    let ranges = firsts.iter().zip(lasts);
    let pieces = ranges.filter_map(|(first, last)| {
        let range = HashRange::new(*first, last).ok()?;
        Some(Piece {
            operator: operator.clone(),
            range,
            sides: sides.clone(),
        })
    });
    pieces.collect()
}

/// The differences, piece by piece.
pub(super) struct Differences {
    io: IoRuntime,
    pieces: VecDeque<Piece>,
    current: Option<Comparison>,
    ignores_expiry: bool,
}

/// One piece, with both sides at an entry or at their end.
struct Comparison {
    operator: OperatorId,
    sides: [Option<Walk>; 2],
}

/// One side of a piece.
struct Walk {
    operand: Arc<Operand>,
    merged: Merged,
    /// Whether the merge is at an entry.
    is_live: bool,
}

impl Walk {
    /// Goes to the next entry that has not expired.
    fn advance(&mut self) -> Result<()> {
        loop {
            self.is_live = self.merged.advance()?;
            let clock_ms = self.operand.clock_ms;
            match self.merged.current() {
                Some(raw) if raw.expires_ms.is_some_and(|ms| ms <= clock_ms) => {}
                _ => return Ok(()),
            }
        }
    }

    fn key(&self) -> Option<&[u8]> {
        self.merged
            .current()
            .filter(|_| self.is_live)
            .map(|raw| raw.key)
    }

    /// The schema version of the entry, if its snapshot knows state and version.
    fn schema(&self, raw: &RawEntry<'_>) -> Result<SchemaVersion> {
        let checked = self.operand.states.check(&raw.entry().key, raw);
        let (_, schema) = checked.map_err(|e| self.merged.place(e))?;
        Ok(schema)
    }

    fn value(&self) -> Result<StoredValue> {
        let raw = self.merged.current().expect("the walk is at an entry");
        Ok(StoredValue {
            bytes: Bytes::copy_from_slice(raw.value),
            schema: self.schema(&raw)?,
            expires_ms: raw.expires_ms,
        })
    }

    /// Whether both are at the same value.
    fn is_same(&self, other: &Self, ignores_expiry: bool) -> Result<bool> {
        let (Some(a), Some(b)) = (self.merged.current(), other.merged.current()) else {
            return Ok(false);
        };
        Ok(a.value == b.value
            && (ignores_expiry || a.expires_ms == b.expires_ms)
            && self.schema(&a)? == other.schema(&b)?)
    }
}

impl Piece {
    /// Whether both sides hold the same by reference.
    fn is_shared(&self) -> bool {
        let [Some(old), Some(new)] = &self.sides else {
            return false;
        };
        let (Some(a), Some(b)) = (old.part(self.range), new.part(self.range)) else {
            return false;
        };
        if !old.source.is_same(&new.source) {
            return false;
        }
        let clock_ms = old.clock_ms.max(new.clock_ms);
        let is_timeless = |segment: &SegmentRef| {
            let expiry = segment.meta.expires_ms_min;
            old.clock_ms == new.clock_ms || expiry.is_none_or(|ms| ms > clock_ms)
        };
        let clip = |segment: &SegmentRef| segment.clip.intersect(self.range);
        a.segments.len() == b.segments.len()
            && a.segments.iter().all(is_timeless)
            && a.segments
                .iter()
                .zip(&b.segments)
                .all(|(a, b)| a.meta == b.meta && clip(a) == clip(b))
    }

    fn open(self, io: &IoRuntime) -> Result<Comparison> {
        let open = |operand: &Option<Arc<Operand>>| -> Result<Option<Walk>> {
            let Some(operand) = operand else {
                return Ok(None);
            };
            let Some(part) = operand.part(self.range) else {
                return Ok(None);
            };
            let (hasher, source) = (operand.hasher, &operand.source);
            let mut walk = Walk {
                operand: Arc::clone(operand),
                merged: Merged::open(part, self.range, hasher, source, io),
                is_live: false,
            };
            walk.advance()?;
            Ok(Some(walk))
        };
        Ok(Comparison {
            sides: [open(&self.sides[0])?, open(&self.sides[1])?],
            operator: self.operator,
        })
    }
}

/// What became of one key.
enum Step {
    End,
    Same,
    Differs(Box<Difference>),
}

impl Comparison {
    /// Compares the least key of both sides, and goes on.
    fn step(&mut self, ignores_expiry: bool) -> Result<Step> {
        let [old, new] = &self.sides;
        let keys = (
            old.as_ref().and_then(Walk::key),
            new.as_ref().and_then(Walk::key),
        );
        let takes = match keys {
            (None, None) => return Ok(Step::End),
            (Some(old), Some(new)) => [old <= new, new <= old],
            (old, new) => [old.is_some(), new.is_some()],
        };
        let at = |side: usize| self.sides[side].as_ref().filter(|_| takes[side]);
        let step = match (at(0), at(1)) {
            (Some(old), Some(new)) if old.is_same(new, ignores_expiry)? => Step::Same,
            (old, new) => {
                let walk = old.or(new).expect("one side is at the least key");
                let mut difference = Box::new(describe(&self.operator, walk)?);
                difference.old = old.map(Walk::value).transpose()?;
                difference.new = new.map(Walk::value).transpose()?;
                Step::Differs(difference)
            }
        };
        for (side, takes) in self.sides.iter_mut().zip(takes) {
            if let Some(walk) = side.as_mut().filter(|_| takes) {
                walk.advance()?;
            }
        }
        Ok(step)
    }
}

/// The entry that a walk is at, without what is held of it.
fn describe(operator: &OperatorId, walk: &Walk) -> Result<Difference> {
    let raw = walk.merged.current().expect("the walk is at an entry");
    let key = raw.entry().key;
    let (state, _) = walk
        .operand
        .states
        .check(&key, &raw)
        .map_err(|e| walk.merged.place(e))?;
    Ok(Difference {
        operator: operator.clone(),
        state: state.name.as_str().into(),
        key: Bytes::copy_from_slice(key.key),
        namespace: Bytes::copy_from_slice(key.namespace),
        sub_key: Bytes::copy_from_slice(key.sub_key),
        old: None,
        new: None,
    })
}

impl Differences {
    pub(super) fn new(io: IoRuntime, pieces: VecDeque<Piece>, ignores_expiry: bool) -> Self {
        Self {
            io,
            pieces,
            current: None,
            ignores_expiry,
        }
    }
}

impl Source for Differences {
    type Item = Difference;

    fn next(&mut self) -> Result<Option<Difference>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(piece) = self.pieces.pop_front() else {
                    return Ok(None);
                };
                if !piece.is_shared() {
                    self.current = Some(piece.open(&self.io)?);
                }
                continue;
            };
            match current.step(self.ignores_expiry)? {
                Step::End => self.current = None,
                Step::Same => {}
                Step::Differs(difference) => return Ok(Some(*difference)),
            }
        }
    }

    fn bytes_of(difference: &Difference) -> usize {
        let values = [&difference.old, &difference.new];
        let values = values.into_iter().flatten().map(|v| v.bytes.len());
        let keys = [&difference.key, &difference.namespace, &difference.sub_key];
        values.chain(keys.map(Bytes::len)).sum()
    }
}
