//! The steps of a reader outside the job.

use std::sync::Arc;

use super::bounds::Variant;
use super::objects::Put;
use super::world::{Answer, READER, Reader, World};
use crate::manifest::Position;
use crate::store::protocol::CreateAnswer;

impl World {
    /// Creates the pin; a pin in doubt is created again.
    pub(super) fn pin(&mut self, position: Position, answer: Answer) {
        if self.reader == Reader::Idle {
            self.left.pins -= 1;
        }
        let got = self.send(Put::Pin(READER, position), answer);
        self.reader = match got {
            CreateAnswer::InDoubt => Reader::Pinning(position),
            CreateAnswer::Created | CreateAnswer::Exists => Reader::Pinned(position),
        };
    }

    /// Reads the condemn records again, then the manifest.
    pub(super) fn read(&mut self) {
        let Reader::Pinned(position) = self.reader else {
            panic!("it has pinned");
        };
        let is_condemned = self.store.condemns(position) && self.variant != Variant::NoReread;
        match self.store.manifests.get(&position) {
            Some(manifest) if !is_condemned => {
                self.reader = Reader::Reading(position, Arc::clone(&manifest.names));
            }
            _ => self.unpin(),
        }
    }

    /// Removes the pin, or its lease ends.
    pub(super) fn unpin(&mut self) {
        self.store.pins.remove(&READER);
        self.reader = Reader::Done;
    }
}
