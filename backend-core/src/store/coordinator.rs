//! The coordinator of a job: triggers, commits, and learns when it is fenced.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;

use crate::contract::{SnapshotMode, TaskSnapshot, Trigger};
use crate::error::{ErrorKind, Result};
use crate::ids::{Attempt, Digest, Epoch, OperatorId, SnapshotId, UniqueId};
use crate::manifest::{Manifest, ManifestMeta, Position, SnapshotKind};
use crate::names::{ObjectName, PartsName};
use crate::store::assemble::assemble;
use crate::store::collect::Collection;
use crate::store::collect_report::CollectOptions;
use crate::store::known::Known;
use crate::store::operators::Operators;
use crate::store::prepared::{Prepared, adoption, parent_of, taken};
use crate::store::protocol::{Adopt, CommitStep, Ledger, Pending, Retention, choose_base, fenced};
use crate::store::publish::{in_doubt, store_parts};
use crate::store::remote::Remote;
use crate::store::snapshot::Snapshot;

/// How far two clocks may differ until one of them is taken to be wrong.
const CLOCK_SKEW_MS_MAX: u64 = 10 * 60 * 1_000;

/// The leader of a job, as long as nobody claims the next epoch.
///
/// Every `async` call may be dropped: a commit that was under way is then in doubt, and the next
/// call of [`Coordinator::commit`] with its id goes on with it.
#[derive(Debug)]
pub struct Coordinator {
    remote: Remote,
    ledger: Ledger,
    adopted: Snapshot,
    confirmed: Snapshot,
    in_doubt: Option<Prepared>,
    operators: Operators,
    /// Collections begun.
    collections: u64,
    /// Held by the collection that runs: what the ones before it have read.
    collecting: Arc<Mutex<Known>>,
}

/// A confirmed snapshot.
#[derive(Debug)]
pub struct Confirmed {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The right to commit what it lists.
    pub permit: CommitPermit,
}

/// The right to make external effects of one confirmed snapshot visible: those transactions that
/// the engine's bytes in its manifest list, and no others.
///
/// It can be used late, and more than once if external commits are idempotent: who restores from
/// this snapshot or a later one commits the same transactions again.
#[derive(Debug)]
pub struct CommitPermit {
    position: Position,
    unique: UniqueId,
    digest: Digest,
}

impl CommitPermit {
    /// The place of the confirmed snapshot.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The unique id of its manifest.
    pub fn unique(&self) -> UniqueId {
        self.unique
    }

    /// Its identity.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Coordinator {
    /// Adopts a snapshot for `epoch`, which was claimed.
    pub(super) async fn adopt(remote: Remote, epoch: Epoch, adopt: Adopt) -> Result<Self> {
        let listing = remote.listing().await?;
        let choice = choose_base(epoch, &listing.positions(), &listing.condemned, adopt);
        let choice = match choice {
            Err(e) => return Err(remote.overtaken(epoch, e).await),
            Ok(choice) => choice,
        };
        let base = match choice.base {
            Some(position) => match remote.load(position).await {
                Err(e) => return Err(remote.overtaken(epoch, e).await),
                Ok(base) => Some(base),
            },
            None => None,
        };
        let mut prepared = Prepared::new(adoption(&remote, epoch, choice, base.as_ref()))?;
        match prepared.publish(&remote).await? {
            CommitStep::Fenced(by) => return Err(fenced(epoch, by)),
            CommitStep::Taken(unique) => return Err(taken(prepared.position(), unique)),
            _ => {}
        }
        let adopted = prepared.into_snapshot(&remote);
        let objects = Arc::new(adopted.manifest().objects());
        Ok(Self {
            ledger: Ledger::new(epoch, choice.next, objects),
            remote,
            confirmed: adopted.clone(),
            adopted,
            in_doubt: None,
            operators: Operators::default(),
            collections: 0,
            collecting: Arc::default(),
        })
    }

