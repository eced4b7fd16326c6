//! Thousands of snapshots with entry-exact segments of made-up size: the chain holds what the
//! model holds, and stays within the stated bounds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use super::*;
use crate::ids::{Digest, Epoch, SnapshotId, TaskIndex, UniqueId};
use crate::limits::INLINE_BYTES_MAX;
use crate::names::SegmentName;
use crate::range::HashRange;
use crate::segment::{Region, SegmentLocation, SegmentMeta};

/// Bytes of an entry, and of a segment besides its entries.
const ENTRY_BYTES: u64 = 16;
const SEGMENT_BYTES: u64 = 300;
/// Entries of a file of the base.
const FILE_ENTRIES: usize = 3_000;

/// The content of a segment: puts are `Some`, deletes are `None`.
type Content = BTreeMap<u64, Option<u64>>;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((u128::from(z ^ (z >> 31))) * u128::from(bound)) >> 64) as u64
    }
}

#[derive(Default)]
struct Simulation {
    policy: ChainPolicy,
    chain: Chain,
    contents: HashMap<UniqueId, Content>,
    live: BTreeMap<u64, u64>,
    /// Keys written before the last snapshot, which a delete has to be remembered for.
    known: BTreeSet<u64>,
    changed: Content,
    generation: u32,
    written_new: u64,
    written_merged: u64,
    merges: u32,
    depth_max: usize,
    dead_per_live_max: f64,
}

impl Simulation {
    fn put(&mut self, key: u64, value: u64) {
        self.live.insert(key, value);
        self.changed.insert(key, Some(value));
    }

    fn delete(&mut self, key: u64) {
        self.live.remove(&key);
        if self.known.contains(&key) {
            self.changed.insert(key, None);
        } else {
            self.changed.remove(&key);
        }
    }

    fn segment(&mut self, content: Content, tier: Tier, run: u32, of: (u32, u32)) -> SegmentRef {
        let unique = UniqueId(self.contents.len() as u128);
        let deletes = content.values().filter(|value| value.is_none()).count() as u64;
        let name = SegmentName {
            epoch: Epoch(1),
            snapshot: SnapshotId(u64::from(self.generation)),
            task: TaskIndex(0),
            index: 0,
            unique,
        };
        let first_key = content
            .keys()
            .next()
            .expect("a segment has an entry")
            .to_be_bytes();
        let meta = SegmentMeta {
            location: SegmentLocation::Object(name),
            bytes: SEGMENT_BYTES + ENTRY_BYTES * content.len() as u64,
            digest: Digest::of(&[]),
            puts: content.len() as u64 - deletes,
            deletes,
            delete_prefixes: 0,
            shadowed_bytes: deletes * ENTRY_BYTES,
            generations: (Generation(of.0), Generation(of.1)),
            shards: (0, 255),
            expires_ms_min: None,
            regions: vec![Region {
                first_key: Box::new(first_key),
                offset: 0,
                index_bytes: 0,
                filter_bytes: 0,
                crc: 0,
            }],
        };
        self.contents.insert(unique, content);
        SegmentRef {
            meta: meta.into(),
            clip: HashRange::ALL,
            tier,
            run,
        }
    }

    fn content(&self, segment: &SegmentRef) -> &Content {
        let SegmentLocation::Object(name) = &segment.meta.location else {
            panic!("the simulation has objects only");
        };
        &self.contents[&name.unique]
    }

    fn snapshot(&mut self) {
        self.generation += 1;
        let generation = self.generation;
        let full = self.policy.advise(&self.chain) == ChainAdvice::WriteFull;
        let (content, tier, since) = if full {
            self.chain = Chain::default();
            self.changed.clear();
            (
                self.live.iter().map(|(k, v)| (*k, Some(*v))).collect(),
                Tier::BASE,
                1,
            )
        } else {
            (
                std::mem::take(&mut self.changed),
                Tier::default(),
                generation,
            )
        };
        if !content.is_empty() {
            let run = self.chain.next_run();
            let run = self.split(content, tier, run, (since, generation));
            self.written_new += run.iter().map(|segment| segment.meta.bytes).sum::<u64>();
            self.chain.append(&run);
        }
        self.known = self.live.keys().copied().collect();
        while let Some(plan) = self.policy.plan(&self.chain, HashRange::ALL) {
            self.merge(&plan);
            self.merges += 1;
            // A check costs as much as a merge of everything.
            if self.merges.is_multiple_of(16) {
                self.check();
            }
        }
        self.measure();
    }

