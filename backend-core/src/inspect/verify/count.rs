//! Counting what a restore of a snapshot would hold.

use crate::error::{Error, ErrorKind, Result};
use crate::hash::{HashId, KeyHasher};
use crate::inspect::cursor::OUT_OF_ORDER;
use crate::inspect::merged::{Merged, bytes_of};
use crate::inspect::states::States;
use crate::inspect::verify::fault::FaultKind;
use crate::inspect::verify::findings::of_object;
use crate::inspect::verify::report::EntryCounts;
use crate::manifest::Manifest;
use crate::store::Remote;

/// What is wrong with an object, if its name is known.
pub(super) type Wrong = (Option<String>, FaultKind, Error);

/// The entries of a snapshot; `None` if its keys are hashed in an unknown way.
///
/// # Errors
/// Those of a store that does not answer.
pub(super) async fn count(
    remote: &Remote,
    manifest: &Manifest,
    hasher: impl Fn(HashId) -> Option<KeyHasher>,
) -> Result<Result<Option<EntryCounts>, Wrong>> {
    let mut counts = EntryCounts::default();
    for operator in &manifest.operators {
        let Some(hasher) = hasher(operator.hash) else {
            return Ok(Ok(None));
        };
        let states = States::of(operator);
        for part in manifest.parts_of(&operator.id) {
            let merged = Merged::open(
                &part.task,
                part.task.range,
                hasher,
                &remote.storage,
                &remote.io,
            );
            let (states, clock_ms) = (states.clone(), manifest.meta.ttl_clock_ms);
            let counted = remote
                .io
                .blocking(move || count_part(merged, &states, clock_ms));
            match counted.await {
                Ok(part) => counts.add(&part),
                Err(e) => {
                    let e = of_object(e)?;
                    let kind = match e.kind() {
                        ErrorKind::NotFound => FaultKind::Missing,
                        _ if e.message() == OUT_OF_ORDER => FaultKind::Order,
                        _ => FaultKind::State,
                    };
                    let object = e.fact("object").map(str::to_owned);
                    return Ok(Err((object.filter(|o| o.contains('/')), kind, e)));
                }
            }
        }
    }
    Ok(Ok(Some(counts)))
}

fn count_part(mut merged: Merged, states: &States, clock_ms: u64) -> Result<EntryCounts> {
    let mut counts = EntryCounts::default();
    while merged.advance()? {
        let raw = merged.current().expect("the merge is at an entry");
        states
            .check(&raw.entry().key, &raw)
            .map_err(|e| merged.place(e))?;
        let bytes = bytes_of(&raw);
        match raw.expires_ms {
            Some(expiry) if expiry <= clock_ms => {
                counts.expired += 1;
                counts.expired_bytes += bytes;
            }
            _ => {
                counts.live += 1;
                counts.live_bytes += bytes;
            }
        }
    }
    counts.all = merged.seen();
    counts.clipped = merged.clipped();
    counts.dead = counts.all - counts.live - counts.expired;
    counts.dead_bytes = merged.seen_bytes() - counts.live_bytes - counts.expired_bytes;
    Ok(counts)
}

impl EntryCounts {
    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.live += other.live;
        self.expired += other.expired;
        self.dead += other.dead;
        self.clipped += other.clipped;
        self.live_bytes += other.live_bytes;
        self.expired_bytes += other.expired_bytes;
        self.dead_bytes += other.dead_bytes;
    }
}
