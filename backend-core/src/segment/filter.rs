//! Filters: which keys may be in a region.
//!
//! The split-block Bloom filter of the Apache Parquet format, 'Bloom filter': blocks of 256
//! bits, eight salts, one bit in each of a block's eight words. What is hashed is the encoded
//! entry key without its sub-key, by XXH3-64 with seed 0.

use xxhash_rust::xxh3::xxh3_64;

/// The bytes of a block; a filter has whole ones.
pub(super) const FILTER_BLOCK_BYTES: usize = 32;
const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// The hash of an encoded entry key without its sub-key.
#[inline]
pub(crate) fn filter_hash(prefix: &[u8]) -> u64 {
    xxh3_64(prefix)
}

/// A filter of about `bits_per_key` bits for each of `hashes`; empty if there is nothing to
/// filter.
pub(crate) fn build_filter(hashes: &[u64], bits_per_key: u32) -> Vec<u8> {
    let bits = hashes.len() * bits_per_key as usize;
    let block_count = bits.div_ceil(8 * FILTER_BLOCK_BYTES);
    let mut blocks = vec![[0_u32; 8]; block_count];
    if block_count > 0 {
        for hash in hashes {
            let block = &mut blocks[block_of(*hash, block_count)];
            for (word, mask) in block.iter_mut().zip(masks(*hash as u32)) {
                *word |= mask;
            }
        }
    }
    blocks
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// Whether a key with `hash` may be among those that `filter` was built from. A filter that is
/// empty or not whole excludes nothing.
pub(crate) fn may_contain(filter: &[u8], hash: u64) -> bool {
    if filter.is_empty() || !filter.len().is_multiple_of(FILTER_BLOCK_BYTES) {
        return true;
    }
    let at = block_of(hash, filter.len() / FILTER_BLOCK_BYTES) * FILTER_BLOCK_BYTES;
    let words = filter[at..at + FILTER_BLOCK_BYTES].chunks_exact(4);
    words.zip(masks(hash as u32)).all(|(word, mask)| {
        let word = word.try_into().map_or(0, u32::from_le_bytes);
        word & mask != 0
    })
}

#[inline]
fn block_of(hash: u64, block_count: usize) -> usize {
    (((hash >> 32) * block_count as u64) >> 32) as usize
}

#[inline]
fn masks(hash: u32) -> [u32; 8] {
    SALTS.map(|salt| 1 << (hash.wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_finds_every_key_and_few_others() {
        let hash = |n: u64| filter_hash(&n.to_le_bytes());
        let hashes: Vec<u64> = (0..100_000).map(hash).collect();
        let filter = build_filter(&hashes, 10);
        assert_eq!(filter.len(), 125_024, "10 bits a key, in whole blocks");
        assert!(hashes.iter().all(|hash| may_contain(&filter, *hash)));
        let strangers = (100_000..200_000)
            .filter(|n| may_contain(&filter, hash(*n)))
            .count();
        assert!(strangers < 2_000, "{strangers} of 100,000 strangers pass");
    }

    #[test]
    fn empty_filter_excludes_nothing() {
        assert!(may_contain(&build_filter(&[], 10), 1));
        assert!(may_contain(&build_filter(&[1], 0), 2));
    }
}
