//! From a sorted stream of entries to durable segments: encoding on one thread, puts on another.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::clock::SharedEnvironment;
use crate::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::ids::{Epoch, SnapshotId, TaskIndex, UniqueId};
use crate::names::{ObjectName, SegmentName};
use crate::range::HashRange;
use crate::runtime::IoRuntime;
use crate::segment::{
    FinishedSegment, SegmentLocation, SegmentMeta, SegmentOptions, SegmentRef, SegmentSplitter,
    Tier,
};
use crate::storage::Storage;

/// How often a put whose outcome is not known is tried again; its name is its own, so trying
/// again is safe.
const PUT_TRIES: u32 = 4;

/// Finished segments that may wait for their put; bounds the memory of an upload.
const SEGMENTS_WAITING: usize = 1;

/// Where segments are put, and by whom.
#[derive(Clone, Debug)]
pub struct Uploader {
    /// The job's directory.
    pub storage: Storage,
    /// Chance for unique names, and a clock.
    pub environment: SharedEnvironment,
    /// Threads to encode on.
    pub runtime: IoRuntime,
    /// How segments are encoded.
    pub options: SegmentOptions,
}

/// What the segments of one upload have in common.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The epoch of the trigger.
    pub epoch: Epoch,
    /// The snapshot whose id the names carry.
    pub snapshot: SnapshotId,
    /// The task that writes.
    pub task: TaskIndex,
    /// The range that the references are clipped to.
    pub clip: HashRange,
    /// The lowest and highest generation that the entries come from.
    pub generations: (Generation, Generation),
    /// The place in the chain.
    pub tier: Tier,
    /// The number of the run.
    pub run: u32,
    /// A single segment up to this size is not put, but kept inline.
    pub inline_bytes_max: u64,
}

/// A durable run of segments.
#[derive(Clone, Debug, Default)]
pub struct Uploaded {
    /// The segments in the order of their keys.
    pub segments: Vec<SegmentRef>,
    /// Objects put.
    pub puts: u32,
}

impl Uploaded {
    /// The bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.meta.bytes).sum()
    }

    /// The entries of all segments.
    pub fn entries(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.meta.entries())
            .sum()
    }
}

/// Takes entries in the order of the format, each with the bytes of older entries that it
/// hides, as an estimate.
pub type EntrySink<'a> = dyn FnMut(&Entry<'_>, u64) -> Result<()> + 'a;

impl Uploader {
    /// Encodes what `produce` gives, on a thread of its own, and puts each segment as soon as
    /// it is finished. At most three segments are in memory at a time.
    ///
    /// # Errors
    /// Those of `produce` and of the store. Nothing refers to what had been put by then.
    pub async fn write_run(
        &self,
        spec: RunSpec,
        produce: impl FnOnce(&mut EntrySink<'_>) -> Result<()> + Send + 'static,
    ) -> Result<Uploaded> {
        let (finished, mut arriving) = mpsc::channel::<FinishedSegment>(SEGMENTS_WAITING);
        let options = self.options.clone();
        let environment = self.environment.clone();
        let generations = spec.generations;
        let encode = self.runtime.blocking(move || {
            let mut put = |segment: FinishedSegment| {
                finished.blocking_send(segment).map_err(|_| {
                    Error::new(
                        ErrorKind::Cancelled,
                        "the snapshot was cancelled while it was encoded",
                    )
                })
            };
            let mut splitter = SegmentSplitter::new(
                options,
                generations,
                || UniqueId(environment.unique()),
                &mut put,
            );
            produce(&mut |entry, hidden| splitter.push(entry, hidden))?;
            splitter.finish()
        });
        let put = async {
            let mut uploaded = Uploaded::default();
            let mut held: Option<FinishedSegment> = None;
            while let Some(segment) = arriving.recv().await {
                if let Some(before) = held.replace(segment) {
                    self.put_segment(&spec, before, &mut uploaded).await?;
                }
            }
            match held {
                Some(only)
                    if uploaded.segments.is_empty() && only.meta.bytes <= spec.inline_bytes_max =>
                {
                    let location = SegmentLocation::Inline(only.bytes);
                    uploaded.segments.push(spec.reference(SegmentMeta {
                        location,
                        ..only.meta
                    }));
                }
                Some(last) => self.put_segment(&spec, last, &mut uploaded).await?,
                None => {}
            }
            // The channel is closed before a failed put is reported, so that encoding ends.
            drop(arriving);
            Ok(uploaded)
        };
        let (encoded, uploaded) = futures::future::join(encode, put).await;
        match (encoded, uploaded) {
            (_, Err(e)) | (Err(e), Ok(_)) => Err(e),
            (Ok(()), Ok(uploaded)) => Ok(uploaded),
        }
    }

    async fn put_segment(
        &self,
        spec: &RunSpec,
        segment: FinishedSegment,
        uploaded: &mut Uploaded,
    ) -> Result<()> {
        let name = SegmentName {
            epoch: spec.epoch,
            snapshot: spec.snapshot,
            task: spec.task,
            index: uploaded.segments.len() as u32,
            unique: segment.unique,
        };
        self.put_durably(&ObjectName::Segment(name), segment.bytes)
            .await?;
        uploaded.puts += 1;
        let location = SegmentLocation::Object(name);
        uploaded.segments.push(spec.reference(SegmentMeta {
            location,
            ..segment.meta
        }));
        Ok(())
    }

    /// Puts an object whose name nobody else uses until it is surely there.
    async fn put_durably(&self, name: &ObjectName, bytes: Bytes) -> Result<()> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.storage.create(name, bytes.clone()).await {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Refused => return Err(e),
                Err(e) if tries >= PUT_TRIES => return Err(e.with("tries", tries)),
                Err(_) => {
                    let pause = Duration::from_millis(5 << tries);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

impl RunSpec {
    fn reference(&self, meta: SegmentMeta) -> SegmentRef {
        SegmentRef {
            meta: meta.into(),
            clip: self.clip,
            tier: self.tier,
            run: self.run,
        }
    }
}