    /// How its store is asked.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The coordinator's epoch.
    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch()
    }

    /// The running attempt.
    pub fn attempt(&self) -> Attempt {
        self.ledger.attempt()
    }

    /// The snapshot that this coordinator began with: the content of its predecessor's last one,
    /// or nothing for a new job.
    pub fn adopted(&self) -> &Snapshot {
        &self.adopted
    }

    /// The last confirmed snapshot: what a restart restores.
    pub fn confirmed(&self) -> &Snapshot {
        &self.confirmed
    }

    /// The snapshot whose commit has neither been confirmed nor refused yet.
    pub fn in_doubt(&self) -> Option<SnapshotId> {
        self.ledger.in_doubt()
    }

    /// Says which operators the job has: from now on a snapshot has exactly these. Without it, a
    /// snapshot may have others beside those of the last one, and the first one of a job whatever
    /// is acknowledged.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] if one of the last confirmed snapshot is not among them and was
    /// not dropped by [`Coordinator::drop_operator`].
    pub fn name_operators(
        &mut self,
        operators: impl IntoIterator<Item = OperatorId>,
    ) -> Result<()> {
        let last = self.operators_of_confirmed();
        self.operators.name(operators.into_iter().collect(), &last)
    }

    /// Gives up the state of an operator: snapshots may leave it out, and then it is gone.
    pub fn drop_operator(&mut self, operator: OperatorId) {
        self.operators.drop_state(operator);
    }

    fn operators_of_confirmed(&self) -> BTreeSet<OperatorId> {
        let operators = &self.confirmed.manifest().operators;
        operators
            .iter()
            .map(|operator| operator.id.clone())
            .collect()
    }

    /// Begins a snapshot. Many can be pending at a time.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if that is known already; [`ErrorKind::Limit`] if too many are
    /// pending.
    pub fn trigger(&mut self, mode: SnapshotMode) -> Result<Trigger> {
        let last = self.confirmed.manifest().meta.ttl_clock_ms;
        let ttl_clock_ms = ttl_clock(last, self.remote.env.now_ms());
        self.ledger.trigger(mode, ttl_clock_ms)
    }

    /// Commits a snapshot: `acks` of all tasks of all operators, and the engine's own bytes for
    /// the job. When it returns, the snapshot is durable and is the job's last one; older
    /// pending ones are dead. On an error other than [`ErrorKind::InDoubt`] nothing has been
    /// committed, and the snapshot stays pending until it is aborted.
    ///
    /// # Errors
    /// - [`ErrorKind::Fenced`]: a later epoch exists; stop. The fact `fenced_by` names it.
    /// - [`ErrorKind::InDoubt`]: not known yet. Call again with the same id, for as long as it
    ///   takes; `acks` and `engine` are not looked at again. Until then nothing may be restored,
    ///   aborted or rolled back.
    /// - [`ErrorKind::Refused`]: the store is full or denies access, and nothing was committed.
    /// - [`ErrorKind::Declined`]: a newer snapshot was confirmed, this one was aborted, an
    ///   acknowledgement is of another attempt, or it refers to an object that it may not rely
    ///   on, which the error names.
    /// - [`ErrorKind::Invalid`], [`ErrorKind::Mismatch`], [`ErrorKind::Limit`]: the
    ///   acknowledgements do not fit together, or an operator of the last confirmed snapshot is
    ///   missing that was not dropped by [`Coordinator::drop_operator`].
    pub async fn commit(
        &mut self,
        id: SnapshotId,
        acks: Vec<TaskSnapshot>,
        engine: Bytes,
    ) -> Result<Confirmed> {
        let pending = self.ledger.committable(id)?;
        if self.in_doubt.is_none() {
            let (prepared, packed) = self.prepare(&pending, acks, engine)?;
            if let Some((name, bytes)) = packed {
                store_parts(&self.remote, name, bytes).await?;
            }
            self.ledger.on_commit_begun(id);
            self.in_doubt = Some(prepared);
        }
        self.settle().await
    }

    /// Gives up a pending snapshot. Nothing is rolled back, and its id is not used again.
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] while any commit is in doubt: it may have been confirmed;
    /// [`ErrorKind::Fenced`]; [`ErrorKind::Invalid`] if it was never triggered, or is the last
    /// confirmed one.
    pub fn abort(&mut self, id: SnapshotId) -> Result<()> {
        self.ledger.abort(id)
    }

    /// The job restarts, within this epoch, from [`Coordinator::confirmed`]: every pending
    /// snapshot is dead, and acknowledgements of earlier attempts are declined.
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] while any commit is in doubt: it is not known yet what to restore;
    /// [`ErrorKind::Fenced`].
    pub fn next_attempt(&mut self) -> Result<Attempt> {
        self.ledger.next_attempt()
    }

    /// Begins a collection: what no snapshot that `retention` keeps needs is to be deleted. It
    /// does nothing until it is run, which can be beside all else that this coordinator does.
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] while any commit is in doubt; [`ErrorKind::Fenced`].
    pub fn collection(
        &mut self,
        retention: &Retention,
        options: CollectOptions,
    ) -> Result<Collection> {
        let holds = self.ledger.holds()?;
        let index = self.collections;
        self.collections += 1;
        let remote = self.remote.clone();
        Ok(Collection::new(
            remote,
            index,
            holds,
            retention.clone(),
            options,
            Arc::clone(&self.collecting),
        ))
    }

    fn prepare(
        &self,
        pending: &Pending,
        acks: Vec<TaskSnapshot>,
        engine: Bytes,
    ) -> Result<(Prepared, Option<(PartsName, Bytes)>)> {
        for ack in &acks {
            self.ledger
                .check_ack(pending, Position::new(ack.epoch, ack.id), ack.attempt)
                .map_err(|e| {
                    e.with("operator", &ack.part.operator)
                        .with("task", ack.part.task)
                })?;
        }
        let got = acks.iter().map(|ack| ack.part.operator.clone()).collect();
        self.operators.check(&got, &self.operators_of_confirmed())?;
        let referred: Vec<ObjectName> = acks
            .iter()
            .flat_map(|ack| &ack.part.segments)
            .filter_map(|segment| segment.meta.location.object())
            .collect();
        self.ledger.check_references(pending, &referred)?;
        let position = Position::new(self.epoch(), pending.trigger.id);
        let unique = UniqueId(self.remote.env.unique());
        let name = PartsName {
            epoch: position.epoch,
            snapshot: position.id,
            unique,
        };
        let parts = acks.into_iter().map(|ack| ack.part).collect();
        let assembled = assemble(parts, name)?;
        let manifest = Manifest {
            meta: ManifestMeta {
                job: self.remote.job.clone(),
                position,
                unique,
                parent: Some(parent_of(&self.confirmed)),
                base: pending.trigger.base,
                created_ms: self.remote.env.now_ms(),
                ttl_clock_ms: pending.ttl_clock_ms,
                kind: match pending.trigger.mode {
                    SnapshotMode::Savepoint => SnapshotKind::Savepoint,
                    SnapshotMode::Full | SnapshotMode::Incremental => SnapshotKind::Aligned,
                },
                engine,
            },
            operators: assembled.operators,
            parts: assembled.parts,
        };
        let prepared = Prepared::new(manifest)?;
        Ok((prepared, assembled.packed.map(|bytes| (name, bytes))))
    }

    async fn settle(&mut self) -> Result<Confirmed> {
        let prepared = self
            .in_doubt
            .as_mut()
            .expect("a commit was prepared before it is settled");
        let position = prepared.position();
        let is_first = !std::mem::replace(&mut prepared.is_begun, true);
        let step = match prepared.publish(&self.remote).await {
            Err(e) if e.kind() == ErrorKind::Refused && is_first => {
                self.in_doubt = None;
                self.ledger.on_commit_refused();
                return Err(e);
            }
            Err(e) if e.kind() == ErrorKind::Refused => {
                return Err(in_doubt(position.object(), e));
            }
            step => step?,
        };
        let prepared = self.in_doubt.take().expect("it was there just now");
        match step {
            CommitStep::Fenced(by) => {
                self.ledger.on_fenced(by);
                Err(fenced(position.epoch, by))
            }
            CommitStep::Taken(unique) => {
                self.ledger.on_fenced(position.epoch);
                Err(taken(position, unique))
            }
            _ => {
                let snapshot = prepared.into_snapshot(&self.remote);
                let objects = Arc::new(snapshot.manifest().objects());
                self.ledger.on_confirmed(position.id, objects);
                self.confirmed = snapshot.clone();
                let permit = CommitPermit {
                    position,
                    unique: snapshot.manifest().meta.unique,
                    digest: snapshot.digest(),
                };
                Ok(Confirmed { snapshot, permit })
            }
        }
    }
}

/// The clock by which a restore drops what had expired. It does not run back by as much as the
/// clocks of two machines differ, so that nothing comes back after a failover; a clock that ran
/// ahead for long is not followed, because all that is written since would be dropped.
fn ttl_clock(last_ms: u64, now_ms: u64) -> u64 {
    if last_ms.saturating_sub(now_ms) <= CLOCK_SKEW_MS_MAX {
        now_ms.max(last_ms)
    } else {
        now_ms
    }
}
