//! Chains of segments, and the policy that bounds them.
//!
//! A task's snapshot is a *base* (one run of segments with disjoint keys) and *runs* above it,
//! oldest first. Each increment adds a run. The policy says which runs to merge and when;
//! nothing here reads or writes a segment.
//!
//! The bounds, with the defaults of [`ChainPolicy`] and merges that keep up:
//! - at most [`ChainPolicy::runs_max`] runs above the base, plus one;
//! - the bytes of runs, charged with the older bytes that their deletes hide, exceed half the
//!   base by at most one increment, so dead bytes are at most half of the live ones, plus that.
//!
//! `chain/tests.rs` simulates thousands of snapshots under uniform, skewed, append-only and
//! delete-heavy load and holds the figures against these bounds.

mod plan;
mod policy;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::plan::total;
pub use self::plan::{KeySpan, MergePlan};
pub use self::policy::{ChainAdvice, ChainPolicy};
use crate::contract::TaskPart;
use crate::generation::Generation;
use crate::segment::{SegmentRef, Tier};

/// The durable segments of one task, oldest first; the base, if there is one, comes first.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    refs: Vec<SegmentRef>,
}

/// A run of segments within a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where its segments lie in [`Chain::refs`].
    pub span: Range<usize>,
    /// Its tier.
    pub tier: Tier,
    /// Its number.
    pub number: u32,
    /// The bytes of its segments.
    pub bytes: u64,
    /// The older bytes that its deletes hide, as an estimate.
    pub shadowed_bytes: u64,
}

impl Chain {
    /// The chain that a new task takes over from the parts of old ones, whose segments have been
    /// clipped to its range. Runs of different parts get different numbers.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a TaskPart>) -> Self {
        let mut refs: Vec<SegmentRef> = Vec::new();
        let mut next_run = 0;
        for part in parts {
            let mut last_number = None;
            for segment in &part.segments {
                if last_number != Some(segment.run) {
                    last_number = Some(segment.run);
                    next_run += 1;
                }
                refs.push(SegmentRef {
                    run: next_run - 1,
                    ..segment.clone()
                });
            }
        }
        // Parts have disjoint hashes, so only the order within a part matters, and a stable
        // sort by what a segment may override keeps it.
        refs.sort_by_key(|segment| {
            let is_above_base = segment.tier != Tier::BASE;
            let upto = if is_above_base {
                segment.meta.generations.1
            } else {
                Generation::ZERO
            };
            (is_above_base, upto, segment.run)
        });
        Self { refs }
    }

    /// The segments, oldest first.
    pub fn refs(&self) -> &[SegmentRef] {
        &self.refs
    }

    /// A number above those of all runs.
    pub fn next_run(&self) -> u32 {
        self.refs
            .iter()
            .map(|segment| segment.run + 1)
            .max()
            .unwrap_or(0)
    }

    /// The bytes of all segments.
    pub fn bytes(&self) -> u64 {
        total(self.refs.iter().map(|segment| segment.meta.bytes))
    }

    /// The bytes of its segments that lie in the manifest itself.
    pub fn inline_bytes(&self) -> u64 {
        let is_inline = |segment: &&SegmentRef| segment.meta.location.object().is_none();
        let inline = self.refs.iter().filter(is_inline);
        total(inline.map(|segment| segment.meta.bytes))
    }

    /// Adds the segments of a new run on top.
    pub fn append(&mut self, segments: &[SegmentRef]) {
        self.refs.extend_from_slice(segments);
    }

    /// Drops all runs that hold only changes newer than `generation`.
    pub fn drop_newer_than(&mut self, generation: Generation) {
        self.refs
            .retain(|segment| segment.meta.generations.0 <= generation);
    }

    /// The runs, oldest first; each of several bases is one.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (index, segment) in self.refs.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.number == segment.run => {
                    run.span.end = index + 1;
                    run.bytes = run.bytes.saturating_add(segment.meta.bytes);
                    run.shadowed_bytes = run
                        .shadowed_bytes
                        .saturating_add(segment.meta.shadowed_bytes);
                }
                _ => runs.push(Run {
                    span: index..index + 1,
                    tier: segment.tier,
                    number: segment.run,
                    bytes: segment.meta.bytes,
                    shadowed_bytes: segment.meta.shadowed_bytes,
                }),
            }
        }
        runs
    }

    /// Puts the output of a merge in the place of its inputs, and says whether they were still
    /// there; if not, nothing changes.
    pub fn replace(&mut self, plan: &MergePlan, outputs: &[SegmentRef]) -> bool {
        let same = |a: &SegmentRef, b: &SegmentRef| a.meta == b.meta && a.run == b.run;
        let positions: Vec<usize> = (0..self.refs.len())
            .filter(|i| {
                plan.replaces
                    .iter()
                    .any(|input| same(&self.refs[*i], input))
            })
            .collect();
        let present = |input: &SegmentRef| self.refs.iter().any(|segment| same(segment, input));
        let reads_present = plan.inputs.iter().all(present);
        if positions.len() != plan.replaces.len() || !reads_present {
            return false;
        }
        let at = positions[0];
        let mut refs = self.refs[..at].to_vec();
        refs.extend_from_slice(outputs);
        let rest = self.refs[at..].iter().enumerate();
        refs.extend(
            rest.filter(|(i, _)| !positions.contains(&(at + i)))
                .map(|(_, s)| s.clone()),
        );
        self.refs = refs;
        true
    }
}
