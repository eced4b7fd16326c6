//! What manifests refer to: each object once, with the snapshots that name it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::hash::HashId;
use crate::manifest::{Blob, Manifest, Position};
use crate::names::{ObjectName, PartsName};
use crate::segment::{SegmentLocation, SegmentMeta};

/// What lies at a place, as some manifest says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// A segment whose keys are hashed by that function.
    Segment(Arc<SegmentMeta>, HashId),
    /// Bytes of an engine.
    Blob(Blob),
}

impl Content {
    pub(super) fn location(&self) -> &SegmentLocation {
        match self {
            Self::Segment(meta, _) => &meta.location,
            Self::Blob(blob) => &blob.location,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Segment(meta, _) => meta.bytes,
            Self::Blob(blob) => blob.bytes,
        }
    }
}

/// Snapshots by their number in order, as ranges: those that name an object follow each other
/// more often than not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Users(Vec<(u32, u32)>);

impl Users {
    /// Adds a snapshot, which is not below any other.
    fn add(&mut self, snapshot: u32) {
        match self.0.last_mut() {
            Some((_, last)) if *last == snapshot => {}
            Some((_, last)) if *last + 1 == snapshot => *last = snapshot,
            _ => self.0.push((snapshot, snapshot)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The snapshot, if it is the only one.
    fn only(&self) -> Option<u32> {
        match self.0[..] {
            [(first, last)] if first == last => Some(first),
            _ => None,
        }
    }
}

/// A thing to verify, and who is hurt if it is wrong.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) content: Content,
    pub(super) users: Users,
}

/// An object of small segments: how long it is as far as manifests say.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    /// The end of the last thing in it that is named.
    pub(super) bytes: u64,
    /// Whether the manifest that it was written for is among those that were read, so that it
    /// ends there.
    pub(super) is_exact: bool,
    pub(super) users: Users,
}

/// What a manifest refers to, in figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Referred {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// What the manifests so far refer to.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// By place. More than one item at a place only if manifests contradict each other.
    items: HashMap<(ObjectName, u64), Vec<Item>>,
    packed: HashMap<PartsName, Packed>,
}

impl Catalog {
    /// Adds what `manifest`, the snapshot of that number, refers to. Snapshots come in order.
    /// What lies in the manifest itself is not kept, but handed to `inline`.
    pub(super) fn add(
        &mut self,
        snapshot: u32,
        manifest: &Manifest,
        mut inline: impl FnMut(Content),
    ) -> Referred {
        let mut referred = Referred {
            objects: manifest.objects().len() as u64,
            bytes: 0,
        };
        for part in &manifest.parts {
            let hash = part.task.hash;
            let segments = part.task.segments.iter();
            let segments = segments.map(|s| Content::Segment(Arc::clone(&s.meta), hash));
            let channels = part.channels.iter().map(|c| &c.blob);
            let states = part.operator_states.iter().map(|s| &s.blob);
            let blobs = channels.chain(states).cloned().map(Content::Blob);
            for content in segments.chain(blobs) {
                let bytes = content.bytes();
                let is_new = match content.location() {
                    SegmentLocation::Inline(_) => {
                        inline(content);
                        true
                    }
                    SegmentLocation::Object(name) => {
                        self.refer(snapshot, (ObjectName::Segment(*name), 0), content)
                    }
                    SegmentLocation::Packed { name, offset } => {
                        let packed = self.packed.entry(*name).or_default();
                        packed.bytes = packed.bytes.max(offset.saturating_add(bytes));
                        packed.is_exact |= is_written_for(name, manifest);
                        packed.users.add(snapshot);
                        self.refer(snapshot, (ObjectName::Parts(*name), *offset), content)
                    }
                };
                referred.bytes += if is_new { bytes } else { 0 };
            }
        }
        referred
    }

    /// Adds one reference, and says whether it is the first of this snapshot.
    fn refer(&mut self, snapshot: u32, place: (ObjectName, u64), content: Content) -> bool {
        let items = self.items.entry(place).or_default();
        let at = items.iter().position(|item| item.content == content);
        let at = at.unwrap_or_else(|| {
            items.push(Item {
                content,
                users: Users::default(),
            });
            items.len() - 1
        });
        let last = items[at].users.0.last().map(|(_, last)| *last);
        items[at].users.add(snapshot);
        last != Some(snapshot)
    }

    /// Whether a manifest refers to `object`.
    pub(super) fn names(&self, object: ObjectName) -> bool {
        match object {
            ObjectName::Parts(name) => self.packed.contains_key(&name),
            object => self.items.contains_key(&(object, 0)),
        }
    }

    /// Everything to verify.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values().flatten()
    }

    /// The objects that hold the small state of many tasks.
    pub(super) fn packed(&self) -> impl Iterator<Item = (&PartsName, &Packed)> {
        self.packed.iter()
    }

    /// The bytes in objects that only one snapshot names, by its number.
    pub(super) fn own_bytes(&self) -> HashMap<u32, u64> {
        let mut own = HashMap::new();
        for item in self.items() {
            let only = match item.content.location() {
                SegmentLocation::Packed { name, .. } => {
                    self.packed.get(name).and_then(|p| p.users.only())
                }
                SegmentLocation::Inline(_) => None,
                SegmentLocation::Object(_) => item.users.only(),
            };
            if let Some(snapshot) = only {
                *own.entry(snapshot).or_default() += item.content.bytes();
            }
        }
        own
    }
}

fn is_written_for(name: &PartsName, manifest: &Manifest) -> bool {
    let meta = &manifest.meta;
    Position::new(name.epoch, name.snapshot) == meta.position && name.unique == meta.unique
}
