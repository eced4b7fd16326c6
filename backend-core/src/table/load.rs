//! Filling a table from the segments of a snapshot.

use crate::descriptor::StateKind;
use crate::entry::{Entry, Op};
use crate::error::Result;
use crate::generation::{Generation, WriteContext};
use crate::key::StateKey;
use crate::table::Table;
use crate::table::edit::Stored;
use crate::table::slot::Needle;

impl Table {
    /// Applies an entry of a restored segment, which is of generation `stamp`; the oldest segment
    /// comes first. Entries outside the table's range are skipped, and no tombstones are left.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if key or namespace are too long.
    pub fn load(&mut self, entry: &Entry<'_>, stamp: Generation) -> Result<()> {
        let key = StateKey::new(self.space.hasher(), entry.key.key)?;
        if !self.space.range().contains(key.hash()) {
            return Ok(());
        }
        let key = if entry.key.namespace.is_empty() {
            key
        } else {
            key.in_namespace(entry.key.namespace)?
        };
        let ctx = WriteContext {
            generation: stamp,
            covered: stamp,
            anchor: stamp,
            incremental: false,
        };
        if self.kind() != StateKind::Value {
            match entry.op {
                Op::Put => self.load_sub(&key, entry.key.sub_key, Some(entry.value), stamp, &ctx),
                Op::Delete => self.load_sub(&key, entry.key.sub_key, None, stamp, &ctx),
                Op::DeletePrefix => self.clear(&key, &ctx),
            }
            return Ok(());
        }
        let (needle, place) = (Needle::new(&key), self.space.place(key.hash()));
        match entry.op {
            Op::Put => self.store(&needle, place, Stored::value(entry.value), &ctx),
            Op::Delete | Op::DeletePrefix => self.erase(&needle, place, &ctx),
        }
        Ok(())
    }
}