    fn split(&mut self, content: Content, tier: Tier, run: u32, of: (u32, u32)) -> Vec<SegmentRef> {
        let entries: Vec<_> = content.into_iter().collect();
        let files: Vec<Content> = entries
            .chunks(FILE_ENTRIES)
            .map(|file| file.iter().copied().collect())
            .collect();
        files
            .into_iter()
            .map(|file| self.segment(file, tier, run, of))
            .collect()
    }

    fn merge(&mut self, plan: &MergePlan) {
        let key = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
        let start = plan.span.start.as_deref().map_or(0, key);
        let end = plan.span.end.as_deref().map_or(u64::MAX, key);
        let mut merged = Content::new();
        for input in &plan.inputs {
            merged.extend(self.content(input).range(start..end).map(|(k, v)| (*k, *v)));
        }
        if plan.reaches_bottom() {
            merged.retain(|_, value| value.is_some());
        }
        let of = (plan.generations.0.0, plan.generations.1.0);
        let run = plan.run.unwrap_or(self.chain.next_run());
        let outputs = self.split(merged, plan.tier, run, of);
        self.written_merged += outputs
            .iter()
            .map(|segment| segment.meta.bytes)
            .sum::<u64>();
        assert!(
            self.chain.replace(plan, &outputs),
            "the inputs of a merge are in the chain"
        );
    }

    /// The chain holds exactly what the model holds.
    fn check(&self) {
        let mut found = Content::new();
        for segment in self.chain.refs() {
            found.extend(self.content(segment).iter().map(|(k, v)| (*k, *v)));
        }
        found.retain(|_, value| value.is_some());
        let expected: Content = self.live.iter().map(|(k, v)| (*k, Some(*v))).collect();
        assert!(
            found == expected,
            "a merge at generation {} lost something",
            self.generation
        );
    }

    fn measure(&mut self) {
        let above = self
            .chain
            .runs()
            .iter()
            .filter(|run| run.tier != Tier::BASE)
            .count();
        self.depth_max = self.depth_max.max(above);
        let live = ENTRY_BYTES * self.live.len() as u64;
        if live > 100 * SEGMENT_BYTES {
            let dead = self.chain.bytes().saturating_sub(live) as f64 / live as f64;
            self.dead_per_live_max = self.dead_per_live_max.max(dead);
        }
    }

    fn amplification(&self) -> f64 {
        (self.written_new + self.written_merged) as f64 / self.written_new as f64
    }
}

/// `snapshots` snapshots of a state of some 20,000 entries, each after `change`.
fn simulate(
    name: &str,
    snapshots: u32,
    mut change: impl FnMut(&mut Simulation, &mut Random),
) -> Simulation {
    let mut simulation = Simulation::default();
    let mut random = Random(42);
    (0..20_000).for_each(|key| simulation.put(key, 0));
    simulation.snapshot();
    simulation.written_new = 0;
    for _ in 0..snapshots {
        change(&mut simulation, &mut random);
        simulation.snapshot();
    }
    println!(
        "{name}: {snapshots} snapshots, depth {}, dead/live {:.2}, write amplification {:.2}",
        simulation.depth_max,
        simulation.dead_per_live_max,
        simulation.amplification()
    );
    simulation.check();
    simulation
}

#[track_caller]
fn assert_bounds(simulation: &Simulation, amplification_max: f64) {
    assert!(simulation.depth_max <= 32, "depth {}", simulation.depth_max);
    assert!(
        simulation.dead_per_live_max <= 0.6,
        "dead/live {}",
        simulation.dead_per_live_max
    );
    let amplification = simulation.amplification();
    assert!(
        amplification <= amplification_max,
        "write amplification {amplification}"
    );
}

