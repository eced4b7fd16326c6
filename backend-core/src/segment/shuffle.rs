//! Bytes of equal significance side by side: values of one width compress better so.

/// Appends `values`, each `width` bytes, to `out`: all first bytes, all second bytes, and so on.
pub(super) fn shuffle(values: &[u8], width: usize, out: &mut Vec<u8>) {
    debug_assert!(values.len().is_multiple_of(width));
    for byte in 0..width {
        out.extend(values.iter().skip(byte).step_by(width));
    }
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(shuffled: &[u8], width: usize) -> Vec<u8> {
    let count = shuffled.len() / width;
    let mut values = vec![0; shuffled.len()];
    if let Some(columns) = columns_of_eight(shuffled, width, count) {
        for (index, value) in values.chunks_exact_mut(8).enumerate() {
            for (byte, column) in value.iter_mut().zip(columns) {
                *byte = column[index];
            }
        }
        return values;
    }
    for (byte, column) in shuffled.chunks_exact(count.max(1)).enumerate() {
        for (index, value) in column.iter().enumerate() {
            values[index * width + byte] = *value;
        }
    }
    values
}

/// The columns of 8-byte values, the most frequent width.
fn columns_of_eight(shuffled: &[u8], width: usize, count: usize) -> Option<[&[u8]; 8]> {
    if width != 8 || count == 0 {
        return None;
    }
    let mut columns = shuffled.chunks_exact(count);
    Some(std::array::from_fn(|_| columns.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffling_is_undone() {
        for width in [1, 2, 3, 8, 16] {
            for count in [0, 1, 2, 1_000] {
                let values: Vec<u8> = (0..width * count).map(|n| (n * 7 % 251) as u8).collect();
                let mut shuffled = Vec::new();
                shuffle(&values, width, &mut shuffled);
                assert_eq!(
                    unshuffle(&shuffled, width),
                    values,
                    "{count} values of {width}"
                );
            }
        }
    }

    #[test]
    fn equal_bytes_lie_side_by_side() {
        let mut shuffled = Vec::new();
        shuffle(&[1, 9, 2, 9, 3, 9], 2, &mut shuffled);
        assert_eq!(shuffled, [1, 2, 3, 9, 9, 9]);
    }
}
