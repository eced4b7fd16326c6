//! The hash of a key: a pure function of its encoded bytes, known by id.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

/// Identifies a [`KeyHasher`] in manifests. Ids below 1,000 are Stateline's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashId(pub u32);

impl HashId {
    /// XXH3, 64 bits, seed 0.
    pub const XXH3_64: Self = Self(1);
}

impl fmt::Display for HashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::XXH3_64 {
            f.write_str("xxh3-64 (1)")
        } else {
            write!(f, "custom ({})", self.0)
        }
    }
}

/// A hash function over encoded keys.
///
/// It must spread its input over all 64 bits: the top bits choose the task and the page, the low
/// bits the slot.
#[derive(Clone, Copy)]
pub struct KeyHasher {
    id: HashId,
    custom: Option<fn(&[u8]) -> u64>,
}

impl KeyHasher {
    /// XXH3, 64 bits, seed 0: the default.
    pub const XXH3_64: Self = Self {
        id: HashId::XXH3_64,
        custom: None,
    };

    /// A job's own hash function. `id` goes into every manifest and a restore under another id is
    /// refused, so never give two functions one id.
    ///
    /// # Panics
    /// If `id` is below 1,000.
    pub fn custom(id: HashId, hash: fn(&[u8]) -> u64) -> Self {
        assert!(id.0 >= 1_000, "hash ids below 1,000 are reserved");
        Self {
            id,
            custom: Some(hash),
        }
    }

    /// The id that manifests hold.
    pub fn id(&self) -> HashId {
        self.id
    }

    /// The hash of an encoded key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        match self.custom {
            None => xxh3_64(key),
            Some(hash) => hash(key),
        }
    }
}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHasher({})", self.id)
    }
}