#[test]
fn chain_stays_bounded_under_uniform_updates() {
    let simulation = simulate("uniform 1 %", 2_000, |s, random| {
        (0..200).for_each(|i| s.put(random.below(20_000), i));
    });
    assert_bounds(&simulation, 4.5);
}

#[test]
fn chain_stays_bounded_under_skewed_updates() {
    let simulation = simulate("skewed", 2_000, |s, random| {
        for i in 0..200 {
            // A product of uniforms: most updates hit few keys.
            let skew = random.below(20_000) * random.below(20_000) / 20_000;
            s.put(skew * random.below(20_000) / 20_000, i);
        }
    });
    assert_bounds(&simulation, 4.5);
}

#[test]
fn chain_stays_bounded_under_appends() {
    let mut next = 20_000;
    let simulation = simulate("append-only", 1_000, |s, _| {
        for _ in 0..200 {
            s.put(next, 1);
            next += 1;
        }
    });
    assert_bounds(&simulation, 4.5);
}

#[test]
fn chain_stays_bounded_under_short_lived_keys() {
    let mut next = 20_000;
    let simulation = simulate("delete-heavy", 2_000, |s, _| {
        for _ in 0..200 {
            s.put(next, 1);
            s.delete(next - 20_000);
            next += 1;
        }
    });
    assert_bounds(&simulation, 5.0);
}

#[test]
fn chain_of_tiny_increments_stays_shallow() {
    let simulation = simulate("tiny increments", 5_000, |s, random| {
        s.put(random.below(20_000), 1);
    });
    assert!(simulation.depth_max <= 33, "depth {}", simulation.depth_max);
}

#[test]
fn thirteen_snapshots_of_one_percent_write_nothing_twice() {
    let simulation = simulate("13 at 1 %", 13, |s, random| {
        (0..200).for_each(|i| s.put(random.below(20_000), i));
    });
    assert_eq!(simulation.written_merged, 0);
}

#[test]
fn state_that_vanishes_leaves_no_chain_behind() {
    let mut simulation = simulate("emptied", 20, |s, random| {
        (0..200).for_each(|i| s.put(random.below(20_000), i));
    });
    let keys: Vec<u64> = simulation.live.keys().copied().collect();
    for key in keys {
        simulation.delete(key);
    }
    simulation.snapshot();
    simulation.check();
    assert_eq!(simulation.chain.bytes(), 0, "{:?}", simulation.chain.runs());
}

#[test]
fn two_parts_of_a_rescale_keep_their_order_and_get_their_own_runs() {
    let mut simulation = Simulation::default();
    let mut part = |range: HashRange, generations: &[(u8, u32, u32)]| {
        let segments = generations
            .iter()
            .enumerate()
            .map(|(run, (tier, from, to))| {
                let content = Content::from([(u64::from(*to), Some(1))]);
                simulation.segment(content, Tier(*tier), run as u32, (*from, *to))
            })
            .collect();
        TaskPart {
            operator: crate::ids::OperatorId::new("o").expect("a name"),
            task: TaskIndex(0),
            range,
            key_codec: crate::descriptor::CodecId::new("u64"),
            hash: crate::hash::HashId::XXH3_64,
            generation_max: Generation(9),
            states: Vec::new(),
            segments,
            engine: Bytes::new(),
        }
    };
    let parts = [
        part(
            HashRange::of_task(0, 2),
            &[(255, 1, 4), (0, 5, 5), (0, 6, 6)],
        ),
        part(HashRange::of_task(1, 2), &[(255, 1, 9), (0, 10, 10)]),
    ];
    let chain = Chain::from_parts(&parts);
    let shape: Vec<_> = chain
        .runs()
        .iter()
        .map(|run| (run.tier, chain.refs()[run.span.start].meta.generations.1))
        .collect();
    assert_eq!(
        shape,
        [
            (Tier::BASE, Generation(4)),
            (Tier::BASE, Generation(9)),
            (Tier(0), Generation(5)),
            (Tier(0), Generation(6)),
            (Tier(0), Generation(10)),
        ]
    );
    let numbers: BTreeSet<u32> = chain.runs().iter().map(|run| run.number).collect();
    assert_eq!(numbers.len(), 5);
    let plan = ChainPolicy {
        dead_percent_max: 1,
        ..ChainPolicy::default()
    }
    .plan(&chain, HashRange::ALL)
    .expect("runs larger than 1 % of the base are merged");
    assert!(plan.reaches_bottom());
    assert_eq!(plan.inputs.len(), 5, "several bases become one");
}

