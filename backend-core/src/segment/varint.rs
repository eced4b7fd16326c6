//! Numbers in as few bytes as they need: seven bits a byte, the lowest first (LEB128).

/// Appends `value` to `out`.
#[inline]
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front of `bytes`; `None` if they end first, if it does not fit 64
/// bits, or if it has more bytes than it needs.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    let mut value = u64::from(*first & 0x7f);
    let mut rest = rest;
    for shift in (7..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        let bits = u64::from(*byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if *byte < 0x80 {
            *bytes = rest;
            return (*byte != 0).then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            put_varint(value, &mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(take_varint(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(
                take_varint(&mut &bytes[..bytes.len() - 1]),
                None,
                "{value} cut short"
            );
        }
    }

    #[test]
    fn other_forms_of_a_number_are_refused() {
        assert_eq!(take_varint(&mut &[0x80, 0x00][..]), None);
        assert_eq!(take_varint(&mut &[0xff; 10][..]), None);
        assert_eq!(
            take_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]),
            None
        );
    }
}
