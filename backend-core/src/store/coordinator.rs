//! The coordinator of a job: triggers, commits, and learns when it is fenced.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;

use crate::contract::{SnapshotMode, TaskSnapshot, Trigger};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Attempt, Digest, Epoch, SnapshotId, UniqueId};
use crate::manifest::{EncodedManifest, Manifest, ManifestMeta, Parent, Position, SnapshotKind};
use crate::names::{ObjectName, PartsName};
use crate::store::assemble::assemble;
use crate::store::collect::Collection;
use crate::store::collect_report::CollectOptions;
use crate::store::protocol::{
    Adopt, BaseChoice, CommitStep, Committing, Ledger, Pending, Retention, choose_base, fenced,
};
use crate::store::publish::{publish, store_parts};
use crate::store::remote::Remote;
use crate::store::snapshot::Snapshot;

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
    /// Collections begun.
    collections: u64,
    /// Held by the collection that runs.
    collecting: Arc<Mutex<()>>,
}

/// A manifest whose creation has begun.
#[derive(Debug)]
struct Prepared {
    manifest: Arc<Manifest>,
    encoded: EncodedManifest,
    committing: Committing,
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

    /// Begins a snapshot. Many can be pending at a time.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if that is known already; [`ErrorKind::Limit`] if too many are
    /// pending.
    pub fn trigger(&mut self, mode: SnapshotMode) -> Result<Trigger> {
        let last = self.confirmed.manifest().meta.ttl_clock_ms;
        let ttl_clock_ms = self.remote.env.now_ms().max(last);
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
    /// - [`ErrorKind::Declined`]: a newer snapshot was confirmed, this one was aborted, an
    ///   acknowledgement is of another attempt, or it refers to an object that it may not rely
    ///   on, which the error names.
    /// - [`ErrorKind::Invalid`], [`ErrorKind::Mismatch`], [`ErrorKind::Limit`]: the
    ///   acknowledgements do not fit together.
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
    /// [`ErrorKind::Fenced`]; [`ErrorKind::Invalid`] if it was never triggered.
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
        let step = prepared.publish(&self.remote).await?;
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

impl Prepared {
    /// Encodes a manifest, and reads it back: what could not be restored is not committed.
    fn new(manifest: Manifest) -> Result<Self> {
        let encoded = manifest.encode()?;
        let position = manifest.meta.position;
        let fails = || {
            Error::new(
                ErrorKind::Invalid,
                "the acknowledgements make no valid manifest",
            )
        };
        let (again, digest) =
            Manifest::decode(position.object(), &encoded.bytes).map_err(|e| fails().because(e))?;
        if again != manifest || digest != encoded.digest {
            return Err(fails().with("snapshot", position));
        }
        Ok(Self {
            committing: Committing::new(position, manifest.meta.unique),
            manifest: Arc::new(manifest),
            encoded,
        })
    }

    fn position(&self) -> Position {
        self.manifest.meta.position
    }

    async fn publish(&mut self, remote: &Remote) -> Result<CommitStep> {
        let position = self.position();
        publish(remote, position, &mut self.committing, &self.encoded.bytes).await
    }

    fn into_snapshot(self, remote: &Remote) -> Snapshot {
        Snapshot::new(self.manifest, self.encoded.digest, remote.storage.clone())
    }
}

/// The content of `base` under a new position; nothing for a new job.
fn adoption(
    remote: &Remote,
    epoch: Epoch,
    choice: BaseChoice,
    base: Option<&Snapshot>,
) -> Manifest {
    let now_ms = remote.env.now_ms();
    let meta = ManifestMeta {
        job: remote.job.clone(),
        position: Position::new(epoch, choice.next),
        unique: UniqueId(remote.env.unique()),
        parent: base.map(parent_of),
        base: base.map(Snapshot::id),
        created_ms: now_ms,
        ttl_clock_ms: base.map_or(now_ms, |b| b.manifest().meta.ttl_clock_ms),
        // The job goes on from it, so it is no longer the user's alone.
        kind: match base.map(Snapshot::kind) {
            None | Some(SnapshotKind::Savepoint) => SnapshotKind::Aligned,
            Some(kind) => kind,
        },
        engine: base.map_or_else(Bytes::new, |b| b.engine().clone()),
    };
    Manifest {
        meta,
        operators: base.map_or_else(Vec::new, |b| b.manifest().operators.clone()),
        parts: base.map_or_else(Vec::new, |b| b.manifest().parts.clone()),
    }
}

fn parent_of(snapshot: &Snapshot) -> Parent {
    Parent {
        position: snapshot.position(),
        unique: snapshot.manifest().meta.unique,
        digest: snapshot.digest(),
    }
}

fn taken(position: Position, unique: UniqueId) -> Error {
    Error::new(
        ErrorKind::Fenced,
        "another coordinator of the same epoch has taken the snapshot's place",
    )
    .with("object", position.object())
    .with("fenced_by", unique)
}