#[test]
fn base_of_a_part_of_the_range_is_never_taken_for_a_merge_in_progress() {
    let mut simulation = Simulation::default();
    let content = |key: u64| Content::from([(key, Some(1))]);
    // Of one old task a base with many generations is left, of the other one a young run alone.
    let mut base = simulation.segment(content(1), Tier::BASE, 0, (1, 50));
    base.clip = HashRange::of_task(0, 2);
    let mut run = simulation.segment(content(2), Tier(0), 1, (7, 7));
    run.clip = HashRange::of_task(1, 2);
    let mut chain = Chain::default();
    chain.append(&[base, run]);
    let plan = ChainPolicy::default()
        .plan(&chain, HashRange::ALL)
        .expect("the run is too large");
    assert_eq!(
        (plan.inputs.len(), plan.replaces.len()),
        (2, 2),
        "all of it becomes one base"
    );
    assert_eq!(plan.clip, HashRange::ALL);
}

/// Sizes are as a manifest states them: nothing proves that such segments exist.
#[test]
fn sizes_and_settings_without_bounds_overflow_nothing() {
    let mut simulation = Simulation::default();
    let content = Content::from([(1, Some(1))]);
    let mut segment = |tier, run| {
        let segment = simulation.segment(content.clone(), tier, run, (run + 1, run + 1));
        let meta = SegmentMeta {
            bytes: u64::MAX,
            shadowed_bytes: u64::MAX,
            ..(*segment.meta).clone()
        };
        SegmentRef {
            meta: meta.into(),
            ..segment
        }
    };
    let mut chain = Chain::default();
    chain.append(&[segment(Tier::BASE, 0), segment(Tier::BASE, 0)]);
    chain.append(&[
        segment(Tier(0), 1),
        segment(Tier(0), 1),
        segment(Tier(0), 2),
    ]);
    assert_eq!(chain.bytes(), u64::MAX);
    let mut policy = ChainPolicy {
        fanout: 2,
        runs_max: u32::MAX,
        dead_percent_max: u32::MAX,
        ..ChainPolicy::default()
    };
    policy.validate().expect("nothing bounds it from above");
    assert!(!policy.is_overdue(&chain));
    policy.fanout = u32::MAX;
    assert_eq!(policy.plan(&chain, HashRange::ALL), None);
    let plan = ChainPolicy::default().plan(&chain, HashRange::ALL);
    assert_eq!(
        plan.expect("the runs outweigh the base").input_bytes(),
        u64::MAX
    );
}

#[test]
fn inline_segments_of_many_tasks_are_written_anew() {
    let mut simulation = Simulation::default();
    let inline = |bytes: u64, segment: SegmentRef| {
        let location = SegmentLocation::Inline(Bytes::from(vec![0; bytes as usize]));
        let meta = SegmentMeta {
            location,
            bytes,
            ..(*segment.meta).clone()
        };
        SegmentRef {
            meta: meta.into(),
            ..segment
        }
    };
    let content = Content::from([(1, Some(1))]);
    let mut segment = |run| simulation.segment(content.clone(), Tier::BASE, run, (1, 1));
    let mut chain = Chain::default();
    // Large enough for an increment, whatever lies inline.
    let mut large = segment(0);
    large.meta = SegmentMeta {
        bytes: 1 << 20,
        ..(*large.meta).clone()
    }
    .into();
    chain.append(&[large, inline(INLINE_BYTES_MAX, segment(1))]);
    let policy = ChainPolicy::default();
    assert_eq!(policy.advise(&chain), ChainAdvice::Increment);
    chain.append(&[inline(1, segment(2))]);
    assert_eq!(policy.advise(&chain), ChainAdvice::WriteFull);
}
