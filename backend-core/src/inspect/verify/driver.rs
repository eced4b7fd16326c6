//! The verification: manifests, then each object once, then the entries of each snapshot.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;

use crate::error::{Error, ErrorKind, Result};
use crate::hash::HashId;
use crate::ids::{Digest, UniqueId};
use crate::inspect::verify::catalog::{Catalog, Content, Item, Referred};
use crate::inspect::verify::count::count;
use crate::inspect::verify::fault::FaultKind;
use crate::inspect::verify::findings::{Findings, of_object};
use crate::inspect::verify::object::{check, check_packed};
use crate::inspect::verify::options::{Scope, VerifyOptions};
use crate::inspect::verify::report::{EntryCounts, Orphan, SnapshotFigures, VerifyReport};
use crate::inspect::verify::survey::{check_claims, condemned, list, written_for};
use crate::manifest::limits::MANIFEST_BYTES_MAX;
use crate::manifest::{Condemn, Manifest, Parent, Position, SnapshotKind};
use crate::names::{Folder, ObjectName};
use crate::store::{Remote, SnapshotStore};

/// Verifies that every byte of the snapshots in `scope` is as it was written, and that their
/// entries are what a restore takes for granted. Snapshots that are condemned are passed over.
///
/// Each object is read once, however many snapshots name it, and one that is damaged stops
/// nothing. Memory holds what manifests say of each object, which is some kilobytes for a segment
/// of default size, and [`VerifyOptions::objects_at_once`] regions.
///
/// ```
/// use backend_core::clock::SystemEnvironment;
/// use backend_core::inspect::{Scope, VerifyOptions, verify};
/// use backend_core::storage::Storage;
/// use backend_core::{JobId, SnapshotStore};
///
/// # fn main() -> backend_core::Result<()> {
/// # futures::executor::block_on(async {
/// let job = JobId::new("counts")?;
/// let store = SnapshotStore::open(Storage::memory(), job, SystemEnvironment::shared()).await?;
/// let coordinator = store.claim().await?;
/// let report = verify(&store, Scope::Store, &VerifyOptions::default()).await?;
/// assert!(report.is_whole(), "{report}");
/// assert_eq!(report.newest_whole, Some(coordinator.adopted().position()));
/// # Ok(())
/// # })
/// # }
/// ```
///
/// What it cannot notice: a manifest that was deleted; bytes appended to an object of small
/// segments (`parts/`) whose own manifest has been collected.
///
/// # Errors
/// [`ErrorKind::Transient`] if the store does not answer; [`ErrorKind::NotFound`] if the one
/// snapshot in scope is not there or condemned; [`ErrorKind::Invalid`] for settings out of
/// bounds. What is wrong with an object is no error, but a fault of the report.
pub async fn verify(
    store: &SnapshotStore,
    scope: Scope,
    options: &VerifyOptions,
) -> Result<VerifyReport> {
    options.validate()?;
    let mut work = Work {
        remote: store.remote().clone(),
        options: options.clone(),
        findings: Findings::new(options.faults_max),
        catalog: Catalog::default(),
        snapshots: Vec::new(),
        hashes_unknown: BTreeSet::new(),
        objects: 0,
        bytes: 0,
    };
    let mut state_objects = Vec::new();
    let positions = match scope {
        Scope::Store => {
            // State first: what a snapshot that is committed meanwhile names is then no orphan.
            for folder in [Folder::Segments, Folder::Parts] {
                state_objects.extend(list(&work.remote, folder, &mut work.findings).await?);
            }
            work.live_positions().await?
        }
        Scope::Snapshot(position) => work.one_position(position).await?,
    };
    for position in positions {
        work.read_manifest(position).await?;
    }
    work.check_parents(scope).await?;
    work.check_objects().await?;
    if options.counts_live {
        work.count_entries().await?;
    }
    if scope == Scope::Store {
        check_claims(&work.remote, &mut work.findings).await?;
    }
    let gone = condemned(&work.remote, &mut Findings::new(0)).await?;
    Ok(work.report(scope, &state_objects, &gone))
}

/// A snapshot on the way.
#[derive(Debug)]
struct Known {
    position: Position,
    /// `None` if its manifest cannot be read.
    manifest: Option<(UniqueId, Digest, SnapshotKind, Option<Parent>)>,
    referred: Referred,
    entries: Option<EntryCounts>,
}

struct Work {
    remote: Remote,
    options: VerifyOptions,
    findings: Findings,
    catalog: Catalog,
    snapshots: Vec<Known>,
    hashes_unknown: BTreeSet<HashId>,
    objects: u64,
    bytes: u64,
}

