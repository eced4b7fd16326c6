//! How two snapshots differ, entry by entry.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::hash::{HashId, KeyHasher};
use crate::ids::OperatorId;
use crate::inspect::compare::{Differences, Operand, cut};
use crate::inspect::difference::Difference;
use crate::inspect::hashers::known_hasher;
use crate::inspect::pump::Pump;
use crate::manifest::OperatorMeta;
use crate::runtime::IoRuntime;
use crate::store::Snapshot;

/// The threads that a diff reads on.
const IO_THREADS: usize = 2;

/// What two snapshots are compared by.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Whether entries that differ in nothing but when they expire count as equal.
    /// Default: false.
    pub ignores_expiry: bool,
    /// The only operators that are compared; all if there are none. Default: none.
    pub operators: Vec<OperatorId>,
    /// The job's own hash functions, if it has any. Default: none.
    pub hashers: Vec<KeyHasher>,
}

/// Which of two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The older one.
    Old,
    /// The newer one.
    New,
}

/// An operator, or one of its states, that only one of two snapshots knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OneSided {
    /// The snapshot that knows it.
    pub side: Side,
    /// The operator.
    pub operator: OperatorId,
    /// The state; `None` for the operator as a whole.
    pub state: Option<String>,
}

/// The differences of two snapshots, one after the other.
pub struct Diff {
    pump: Pump<Differences>,
    one_sided: Vec<OneSided>,
}

/// Compares `old` with `new`, which may be of different parallelism, of different jobs and in
/// different stores.
///
/// The hash space is cut where a task of either snapshot begins, and each piece is merged on both
/// sides at once, so memory holds two regions for each run of two tasks. Pieces whose segments
/// both snapshots share are not read. Differences come by operator, by piece, and in the order of
/// entries within a piece. Entries that had expired at their snapshot's clock are absent.
///
/// A list's elements are compared by their place, so one that was replaced as a whole differs in
/// all of them.
///
/// ```
/// use backend_core::inspect::{DiffOptions, diff};
/// use backend_core::{Result, Snapshot};
///
/// async fn changed(old: &Snapshot, new: &Snapshot) -> Result<u64> {
///     let mut diff = diff(old, new, &DiffOptions::default())?;
///     let mut count = 0;
///     while let Some(difference) = diff.next().await? {
///         count += u64::from(difference.old.is_some() && difference.new.is_some());
///     }
///     Ok(count)
/// }
/// ```
///
/// # Errors
/// [`ErrorKind::Mismatch`] if an operator's keys are encoded or hashed in two ways;
/// [`ErrorKind::Unsupported`] if nobody knows the hash function; [`ErrorKind::NotFound`] if a
/// wanted operator is in neither; [`ErrorKind::Transient`] if no threads can be had.
pub fn diff(old: &Snapshot, new: &Snapshot, options: &DiffOptions) -> Result<Diff> {
    let io = IoRuntime::new(IO_THREADS)?;
    let mut one_sided = Vec::new();
    let mut pieces = VecDeque::new();
    let known = old.operators().iter().chain(new.operators());
    let mut ids: Vec<&OperatorId> = known.map(|operator| &operator.id).collect();
    ids.sort_unstable();
    ids.dedup();
    for wanted in &options.operators {
        if !ids.contains(&wanted) {
            return Err(
                Error::new(ErrorKind::NotFound, "neither snapshot knows the operator")
                    .with("operator", wanted),
            );
        }
    }
    for id in ids {
        if !options.operators.is_empty() && !options.operators.contains(id) {
            continue;
        }
        let (a, b) = (old.manifest().operator(id), new.manifest().operator(id));
        let hasher = check_operator(id, a, b, &options.hashers)?;
        note_one_sided(id, a, b, &mut one_sided);
        let sides = [
            a.map(|meta| Arc::new(Operand::of(old, meta, hasher))),
            b.map(|meta| Arc::new(Operand::of(new, meta, hasher))),
        ];
        pieces.extend(cut(id, &sides));
    }
    let differences = Differences::new(io.clone(), pieces, options.ignores_expiry);
    Ok(Diff {
        pump: Pump::new(io, differences),
        one_sided,
    })
}

impl Diff {
    /// The operators and states that only one of the snapshots knows. Their entries are also
    /// among the differences.
    pub fn one_sided(&self) -> &[OneSided] {
        &self.one_sided
    }

    /// The next difference; `None` at the end.
    ///
    /// A future that is dropped before it is ready ends the walk.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] and [`ErrorKind::NotFound`] name an object that is damaged or
    /// missing; [`ErrorKind::Transient`] if the store did not answer. After an error, and after a
    /// future that was dropped, [`ErrorKind::Closed`].
    pub async fn next(&mut self) -> Result<Option<Difference>> {
        self.pump.next().await
    }
}

impl fmt::Debug for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diff")
            .field("one_sided", &self.one_sided)
            .finish_non_exhaustive()
    }
}

fn check_operator(
    id: &OperatorId,
    old: Option<&OperatorMeta>,
    new: Option<&OperatorMeta>,
    hashers: &[KeyHasher],
) -> Result<KeyHasher> {
    let differs = |what: &'static str, old: String, new: String| {
        Err(Error::new(
            ErrorKind::Mismatch,
            "the keys of an operator differ in kind, so they cannot be compared",
        )
        .with("operator", id)
        .with("what", what)
        .expected_got(old, new))
    };
    if let (Some(old), Some(new)) = (old, new) {
        if old.hash != new.hash {
            return differs("hash", old.hash.to_string(), new.hash.to_string());
        }
        if old.key_codec != new.key_codec {
            let (old, new) = (old.key_codec.to_string(), new.key_codec.to_string());
            return differs("key codec", old, new);
        }
    }
    let hash = old
        .or(new)
        .map_or(HashId::XXH3_64, |operator| operator.hash);
    known_hasher(hash, hashers).map_err(|e| e.with("operator", id))
}

fn note_one_sided(
    id: &OperatorId,
    old: Option<&OperatorMeta>,
    new: Option<&OperatorMeta>,
    one_sided: &mut Vec<OneSided>,
) {
    let mut note = |side, state: Option<String>| {
        one_sided.push(OneSided {
            side,
            operator: id.clone(),
            state,
        });
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            let knows = |operator: &OperatorMeta, name: &str| {
                operator.states.iter().any(|s| s.descriptor.name == name)
            };
            for (side, own, other) in [(Side::Old, old, new), (Side::New, new, old)] {
                let names = own.states.iter().map(|s| &s.descriptor.name);
                for name in names.filter(|name| !knows(other, name)) {
                    note(side, Some(name.clone()));
                }
            }
        }
        (Some(_), None) => note(Side::Old, None),
        (None, Some(_)) => note(Side::New, None),
        (None, None) => {}
    }
}
