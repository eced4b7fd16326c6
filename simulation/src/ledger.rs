//! What must hold: what was confirmed is kept, in one chain, with the contents that it had.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use backend_core::manifest::{Condemn, Manifest, Position};
use backend_core::names::ObjectName;
use backend_core::{JobId, Snapshot};
use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::contents::Contents;
use crate::world::World;

/// The directory of the job.
pub(crate) const ROOT: &str = "job";

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Violation(pub String);

/// What the simulation remembers, apart from any process.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By the engine's bytes of a snapshot, which name every attempt at one.
    contents: BTreeMap<String, Rc<Contents>>,
    parents: BTreeMap<Position, Option<Position>>,
    /// The confirmed snapshots that no operator has given up, with what they name.
    confirmed: BTreeMap<Position, Vec<ObjectName>>,
    last: Option<Position>,
    /// What operators have asked coordinators to go on from.
    wished: BTreeSet<Position>,
    /// How many snapshots were confirmed, adoptions among them.
    pub(crate) confirmations: u64,
}

/// The job that is simulated.
pub(crate) fn job() -> JobId {
    JobId::new("simulated").expect("it is a name")
}

/// The label of a snapshot: of the attempt that wrote its contents.
pub(crate) fn label_of(snapshot: &Snapshot) -> String {
    String::from_utf8_lossy(snapshot.engine()).into_owned()
}

impl Ledger {
    /// A snapshot with `contents` is about to be committed at `position`, on top of `parent`.
    pub(crate) fn attempt(
        &mut self,
        position: Position,
        parent: Position,
        label: &str,
        contents: Rc<Contents>,
    ) {
        self.parents.insert(position, Some(parent));
        self.contents.insert(label.to_owned(), contents);
    }

    /// What the snapshot called `label` holds.
    ///
    /// # Errors
    /// A violation if nobody wrote such a snapshot.
    pub(crate) fn contents(&self, label: &str) -> Result<Rc<Contents>, Violation> {
        if label.is_empty() {
            return Ok(Rc::default());
        }
        let known = self.contents.get(label).map(Rc::clone);
        known.ok_or_else(|| Violation(format!("nobody wrote a snapshot called {label:?}")))
    }

    fn descends(&self, from: Position, ancestor: Position) -> bool {
        let mut next = Some(from);
        while let Some(position) = next {
            if position == ancestor {
                return true;
            }
            next = self.parents.get(&position).copied().flatten();
        }
        false
    }

    /// An operator asks a coordinator to go on from `position`, and gives up what came after.
    pub(crate) fn wish(&mut self, position: Position) {
        self.wished.insert(position);
    }

    /// Whether some coordinator on the way to `position` did what an operator had asked for. It
    /// may have died before it could say so.
    fn is_wished(&self, position: Position) -> bool {
        let mut next = Some(position);
        while let Some(position) = next {
            next = self.parents.get(&position).copied().flatten();
            if let Some(parent) = next
                && parent.epoch < position.epoch
                && self.wished.contains(&parent)
            {
                return true;
            }
        }
        false
    }

    /// A coordinator was told that its snapshot is confirmed.
    ///
    /// # Errors
    /// A violation if it does not descend from the last confirmed one, and no operator wished
    /// that.
    pub(crate) fn confirm(&mut self, snapshot: &Snapshot) -> Result<(), Violation> {
        let position = snapshot.position();
        let parent = snapshot.manifest().meta.parent.map(|p| p.position);
        self.parents.insert(position, parent);
        let loses = self.last.is_some_and(|last| !self.descends(position, last));
        if loses && self.is_wished(position) {
            let kept: BTreeSet<_> = self.confirmed.keys().copied().collect();
            for other in kept {
                if !self.descends(position, other) {
                    self.confirmed.remove(&other);
                }
            }
        } else if let Some(last) = self.last.filter(|_| loses) {
            return Err(Violation(format!(
                "{position} is confirmed and does not descend from {last}, which was"
            )));
        }
        self.last = Some(position);
        let objects = snapshot.manifest().objects().into_iter().collect();
        self.confirmed.insert(position, objects);
        self.confirmations += 1;
        Ok(())
    }