impl Work {
    /// Manifests first, then condemn records: what is condemned in between is seen.
    async fn live_positions(&mut self) -> Result<Vec<Position>> {
        let manifests = list(&self.remote, Folder::Snapshots, &mut self.findings).await?;
        let condemned = condemned(&self.remote, &mut self.findings).await?;
        let positions = manifests.into_iter().filter_map(|(name, _)| match name {
            ObjectName::Manifest(epoch, id) => Some(Position::new(epoch, id)),
            _ => None,
        });
        Ok(positions
            .filter(|p| !is_condemned(&condemned, *p))
            .collect())
    }

    async fn one_position(&mut self, position: Position) -> Result<Vec<Position>> {
        let object = position.object();
        let absent = |message| Error::new(ErrorKind::NotFound, message).with("object", object);
        let condemned = condemned(&self.remote, &mut Findings::new(0)).await?;
        if is_condemned(&condemned, position) {
            return Err(absent("the snapshot is condemned"));
        }
        match self.remote.size(object).await? {
            Some(_) => Ok(vec![position]),
            None => Err(absent("an object is missing")),
        }
    }

    /// A manifest, or what is wrong with it.
    async fn load(&mut self, position: Position) -> Result<Result<(Manifest, Digest)>> {
        let object = position.object();
        let bytes = match self.remote.get(object, MANIFEST_BYTES_MAX).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let e = Error::new(ErrorKind::NotFound, "an object is missing");
                return Ok(Err(e.with("object", object)));
            }
            Err(e) => return Ok(Err(of_object(e)?)),
        };
        let decoded = Manifest::decode(object, &bytes);
        Ok(decoded.and_then(|(manifest, digest)| {
            if manifest.meta.job == self.remote.job {
                return Ok((manifest, digest));
            }
            Err(Error::new(ErrorKind::Mismatch, "a manifest of another job")
                .with("object", object)
                .expected_got(&self.remote.job, &manifest.meta.job))
        }))
    }

    async fn read_manifest(&mut self, position: Position) -> Result<()> {
        let object = position.object();
        let number = self.snapshots.len() as u32;
        let mut known = Known {
            position,
            manifest: None,
            referred: Referred::default(),
            entries: None,
        };
        self.objects += 1;
        let mut inline = Vec::new();
        match self.load(position).await? {
            Ok((manifest, digest)) => {
                let meta = &manifest.meta;
                known.manifest = Some((meta.unique, digest, meta.kind, meta.parent));
                known.referred = self.catalog.add(number, &manifest, |c| inline.push(c));
            }
            Err(e) => {
                let kind = match e.kind() {
                    ErrorKind::NotFound => FaultKind::Missing,
                    _ => FaultKind::Manifest,
                };
                self.findings.add(object, kind, e, vec![position]);
            }
        }
        self.snapshots.push(known);
        for content in inline {
            let hasher = self.hasher_of(&content);
            let outcome = check(self.remote.clone(), content, hasher).await?;
            if let Some((kind, e)) = outcome.wrong {
                let e = e.with("place", "inline");
                self.findings.add(object, kind, e, vec![position]);
            }
        }
        Ok(())
    }

    fn hasher_of(&mut self, content: &Content) -> Option<crate::hash::KeyHasher> {
        let Content::Segment(_, id) = content else {
            return None;
        };
        let hasher = self.options.hasher(*id);
        if hasher.is_none() {
            self.hashes_unknown.insert(*id);
        }
        hasher
    }

    /// A parent that was collected is no fault, nor is one that is damaged: that has its own.
    async fn check_parents(&mut self, scope: Scope) -> Result<()> {
        let mut identities: BTreeMap<Position, (UniqueId, Digest)> = BTreeMap::new();
        let mut parents = Vec::new();
        for known in &self.snapshots {
            if let Some((unique, digest, _, parent)) = known.manifest {
                identities.insert(known.position, (unique, digest));
                parents.extend(parent.map(|parent| (known.position, parent)));
            }
        }
        for (child, parent) in parents {
            if let Scope::Snapshot(_) = scope
                && let Ok((manifest, digest)) = self.load(parent.position).await?
            {
                identities.insert(parent.position, (manifest.meta.unique, digest));
            }
            let expected = (parent.unique, parent.digest);
            match identities.get(&parent.position) {
                Some(got) if *got != expected => {
                    let e = Error::new(
                        ErrorKind::Mismatch,
                        "the snapshot before it is another one than it says",
                    )
                    .with("parent", parent.position)
                    .expected_got(expected.1, got.1);
                    let object = child.object();
                    self.findings.add(object, FaultKind::Parent, e, vec![child]);
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn check_objects(&mut self) -> Result<()> {
        let items: Vec<Item> = self.catalog.items().cloned().collect();
        let mut checks = Vec::with_capacity(items.len());
        for Item { content, users } in items {
            let hasher = self.hasher_of(&content);
            checks.push((content, users, hasher));
        }
        let remote = self.remote.clone();
        let checks = checks.into_iter().map(|(content, users, hasher)| {
            let remote = remote.clone();
            async move {
                let object = content.location().object();
                let io = remote.io.clone();
                let outcome = io.run(check(remote, content, hasher)).await?;
                Ok::<_, Error>((object, users, outcome))
            }
        });
        let mut done = futures::stream::iter(checks).buffer_unordered(self.options.objects_at_once);
        while let Some(checked) = done.next().await {
            let (object, users, outcome) = checked?;
            self.objects += u64::from(matches!(object, Some(ObjectName::Segment(_))));
            self.bytes += outcome.bytes;
            if let (Some((kind, e)), Some(object)) = (outcome.wrong, object) {
                let hurts = users.iter().map(|n| self.snapshots[n as usize].position);
                let hurts = hurts.collect();
                self.findings.add(object, kind, e, hurts);
            }
        }
        drop(done);
        self.check_packed().await
    }

    async fn check_packed(&mut self) -> Result<()> {
        for (name, packed) in self.catalog.packed() {
            self.objects += 1;
            let wrong = check_packed(self.remote.clone(), *name, packed.clone()).await?;
            if let Some((kind, e)) = wrong {
                let object = ObjectName::Parts(*name);
                let hurts = packed.users.iter();
                let hurts = hurts.map(|n| self.snapshots[n as usize].position);
                self.findings.add(object, kind, e, hurts.collect());
            }
        }
        Ok(())
    }

    async fn count_entries(&mut self) -> Result<()> {
        for number in 0..self.snapshots.len() {
            let position = self.snapshots[number].position;
            if self.findings.hurting(position) > 0 {
                continue;
            }
            // It was readable a moment ago; if it has been collected since, nothing is counted.
            let Ok((manifest, _)) = self.load(position).await? else {
                continue;
            };
            let counted = count(&self.remote, &manifest, |id| self.options.hasher(id)).await;
            match counted? {
                Ok(entries) => self.snapshots[number].entries = entries,
                Err((object, kind, e)) => {
                    let object = object.unwrap_or_else(|| position.object().to_string());
                    self.findings.add(object, kind, e, vec![position]);
                }
            }
        }
        Ok(())
    }

    fn report(
        mut self,
        scope: Scope,
        state_objects: &[(ObjectName, u64)],
        gone: &[Condemn],
    ) -> VerifyReport {
        self.findings
            .forget(|position| is_condemned(gone, position));
        let own = self.catalog.own_bytes();
        let figures = (0_u32..).zip(&self.snapshots).map(|(number, known)| {
            let own = own.get(&number).copied().unwrap_or(0);
            let read = known.manifest;
            SnapshotFigures {
                position: known.position,
                digest: read.map(|(_, digest, ..)| digest),
                kind: read.map(|(_, _, kind, _)| kind),
                faults: self.findings.hurting(known.position),
                objects: known.referred.objects,
                bytes_referenced: known.referred.bytes,
                bytes_own: (scope == Scope::Store && read.is_some()).then_some(own),
                entries: known.entries,
            }
        });
        let snapshots: Vec<SnapshotFigures> = figures
            .filter(|figures| !is_condemned(gone, figures.position))
            .collect();
        let mut report = VerifyReport {
            job: self.remote.job.clone(),
            scope,
            faults: Vec::new(),
            faults_left_out: 0,
            newest_whole: snapshots
                .iter()
                .rfind(|s| s.faults == 0)
                .map(|s| s.position),
            orphans_uncertain: snapshots.iter().any(|s| s.digest.is_none()),
            snapshots,
            objects: self.objects,
            bytes: self.bytes,
            orphans: Vec::new(),
            orphans_all: (0, 0),
            maybe_pending: (0, 0),
            hashes_unknown: self.hashes_unknown.iter().copied().collect(),
        };
        self.add_orphans(&mut report, state_objects);
        (report.faults, report.faults_left_out) = self.findings.into_faults();
        report
    }

    fn add_orphans(&self, report: &mut VerifyReport, state_objects: &[(ObjectName, u64)]) {
        let newest = self.snapshots.last().map(|known| known.position);
        for (object, bytes) in state_objects {
            if self.catalog.names(*object) {
                continue;
            }
            let total = if written_for(*object) > newest {
                &mut report.maybe_pending
            } else {
                &mut report.orphans_all
            };
            total.0 += 1;
            total.1 += bytes;
            let is_orphan = written_for(*object) <= newest;
            if is_orphan && report.orphans.len() < self.options.faults_max {
                report.orphans.push(Orphan {
                    object: object.to_string(),
                    bytes: *bytes,
                });
            }
        }
    }
}

fn is_condemned(condemned: &[Condemn], position: Position) -> bool {
    condemned.iter().any(|record| record.condemns(position))
}
