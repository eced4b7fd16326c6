//! Settings as JSON: what is valid is within its documented bounds and can be used.

use std::fmt::Debug;
use std::sync::Arc;

use backend_core::chain::{Chain, ChainPolicy};
use backend_core::generation::Generation;
use backend_core::limits::{INLINE_BYTES_MAX, IO_THREADS_MAX};
use backend_core::segment::{
    SegmentLocation, SegmentMeta, SegmentOptions, SegmentRef, SegmentWriter, Tier,
};
use backend_core::{Digest, ErrorKind, HashRange, Result, StoreOptions, UniqueId};
use backend_memory::MemoryOptions;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::memory::bounded;

pub(super) fn check(bytes: &[u8]) -> bool {
    let store = parse(bytes, StoreOptions::validate).inspect(check_store);
    let segment = parse(bytes, SegmentOptions::validate).inspect(check_segment);
    let chain = parse(bytes, ChainPolicy::validate).inspect(check_chain);
    let memory = parse(bytes, MemoryOptions::validate).inspect(check_memory);
    store.is_some() || segment.is_some() || chain.is_some() || memory.is_some()
}

/// Settings that parse and are valid; they are then written and parse again as the same.
fn parse<T>(bytes: &[u8], validate: impl Fn(&T) -> Result<()>) -> Option<T>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let options: T = bounded("settings", 64 * bytes.len(), || {
        serde_json::from_slice(bytes)
    })
    .ok()?;
    if let Err(e) = validate(&options) {
        assert_eq!(e.kind(), ErrorKind::Invalid, "{e}");
        assert!(e.fact("setting").is_some(), "{e}");
        return None;
    }
    let text = serde_json::to_vec(&options).expect("settings are plain data");
    let again: T = serde_json::from_slice(&text).expect("what was written parses");
    assert_eq!(again, options);
    Some(options)
}

fn check_store(options: &StoreOptions) {
    assert!(options.tries_max >= 1 && options.request_ms_max >= 1);
    assert!(
        (1..=IO_THREADS_MAX).contains(&options.io_threads),
        "{options:?}"
    );
}

fn check_segment(options: &SegmentOptions) {
    assert!((1 << 10..=1 << 20).contains(&options.block_bytes_target));
    assert!((1..=1_024).contains(&options.region_blocks));
    assert!((64 << 10..=1 << 30).contains(&options.segment_bytes_target));
    assert!((1..=22).contains(&options.compression_level));
    assert!(options.filter_bits_per_key <= 32);
    SegmentWriter::new(options.clone(), UniqueId(1)).expect("valid options are used");
}

/// A chain of twenty runs above a base is planned for under any valid policy.
fn check_chain(policy: &ChainPolicy) {
    assert!(policy.fanout >= 2 && policy.runs_max >= policy.fanout);
    assert!(policy.dead_percent_max >= 1);
    let mut chain = Chain::default();
    chain.append(&[segment(0, Tier::BASE, 1 << 40)]);
    for run in 1..=20 {
        let _ = policy.is_overdue(&chain);
        let _ = policy.advise(&chain);
        if let Some(plan) = policy.plan(&chain, HashRange::ALL) {
            assert!(!plan.inputs.is_empty());
        }
        chain.append(&[segment(run, Tier(0), 1 << 20)]);
    }
}

fn segment(run: u32, tier: Tier, bytes: u64) -> SegmentRef {
    let meta = SegmentMeta {
        location: SegmentLocation::Inline(Bytes::new()),
        bytes,
        digest: Digest([run as u8; 32]),
        puts: 1,
        deletes: 0,
        delete_prefixes: 0,
        shadowed_bytes: 0,
        generations: (Generation(run), Generation(run)),
        shards: (0, 255),
        expires_ms_min: None,
        regions: Vec::new(),
    };
    SegmentRef {
        meta: Arc::new(meta),
        clip: HashRange::ALL,
        tier,
        run,
    }
}

fn check_memory(options: &MemoryOptions) {
    assert!(options.inline_bytes_max <= INLINE_BYTES_MAX);
    assert!(
        (1..=IO_THREADS_MAX).contains(&options.io_threads),
        "{options:?}"
    );
    assert_ne!(options.memory_bytes_max, Some(0));
    check_segment(&options.segment);
    check_chain(&options.chain);
}
