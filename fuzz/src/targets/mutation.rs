//! Changing a part of a file and leaving its checksums right.

use crate::dice::Dice;
use crate::layout::Layout;

/// Changes the first bytes of a buffer, as many as are given, to at most a number of bytes;
/// answers how many they are then.
pub(super) type Fuzzer<'a> = dyn FnMut(&mut [u8], usize, usize) -> usize + 'a;

/// See [`crate::Target::mutate`].
pub(super) fn mutate_parts<L: Layout>(
    data: &mut [u8],
    len: usize,
    len_max: usize,
    seed: u32,
    fuzzer: &mut Fuzzer<'_>,
) -> usize {
    let mut dice = Dice::new(u64::from(seed));
    // Now and then bytes are changed as they lie: checksums have to be compared, too.
    let layout = (!dice.once_in(32)).then(|| L::take_apart(&data[..len]));
    let Some(mut layout) = layout.flatten() else {
        return fuzzer(data, len, len_max);
    };
    if dice.once_in(8) {
        layout.loosen(&mut dice);
    }
    if dice.once_in(8) {
        layout.rearrange(&mut dice);
    } else {
        change_piece(&mut layout, len_max.saturating_sub(len), &mut dice, fuzzer);
    }
    let changed = layout.assemble();
    if changed.len() > len_max {
        return fuzzer(data, len, len_max);
    }
    data[..changed.len()].copy_from_slice(&changed);
    changed.len()
}

fn change_piece<L: Layout>(
    layout: &mut L,
    more_max: usize,
    dice: &mut Dice,
    fuzzer: &mut Fuzzer<'_>,
) {
    let mut pieces = layout.pieces();
    let index = dice.below(pieces.len());
    let Some(piece) = pieces.get_mut(index) else {
        return;
    };
    let len = piece.len();
    let len_max = (len + more_max).max(1);
    piece.resize(len_max.max(len), 0);
    let len = fuzzer(piece, len, len_max);
    piece.truncate(len);
}

#[cfg(test)]
mod tests {
    use crate::{Target, Verdict, seeds};

    /// Without right checksums, next to nothing that was changed would be accepted.
    #[test]
    fn changed_files_get_past_the_checksums() {
        for target in [Target::Manifest, Target::Record, Target::Segment] {
            let mut accepted = 0;
            for seed in seeds().into_iter().filter(|seed| seed.target == target) {
                for chance in 0..200 {
                    let mut data = seed.bytes.clone();
                    let len = data.len();
                    data.resize(len + 64, 0);
                    // Flips one bit of what it is given.
                    let mut fuzzer = |bytes: &mut [u8], len: usize, _max: usize| {
                        if len > 0 {
                            bytes[chance as usize % len] ^= 1;
                        }
                        len
                    };
                    let len = target.mutate(&mut data, len, len + 64, chance, &mut fuzzer);
                    let differs = data[..len] != seed.bytes;
                    accepted +=
                        usize::from(differs && target.run(&data[..len]) == Verdict::Accepted);
                }
            }
            assert!(accepted > 100, "{}: {accepted} accepted", target.name());
        }
    }
}
