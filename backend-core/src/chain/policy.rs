//! Which runs to merge, and when.

use serde::{Deserialize, Serialize};

use super::plan::{KeySpan, MergePlan, total};
use super::{Chain, Run};
use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::limits::INLINE_BYTES_MAX;
use crate::range::HashRange;
use crate::segment::{SegmentRef, Tier};

/// When chains are merged: plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChainPolicy {
    /// So many neighbouring runs of one tier are merged into one of the next. Default 16, at
    /// least 2.
    pub fanout: u32,
    /// More runs than this above the base are merged, whatever their tiers. Default 32, at
    /// least `fanout`.
    pub runs_max: u32,
    /// When the runs' bytes, with those that their deletes hide, exceed this share of the base,
    /// they are merged into it. In percent; default 50.
    pub dead_percent_max: u32,
    /// A chain up to this size is not worth increments. Default 8 KiB.
    pub full_bytes_max: u64,
}

impl Default for ChainPolicy {
    fn default() -> Self {
        Self {
            fanout: 16,
            runs_max: 32,
            dead_percent_max: 50,
            full_bytes_max: INLINE_BYTES_MAX,
        }
    }
}

/// How the next snapshot is best written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainAdvice {
    /// As an increment on top of the chain.
    Increment,
    /// In full: the state is so small that a run would not be smaller.
    WriteFull,
}

impl ChainPolicy {
    /// Whether the settings make sense.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] names the setting that does not.
    pub fn validate(&self) -> Result<()> {
        let bad = |setting: &'static str, expected: &'static str, got: u32| {
            Err(Error::new(
                ErrorKind::Invalid,
                "a setting of the chain policy is out of bounds",
            )
            .with("setting", setting)
            .expected_got(expected, got))
        };
        if self.fanout < 2 {
            return bad("fanout", "at least 2", self.fanout);
        }
        if self.runs_max < self.fanout {
            return bad("runs_max", "at least the fanout", self.runs_max);
        }
        if self.dead_percent_max == 0 {
            return bad("dead_percent_max", "above 0", self.dead_percent_max);
        }
        Ok(())
    }

    /// How the next snapshot on top of `chain` is best written.
    pub fn advise(&self, chain: &Chain) -> ChainAdvice {
        // A rescaled task may hold the inline segments of several tasks, and a part has room for
        // those of one.
        if chain.bytes() <= self.full_bytes_max || chain.inline_bytes() > INLINE_BYTES_MAX {
            ChainAdvice::WriteFull
        } else {
            ChainAdvice::Increment
        }
    }

    /// Whether merges lag so far behind that the next snapshot had better wait for them: there
    /// are more runs above the base than the policy allows, and a fanout more.
    pub fn is_overdue(&self, chain: &Chain) -> bool {
        let runs = chain.runs();
        let above = runs.iter().filter(|run| run.tier != Tier::BASE).count();
        above > self.runs_max.saturating_add(self.fanout) as usize
    }

    /// The next merge that `chain` needs, of a task that owns `range`.
    pub fn plan(&self, chain: &Chain, range: HashRange) -> Option<MergePlan> {
        let runs = chain.runs();
        let (bases, above): (Vec<Run>, Vec<Run>) =
            runs.into_iter().partition(|run| run.tier == Tier::BASE);
        if above.is_empty() {
            return None;
        }
        let base = whole_base(chain, &bases, range);
        if let Some(base) = base
            && let Some(upto) = merged_upto(chain, base, &above)
        {
            return Some(base_step(chain, base, &above, upto));
        }
        let charged = total(above.iter().flat_map(|run| [run.bytes, run.shadowed_bytes]));
        let base_bytes = total(bases.iter().map(|run| run.bytes));
        let dead_bytes_max = (base_bytes / 100).saturating_mul(u64::from(self.dead_percent_max));
        if charged > dead_bytes_max {
            return Some(match base {
                Some(base) => base_step(chain, base, &above, generation_max(chain, &above)),
                None => whole(chain, range),
            });
        }
        self.tier_merge(chain, &above, range)
    }