    /// Whether going on from `position` loses nothing that was confirmed.
    ///
    /// # Errors
    /// A violation if it does.
    pub(crate) fn check_successor(&self, position: Position) -> Result<(), Violation> {
        match self.last {
            Some(last) if !self.descends(position, last) && !self.is_wished(position) => {
                Err(Violation(format!(
                    "the job goes on from {position}, which does not descend from {last}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether the manifest `name` has been seen.
    fn knows(&self, name: &str) -> bool {
        let parsed = name[ROOT.len() + 1..].parse::<ObjectName>();
        match parsed {
            Ok(ObjectName::Manifest(epoch, id)) => {
                self.parents.contains_key(&Position::new(epoch, id))
            }
            _ => true,
        }
    }

    /// Whether all that was confirmed and is not condemned is there, and the last one is.
    ///
    /// # Errors
    /// A violation that names what is missing.
    pub(crate) fn check_store(&mut self, stored: &Stored) -> Result<(), Violation> {
        self.parents.extend(&stored.parents);
        if let Some(last) = self.last
            && stored.condemns(last)
        {
            return Err(Violation(format!(
                "the last confirmed one, {last}, is condemned"
            )));
        }
        self.confirmed
            .retain(|position, _| !stored.condemns(*position));
        for (position, objects) in &self.confirmed {
            for object in objects.iter().copied().chain([position.object()]) {
                if !stored.names.contains(&format!("{ROOT}/{object}")) {
                    return Err(Violation(format!("{position} has lost {object}")));
                }
            }
        }
        Ok(())
    }
}

/// What the store holds.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    names: BTreeSet<String>,
    records: Vec<Condemn>,
    /// The parents of manifests that nobody has told about: adoptions of coordinators that died.
    parents: BTreeMap<Position, Option<Position>>,
}

impl Stored {
    /// Looks into the store, past all gates.
    ///
    /// # Errors
    /// A violation if a record or a manifest cannot be read.
    pub(crate) async fn look(world: &World, ledger: &RefCell<Ledger>) -> Result<Self, Violation> {
        let mut names = BTreeSet::new();
        let mut listed = world.objects.list(Some(&Path::from(ROOT)));
        while let Some(Ok(object)) = listed.next().await {
            names.insert(object.location.to_string());
        }
        let mut parents = BTreeMap::new();
        for name in &names {
            let is_new = !ledger.borrow().knows(name);
            if is_new {
                let (object, bytes) = read(world, &Path::from(name.as_str())).await?;
                let decoded = Manifest::decode(object, &bytes);
                let meta = decoded.map_err(|e| Violation(e.to_string()))?.0.meta;
                parents.insert(meta.position, meta.parent.map(|p| p.position));
            }
        }
        Ok(Self {
            names,
            records: condemned(world).await?,
            parents,
        })
    }

    fn condemns(&self, position: Position) -> bool {
        self.records.iter().any(|record| record.condemns(position))
    }
}

async fn condemned(world: &World) -> Result<Vec<Condemn>, Violation> {
    let mut records = Vec::new();
    let mut listed = world.objects.list(Some(&Path::from(ROOT).join("collect")));
    while let Some(Ok(object)) = listed.next().await {
        let (name, bytes) = read(world, &object.location).await?;
        let record = Condemn::decode(name, &job(), &bytes);
        records.push(record.map_err(|e| Violation(e.to_string()))?);
    }
    Ok(records)
}

async fn read(world: &World, path: &Path) -> Result<(ObjectName, Bytes), Violation> {
    let name: ObjectName = path.as_ref()[ROOT.len() + 1..]
        .parse()
        .map_err(|e| Violation(format!("{e}")))?;
    let stored = world.objects.get(path).await;
    let bytes = stored.map_err(|e| Violation(e.to_string()))?.bytes().await;
    Ok((name, bytes.map_err(|e| Violation(e.to_string()))?))
}
