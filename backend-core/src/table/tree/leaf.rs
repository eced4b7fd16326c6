//! A leaf: entries in order, their bytes packed behind each other.

use bytes::Bytes;

use crate::generation::{Generation, WriteContext};

/// A leaf with more entries is split.
pub(super) const CELLS_MAX: usize = 128;
/// A leaf with more bytes is split.
pub(super) const LEAF_BYTES_MAX: usize = 4 << 10;
/// Values above this are shared instead of packed.
const PACKED_VALUE_BYTES_MAX: usize = 512;
/// The age of an entry whose birth is unknown, or too long ago to tell.
const AGE_UNKNOWN: u8 = u8::MAX;

/// Where one entry lies, and when it was written.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Where sub-key and value begin in the leaf's bytes.
    offset: u32,
    key_bytes: u32,
    value: CellValue,
    stamp: u32,
    age: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellValue {
    /// The value follows the sub-key.
    Packed(u32),
    /// An index into the leaf's shared values.
    Shared(u32),
    /// A deletion that is remembered.
    Tombstone,
}

/// Entries in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    shared: Vec<Bytes>,
    /// Bytes that no cell refers to any more.
    garbage: u32,
    tombstones: u32,
}

/// What a write did to the number of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) live: i64,
    pub(super) tombstones: i64,
    pub(super) live_bytes: i64,
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn tombstones(&self) -> u32 {
        self.tombstones
    }

    pub(super) fn max_stamp(&self) -> u32 {
        self.cells.iter().map(|cell| cell.stamp).max().unwrap_or(0)
    }

    pub(super) fn key(&self, index: usize) -> &[u8] {
        let cell = &self.cells[index];
        let start = cell.offset as usize;
        &self.bytes[start..start + cell.key_bytes as usize]
    }

    pub(super) fn stamp(&self, index: usize) -> Generation {
        Generation(self.cells[index].stamp)
    }

    /// The value, or `None` for a remembered deletion.
    pub(super) fn value(&self, index: usize) -> Option<&[u8]> {
        let cell = &self.cells[index];
        match cell.value {
            CellValue::Packed(len) => {
                let start = (cell.offset + cell.key_bytes) as usize;
                Some(&self.bytes[start..start + len as usize])
            }
            CellValue::Shared(shared) => Some(&self.shared[shared as usize]),
            CellValue::Tombstone => None,
        }
    }

    /// Where `key` is, or where it belongs.
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        if let Some(last) = self.cells.len().checked_sub(1)
            && self.key(last) < key
        {
            return Err(self.cells.len());
        }
        let (mut low, mut high) = (0, self.cells.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Sets the value of `key`, written in `stamp` and born no earlier than `born` says.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8], stamp: Generation) -> Change {
        match self.find(key) {
            Ok(index) => {
                let before = self.cells[index];
                let was_live = self.value(index).map(<[u8]>::len);
                let born = before.born();
                if let CellValue::Packed(len) = before.value
                    && len as usize == value.len()
                {
                    let start = (before.offset + before.key_bytes) as usize;
                    self.bytes[start..start + value.len()].copy_from_slice(value);
                    self.cells[index].set_stamp(stamp, born);
                } else {
                    self.forget_bytes(&before);
                    let mut cell = self.add_bytes(key, value);
                    cell.set_stamp(stamp, born);
                    self.cells[index] = cell;
                    self.compact_if_due();
                }
                let Some(old) = was_live else {
                    self.tombstones -= 1;
                    let live_bytes = (key.len() + value.len()) as i64;
                    return Change {
                        live: 1,
                        tombstones: -1,
                        live_bytes,
                    };
                };
                Change {
                    live_bytes: value.len() as i64 - old as i64,
                    ..Change::default()
                }
            }
            Err(index) => {
                let mut cell = self.add_bytes(key, value);
                cell.set_stamp(stamp, stamp);
                self.cells.insert(index, cell);
                Change {
                    live: 1,
                    tombstones: 0,
                    live_bytes: (key.len() + value.len()) as i64,
                }
            }
        }
    }

    /// Removes `key`, and remembers it if an older segment may hold it.
    pub(super) fn remove(&mut self, key: &[u8], context: &WriteContext) -> Change {
        let Ok(index) = self.find(key) else {
            return Change::default();
        };
        let before = self.cells[index];
        let Some(old) = self.value(index).map(<[u8]>::len) else {
            return Change::default();
        };
        let live_bytes = -((before.key_bytes as usize + old) as i64);
        let born = before.born();
        if context.keeps_tombstone(context.generation, born) {
            if let CellValue::Packed(len) = before.value {
                self.garbage += len;
            }
            self.drop_shared(&before);
            let cell = &mut self.cells[index];
            cell.value = CellValue::Tombstone;
            cell.set_stamp(context.generation, born);
            self.tombstones += 1;
            self.compact_if_due();
            Change {
                live: -1,
                tombstones: 1,
                live_bytes,
            }
        } else {
            self.forget_bytes(&before);
            self.cells.remove(index);
            self.compact_if_due();
            Change {
                live: -1,
                tombstones: 0,
                live_bytes,
            }
        }
    }

    /// Forgets the deletions that need not be remembered any more, and says how many.
    pub(super) fn drop_tombstones(&mut self, context: &WriteContext) -> u32 {
        let before = self.tombstones;
        let mut garbage = 0;
        self.cells.retain(|cell| {
            let stamp = Generation(cell.stamp);
            let keep =
                cell.value != CellValue::Tombstone || context.keeps_tombstone(stamp, cell.born());
            if !keep {
                garbage += cell.key_bytes;
            }
            keep
        });
        self.garbage += garbage;
        self.tombstones = self
            .cells
            .iter()
            .filter(|cell| cell.value == CellValue::Tombstone)
            .count() as u32;
        self.compact_if_due();
        before - self.tombstones
    }

    pub(super) fn is_over_full(&self) -> bool {
        self.cells.len() > 1
            && (self.cells.len() > CELLS_MAX
                || self.bytes.len() - self.garbage as usize > LEAF_BYTES_MAX)
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.cells.len() < CELLS_MAX / 4
            && self.bytes.len() - (self.garbage as usize) < LEAF_BYTES_MAX / 4
    }

    /// Splits off the upper part: about half, or the last entry alone if the leaf grows at its
    /// right edge.
    pub(super) fn split(&mut self, at_right_edge: bool) -> Self {
        let count = self.cells.len();
        let at = if at_right_edge { count - 1 } else { count / 2 };
        let mut upper = Self::default();
        for index in at..count {
            upper.push_from(self, index);
        }
        let mut lower = Self::default();
        for index in 0..at {
            lower.push_from(self, index);
        }
        *self = lower;
        upper
    }

    /// Takes over the entries of the next leaf.
    pub(super) fn absorb(&mut self, next: &Self) {
        for index in 0..next.cells.len() {
            self.push_from(next, index);
        }
    }

    fn push_from(&mut self, other: &Self, index: usize) {
        let cell = other.cells[index];
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(other.key(index));
        let value = match cell.value {
            CellValue::Packed(len) => {
                self.bytes
                    .extend_from_slice(other.value(index).unwrap_or_default());
                CellValue::Packed(len)
            }
            CellValue::Shared(shared) => {
                self.shared.push(other.shared[shared as usize].clone());
                CellValue::Shared(self.shared.len() as u32 - 1)
            }
            CellValue::Tombstone => {
                self.tombstones += 1;
                CellValue::Tombstone
            }
        };
        self.cells.push(Cell {
            offset,
            value,
            ..cell
        });
    }

    fn add_bytes(&mut self, key: &[u8], value: &[u8]) -> Cell {
        let offset = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let place = if value.len() > PACKED_VALUE_BYTES_MAX {
            self.shared.push(Bytes::copy_from_slice(value));
            CellValue::Shared(self.shared.len() as u32 - 1)
        } else {
            self.bytes.extend_from_slice(value);
            CellValue::Packed(value.len() as u32)
        };
        Cell {
            offset,
            key_bytes: key.len() as u32,
            value: place,
            stamp: 0,
            age: 0,
        }
    }

    fn forget_bytes(&mut self, cell: &Cell) {
        self.garbage += cell.key_bytes;
        match cell.value {
            CellValue::Packed(len) => self.garbage += len,
            CellValue::Shared(_) => self.drop_shared(cell),
            CellValue::Tombstone => {}
        }
    }

    fn drop_shared(&mut self, cell: &Cell) {
        if let CellValue::Shared(shared) = cell.value {
            self.shared[shared as usize] = Bytes::new();
        }
    }

    fn compact_if_due(&mut self) {
        if self.garbage as usize > 256 + self.bytes.len() / 2
            || self.shared.len() > 16 + 2 * self.cells.len()
        {
            let mut compacted = Self::default();
            for index in 0..self.cells.len() {
                compacted.push_from(self, index);
            }
            *self = compacted;
        }
    }
}

impl Cell {
    fn born(&self) -> Generation {
        if self.age == AGE_UNKNOWN {
            Generation::ZERO
        } else {
            Generation(self.stamp.saturating_sub(u32::from(self.age)))
        }
    }

    fn set_stamp(&mut self, stamp: Generation, born: Generation) {
        self.stamp = stamp.0;
        let age = stamp.0.saturating_sub(born.0);
        self.age = u8::try_from(age).unwrap_or(AGE_UNKNOWN);
    }
}
