//! Files taken apart as `docs/format.md` has them, and assembled again with right checksums.
//!
//! This is a second reading of the format, independent of the decoders that are fuzzed: lenient
//! where they are strict.

mod block;
mod manifest;
mod record;
mod segment;

pub(crate) use manifest::Manifest;
pub(crate) use record::Record;
pub(crate) use segment::Segment;

use crate::dice::Dice;

/// A file whose parts can be changed one by one.
pub(crate) trait Layout: Sized {
    /// The parts of `bytes`; `None` if they do not lie as the format has them.
    fn take_apart(bytes: &[u8]) -> Option<Self>;

    /// Gives up some of the structure, so that derived fields, too, can be changed.
    fn loosen(&mut self, dice: &mut Dice);

    /// Repeats, drops or swaps parts.
    fn rearrange(&mut self, dice: &mut Dice);

    /// The parts that can be changed.
    fn pieces(&mut self) -> Vec<&mut Vec<u8>>;

    /// The file, with every length, place and checksum that follows from the parts.
    fn assemble(&self) -> Vec<u8>;
}

/// Repeats, drops or swaps items of `list`.
fn rearrange<T: Clone>(list: &mut Vec<T>, dice: &mut Dice) {
    if list.is_empty() {
        return;
    }
    let (a, b) = (dice.below(list.len()), dice.below(list.len()));
    match dice.below(3) {
        0 => list.insert(b, list[a].clone()),
        1 => list.swap(a, b),
        _ => drop(list.remove(a)),
    }
}
