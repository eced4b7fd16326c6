//! Reading single keys of a snapshot.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec::KeyCodec;
use crate::contract::TaskPart;
use crate::descriptor::StateKind;
use crate::entry::{EntryKey, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::KeyHasher;
use crate::ids::OperatorId;
use crate::inspect::cursor::Cursor;
use crate::inspect::entries::{Entries, PrefixRun};
use crate::inspect::merged::Merged;
use crate::inspect::states::version_of;
use crate::inspect::stored::StoredValue;
use crate::key::StateKey;
use crate::limits::SUB_KEY_BYTES_MAX;
use crate::manifest::{OperatorMeta, StateMeta};
use crate::runtime::IoRuntime;
use crate::segment::{
    Clip, Found, SegmentLookup, SegmentRef, SegmentSource, Sight, encode_entry_key,
};
use crate::storage::Storage;
use crate::store::Snapshot;

/// The threads that a reader reads on.
const IO_THREADS: usize = 2;

/// Reads what one operator holds in a snapshot, key by key, without restoring anything. What it
/// answers is what a restore of the snapshot would: clips, deletes and the snapshot's
/// time-to-live clock are heeded.
///
/// A look-up costs at most two reads for each run of the task's chain that may hold the key, one
/// where a filter excludes it; for a map's sub-key, one or two more in runs with cleared maps. It
/// has threads of its own, so its futures can be polled by any executor. Clones share them.
///
/// [`crate::inspect::ValueReader`], [`crate::inspect::ListReader`] and
/// [`crate::inspect::MapReader`] put types on top of it.
///
/// ```
/// use backend_core::inspect::{SnapshotReader, ValueReader};
/// use backend_core::{OperatorId, Result, Snapshot};
///
/// async fn visits_then(snapshot: &Snapshot, user: &str) -> Result<Option<u64>> {
///     let reader = SnapshotReader::open(snapshot, &OperatorId::new("count")?)?;
///     let visits = ValueReader::<u64>::open(&reader, "visits")?;
///     visits.get(&reader.key(user)?).await
/// }
/// ```
#[derive(Clone)]
pub struct SnapshotReader {
    inner: Arc<Inner>,
}

struct Inner {
    source: Storage,
    operator: OperatorMeta,
    /// In the order of their ranges.
    parts: Vec<Arc<TaskPart>>,
    hasher: KeyHasher,
    clock_ms: u64,
    io: IoRuntime,
}

impl SnapshotReader {
    /// Reads `operator` in `snapshot`, whose keys are hashed by XXH3.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the snapshot knows no such operator; the error names those that
    /// it knows. [`ErrorKind::Mismatch`] if its keys are hashed in another way.
    /// [`ErrorKind::Transient`] if no threads can be had.
    pub fn open(snapshot: &Snapshot, operator: &OperatorId) -> Result<Self> {
        Self::open_with(snapshot, operator, KeyHasher::XXH3_64)
    }

    /// [`SnapshotReader::open`] for an operator whose keys are hashed by `hasher`.
    ///
    /// # Errors
    /// As [`SnapshotReader::open`].
    pub fn open_with(
        snapshot: &Snapshot,
        operator: &OperatorId,
        hasher: KeyHasher,
    ) -> Result<Self> {
        let manifest = snapshot.manifest();
        let meta = manifest.operator(operator).ok_or_else(|| {
            let known: Vec<_> = manifest.operators.iter().map(|o| o.id.as_str()).collect();
            Error::new(ErrorKind::NotFound, "the snapshot knows no such operator")
                .with("operator", operator)
                .with("known", format_args!("[{}]", known.join(", ")))
                .with("snapshot", snapshot.position())
        })?;
        if meta.hash != hasher.id() {
            return Err(Error::new(
                ErrorKind::Mismatch,
                "the keys of an operator are hashed in another way",
            )
            .with("operator", operator)
            .expected_got(meta.hash, hasher.id()));
        }
        let parts = manifest.parts_of(operator);
        let mut parts: Vec<_> = parts.map(|part| Arc::clone(&part.task)).collect();
        parts.sort_unstable_by_key(|part| part.range);
        let inner = Inner {
            source: snapshot.source().clone(),
            operator: meta.clone(),
            parts,
            hasher,
            clock_ms: manifest.meta.ttl_clock_ms,
            io: IoRuntime::new(IO_THREADS)?,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the snapshot knows of the operator.
    pub fn operator(&self) -> &OperatorMeta {
        &self.inner.operator
    }

    /// `key`, encoded and hashed.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] if the operator's keys are not of type `K`; [`ErrorKind::Limit`]
    /// if its bytes are too many.
    pub fn key<K: KeyCodec + ?Sized>(&self, key: &K) -> Result<StateKey> {
        let stored = &self.inner.operator.key_codec;
        if *stored != K::id() {
            return Err(Error::new(ErrorKind::Mismatch, "keys are of another codec")
                .with("operator", &self.inner.operator.id)
                .expected_got(stored, K::id()));
        }
        StateKey::encode(&self.inner.hasher, key)
    }

    /// The key whose encoded bytes are `key`; see [`StateKey::in_namespace`].
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if they are too many.
    pub fn raw_key(&self, key: &[u8]) -> Result<StateKey> {
        StateKey::new(&self.inner.hasher, key)
    }

    /// The value of `key` in a state of one value a key.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the snapshot knows no such state, [`ErrorKind::Mismatch`] if it
    /// is of another kind; [`ErrorKind::Corrupt`] and [`ErrorKind::NotFound`] name an object that
    /// is damaged or missing; [`ErrorKind::Transient`] if the store did not answer.
    pub async fn value(&self, state: &str, key: &StateKey) -> Result<Option<StoredValue>> {
        let state = self.state_of(state, &[StateKind::Value])?.clone();
        self.look_up(state, key.clone(), Bytes::new()).await
    }

    /// The value of `sub_key` in the map of `key`.
    ///
    /// # Errors
    /// As [`SnapshotReader::value`]; [`ErrorKind::Limit`] if the sub-key's bytes are too many.
    pub async fn map_value(
        &self,
        state: &str,
        key: &StateKey,
        sub_key: &[u8],
    ) -> Result<Option<StoredValue>> {
        let state = self.state_of(state, &[StateKind::Map])?.clone();
        if sub_key.len() > SUB_KEY_BYTES_MAX {
            return Err(Error::new(ErrorKind::Limit, "a user key is too long")
                .with("bytes_max", SUB_KEY_BYTES_MAX)
                .with("got", sub_key.len()));
        }
        let sub_key = Bytes::copy_from_slice(sub_key);
        self.look_up(state, key.clone(), sub_key).await
    }

    /// The elements of the list, or the entries of the map, of `key` in their order, of any
    /// number: they are read batch by batch.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the snapshot knows no such state, [`ErrorKind::Mismatch`] if it
    /// is of another kind.
    pub fn entries(&self, state: &str, key: &StateKey) -> Result<Entries> {
        let state = self.state_of(state, &[StateKind::List, StateKind::Map])?;
        let mut prefix = Vec::new();
        encode_entry_key(&entry_key(state, key, &[]), &mut prefix);
        let inner = &self.inner;
        let hash = key.hash();
        let runs = inner.runs_of(hash).map(|run| {
            let clip = Clip::new(run[0].clip, inner.hasher);
            let lookups = between(run, &prefix, &prefix)
                .iter()
                .map(|segment| inner.lookup(segment));
            let blocks = PrefixRun::new(lookups.collect(), prefix.clone(), inner.io.clone());
            Cursor::new(Box::new(blocks), clip)
        });
        let merged = Merged::new(runs.collect());
        let (state, clock_ms) = (state.clone(), inner.clock_ms);
        Ok(Entries::new(
            inner.io.clone(),
            merged,
            prefix,
            state,
            clock_ms,
        ))
    }

    /// The state called `name`, if it is of one of `kinds`.
    pub(super) fn state_of(&self, name: &str, kinds: &[StateKind]) -> Result<&StateMeta> {
        let operator = &self.inner.operator;
        let known = operator.states.iter();
        let state = known.clone().find(|state| state.descriptor.name == name);
        let state = state.ok_or_else(|| {
            let known: Vec<_> = known.map(|state| &*state.descriptor.name).collect();
            Error::new(ErrorKind::NotFound, "the snapshot knows no such state")
                .with("state", name)
                .with("operator", &operator.id)
                .with("known", format_args!("[{}]", known.join(", ")))
        })?;
        let got = state.descriptor.kind;
        if kinds.contains(&got) {
            return Ok(state);
        }
        let wanted: Vec<_> = kinds.iter().map(StateKind::to_string).collect();
        Err(
            Error::new(ErrorKind::Mismatch, "a state is of another kind")
                .with("state", name)
                .with("operator", &operator.id)
                .expected_got(wanted.join(" or "), got),
        )
    }

    async fn look_up(
        &self,
        state: StateMeta,
        key: StateKey,
        sub_key: Bytes,
    ) -> Result<Option<StoredValue>> {
        let inner = Arc::clone(&self.inner);
        let io = self.inner.io.clone();
        io.run(async move { inner.look_up(&state, &key, &sub_key).await })
            .await
    }
}

impl Inner {
    /// The runs that may hold a key of `hash`, oldest first.
    fn runs_of(&self, hash: u64) -> impl DoubleEndedIterator<Item = &[SegmentRef]> {
        let part = self.parts.iter().find(|part| part.range.contains(hash));
        let segments = part.map_or(&[][..], |part| &part.segments);
        segments
            .chunk_by(|a, b| a.run == b.run && a.clip == b.clip)
            .filter(move |run| run[0].clip.contains(hash))
    }

    fn lookup(&self, segment: &SegmentRef) -> SegmentLookup {
        let source = SegmentSource::new(&segment.meta, &self.source);
        SegmentLookup::new(Arc::clone(&segment.meta), source)
    }

    async fn look_up(
        &self,
        state: &StateMeta,
        key: &StateKey,
        sub_key: &[u8],
    ) -> Result<Option<StoredValue>> {
        let wanted = entry_key(state, key, sub_key);
        let mut encoded = Vec::new();
        let prefix_bytes = encode_entry_key(&wanted, &mut encoded);
        for run in self.runs_of(key.hash()).rev() {
            let segments = between(run, &encoded[..prefix_bytes], &encoded);
            for segment in segments.iter().rev() {
                let (low, high) = segment.meta.shards;
                if !(low..=high).contains(&key.shard()) {
                    continue;
                }
                match self.lookup(segment).get(&wanted).await? {
                    Sight::Nothing => {}
                    Sight::Cleared => return Ok(None),
                    Sight::Found(found) => return self.answer(state, found),
                }
            }
        }
        Ok(None)
    }

    fn answer(&self, state: &StateMeta, found: Found) -> Result<Option<StoredValue>> {
        let is_expired = found.expires_ms.is_some_and(|ms| ms <= self.clock_ms);
        if found.op != Op::Put || is_expired {
            return Ok(None);
        }
        Ok(Some(StoredValue {
            schema: version_of(state, found.schema.0)?,
            bytes: found.value,
            expires_ms: found.expires_ms,
        }))
    }
}

/// The segments of a run, whose keys are disjoint and ascend, that may hold a key from `prefix`
/// on up to `last` or one that begins with it. A prefix delete may end one segment and its key
/// go on in the next.
fn between<'a>(run: &'a [SegmentRef], prefix: &[u8], last: &[u8]) -> &'a [SegmentRef] {
    if !run.is_sorted_by(|a, b| first_key(a) <= first_key(b)) {
        return run;
    }
    let may_end = |key: &[u8]| *key <= *last || key.starts_with(last);
    let from = run.partition_point(|s| first_key(s).is_none_or(|key| *key < *prefix));
    let to = run.partition_point(|s| first_key(s).is_none_or(may_end));
    &run[from.saturating_sub(1)..to]
}

fn first_key(segment: &SegmentRef) -> Option<&[u8]> {
    segment
        .meta
        .regions
        .first()
        .map(|region| &*region.first_key)
}

fn entry_key<'a>(state: &StateMeta, key: &'a StateKey, sub_key: &'a [u8]) -> EntryKey<'a> {
    EntryKey {
        state: state.descriptor.uid(),
        shard: key.shard(),
        key: key.key(),
        namespace: key.namespace(),
        sub_key,
    }
}

impl fmt::Debug for SnapshotReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotReader")
            .field("operator", &self.inner.operator.id)
            .field("source", &self.inner.source)
            .finish_non_exhaustive()
    }
}