    /// Neighbours of one tier, or the young end of a chain that has grown too long.
    fn tier_merge(&self, chain: &Chain, above: &[Run], range: HashRange) -> Option<MergePlan> {
        let fanout = self.fanout as usize;
        let neighbours = above
            .chunk_by(|a, b| a.tier == b.tier)
            .find(|runs| runs.len() >= fanout);
        if let Some(runs) = neighbours {
            let tier = Tier((runs[0].tier.0 + 1).min(Tier::BASE.0 - 1));
            return Some(merge_runs(chain, &runs[..fanout], tier, range));
        }
        if above.len() <= self.runs_max as usize {
            return None;
        }
        // The cheapest young end that makes room for a fanout of new runs.
        let young = &above[above.len() - fanout..];
        let oldest_tier = young.iter().map(|run| run.tier).max().unwrap_or_default();
        let tier = Tier((oldest_tier.0 + 1).min(Tier::BASE.0 - 1));
        Some(merge_runs(chain, young, tier, range))
    }
}

/// The base, if there is one for all of the task's range. After a rescale, parts of the range
/// come from different tasks, whose generations say nothing about each other.
fn whole_base<'r>(chain: &Chain, bases: &'r [Run], range: HashRange) -> Option<&'r Run> {
    let [base] = bases else { return None };
    let files = &chain.refs()[base.span.clone()];
    files
        .iter()
        .all(|file| file.clip.covers(range))
        .then_some(base)
}

/// The generation that a merge into the base, once begun, works up to: some files of the base
/// hold it, and runs up to it are still there.
fn merged_upto(chain: &Chain, base: &Run, above: &[Run]) -> Option<Generation> {
    let upto = chain.refs()[base.span.clone()]
        .iter()
        .map(|s| s.meta.generations.1)
        .max()?;
    (upto >= chain.refs()[above[0].span.start].meta.generations.1).then_some(upto)
}

fn generation_max(chain: &Chain, runs: &[Run]) -> Generation {
    let refs = runs.iter().flat_map(|run| &chain.refs()[run.span.clone()]);
    refs.map(|segment| segment.meta.generations.1)
        .max()
        .unwrap_or_default()
}

/// Rewrites the first file of `base` that does not hold the runs up to generation `upto`.
fn base_step(chain: &Chain, base: &Run, above: &[Run], upto: Generation) -> MergePlan {
    let files = &chain.refs()[base.span.clone()];
    let frozen: Vec<&SegmentRef> = above
        .iter()
        .flat_map(|run| &chain.refs()[run.span.clone()])
        .filter(|segment| segment.meta.generations.1 <= upto)
        .collect();
    let behind = |file: &SegmentRef| file.meta.generations.1 < upto;
    let index = files.iter().position(behind).unwrap_or(files.len() - 1);
    let is_last = files.iter().skip(index + 1).all(|file| !behind(file));
    let first_key = |file: &SegmentRef| file.meta.regions.first().map(|r| r.first_key.clone());
    let span = KeySpan {
        start: (index > 0).then(|| first_key(&files[index])).flatten(),
        end: files.get(index + 1).and_then(first_key),
    };
    let mut replaces = vec![files[index].clone()];
    if is_last {
        replaces.extend(frozen.iter().map(|segment| (*segment).clone()));
    }
    let inputs = std::iter::once(&files[index]).chain(frozen);
    MergePlan {
        inputs: inputs.cloned().collect(),
        span,
        clip: files[index].clip,
        replaces,
        tier: Tier::BASE,
        run: Some(base.number),
        generations: (files[index].meta.generations.0, upto),
    }
}

/// Everything into one new base: for chains without a base, and for those with several, which a
/// task has after a rescale.
fn whole(chain: &Chain, range: HashRange) -> MergePlan {
    merge_refs(chain.refs(), Tier::BASE, range)
}

fn merge_runs(chain: &Chain, runs: &[Run], tier: Tier, range: HashRange) -> MergePlan {
    let (first, last) = (&runs[0], &runs[runs.len() - 1]);
    merge_refs(&chain.refs()[first.span.start..last.span.end], tier, range)
}

fn merge_refs(refs: &[SegmentRef], tier: Tier, clip: HashRange) -> MergePlan {
    let generations = refs.iter().map(|segment| segment.meta.generations);
    let oldest = generations
        .clone()
        .map(|(oldest, _)| oldest)
        .min()
        .unwrap_or_default();
    let newest = generations
        .map(|(_, newest)| newest)
        .max()
        .unwrap_or_default();
    MergePlan {
        inputs: refs.to_vec(),
        span: KeySpan::default(),
        clip,
        replaces: refs.to_vec(),
        tier,
        run: None,
        generations: (oldest, newest),
    }
}
