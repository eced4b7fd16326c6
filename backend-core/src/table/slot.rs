//! A slot of a page: 24 bytes that hold a small entry whole, or say where a larger one lies.

use xxhash_rust::xxh3::xxh3_64;

use crate::generation::Generation;
use crate::key::StateKey;

/// The most bytes of a key, and of a value, that a slot holds inline; 16 together.
const INLINE_BYTES_MAX: usize = 15;
/// The bytes of a slot that keys and values share.
pub(super) const PAYLOAD_BYTES: usize = 16;
/// The most bytes of an inline key whose value is an object, or that is a tombstone: the last four
/// bytes of the payload are an index or a size.
pub(super) const INLINE_BESIDE_WORD_MAX: usize = 12;
/// The age of an entry whose birth is unknown, or too long ago to tell.
const AGE_UNKNOWN: u8 = u8::MAX;

/// The slot holds an entry or a tombstone.
pub(super) const OCCUPIED: u8 = 1;
/// Key, namespace and short value lie in the page's heap, not in the slot.
pub(super) const IN_HEAP: u8 = 2;
/// The value is one of the page's objects.
pub(super) const OBJECT: u8 = 4;
/// There is no value: the slot remembers a deletion.
pub(super) const TOMBSTONE: u8 = 8;
/// The inline key has a namespace behind it, and the namespace's length before it.
pub(super) const NAMESPACED: u8 = 16;

/// The bits of [`Slot::meta`] that two slots with one identity share: key length, home, and how
/// the key is stored.
const IDENTITY_MASK: u32 = u32::from_le_bytes([0x0f, 0xff, OCCUPIED | IN_HEAP | NAMESPACED, 0]);
/// The bytes of a heap slot's payload that belong to its identity: the two middle words.
const HEAP_IDENTITY_MASK: u128 = (u64::MAX as u128) << 32;
/// The bits of a length in a heap slot; the other 15 of the word hold a part of the hash.
const HEAP_LENGTH_MASK: u32 = (1 << 17) - 1;

/// An entry. An inline slot's payload is `[namespace length] key namespace value`, the first only
/// with a namespace. A heap slot's payload is four words: the offset in the heap; key length and
/// 15 bits of hash; namespace length and 15 bits of hash; length of the value.
/// An object's index, or the size of what a tombstone hides, is in the last word of either.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Slot {
    pub(super) payload: [u8; PAYLOAD_BYTES],
    /// The generation of the last write.
    pub(super) stamp: u32,
    /// From the low byte: the lengths of inline key and value, four bits each; the home; flags;
    /// the generations between birth and last write. One word, as a look-up compares most of it.
    meta: u32,
}

const _: () = assert!(size_of::<Slot>() == 24);

impl Slot {
    /// A free slot.
    pub(super) const EMPTY: Self = Self {
        payload: [0; PAYLOAD_BYTES],
        stamp: 0,
        meta: 0,
    };

    #[inline]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags() & flag != 0
    }

    #[inline]
    fn flags(&self) -> u8 {
        (self.meta >> 16) as u8
    }

    /// Says whether the slot of a map or list holds anything; its object stays.
    pub(super) fn set_live(&mut self, is_live: bool) {
        self.meta &= !(u32::from(TOMBSTONE) << 16);
        if !is_live {
            self.set_flag(TOMBSTONE);
        }
    }

    #[inline]
    pub(super) fn set_flag(&mut self, flag: u8) {
        self.meta |= u32::from(flag) << 16;
    }

    /// The bits of hash that choose the bucket.
    #[inline]
    pub(super) fn home(&self) -> u8 {
        (self.meta >> 8) as u8
    }

    #[inline]
    fn age(&self) -> u8 {
        (self.meta >> 24) as u8
    }

    /// Sets birth and last write.
    #[inline]
    pub(super) fn set_times(&mut self, born: Generation, stamp: Generation) {
        let age = u8::try_from(stamp.0.saturating_sub(born.0)).unwrap_or(AGE_UNKNOWN);
        self.meta = self.meta & 0x00ff_ffff | u32::from(age) << 24;
        self.stamp = stamp.0;
    }

    #[inline]
    pub(super) fn is_occupied(&self) -> bool {
        self.has(OCCUPIED)
    }

    /// Whether it holds a value.
    #[inline]
    pub(super) fn is_live(&self) -> bool {
        self.flags() & (OCCUPIED | TOMBSTONE) == OCCUPIED
    }

    /// The generation of the first write, as far as it is known; never too late.
    #[inline]
    pub(super) fn born(&self) -> Generation {
        if self.age() == AGE_UNKNOWN {
            Generation::ZERO
        } else {
            Generation(self.stamp.saturating_sub(u32::from(self.age())))
        }
    }

    /// Sets the last write, and keeps the birth.
    #[inline]
    pub(super) fn set_stamp(&mut self, stamp: Generation) {
        if self.stamp != stamp.0 {
            self.set_times(self.born(), stamp);
        }
    }

    /// The bytes of the inline key with its namespace and the length before it.
    #[inline]
    pub(super) fn inline_identity_bytes(&self) -> usize {
        (self.meta & 0x0f) as usize
    }

    #[inline]
    pub(super) fn set_inline_value_bytes(&mut self, count: usize) {
        debug_assert!(count <= 0x0f);
        self.meta |= (count as u32) << 4;
    }

    #[inline]
    pub(super) fn inline_value_bytes(&self) -> usize {
        (self.meta >> 4 & 0x0f) as usize
    }

    /// The value behind an inline key of eight bytes.
    #[inline]
    pub(super) fn value_behind_eight(&self) -> &[u8] {
        let (_, values) = self.payload.split_at(8);
        &values[..self.inline_value_bytes()]
    }

    /// The word at `index` of the payload.
    #[inline]
    pub(super) fn word(&self, index: usize) -> u32 {
        let at = index * 4;
        u32::from_le_bytes([
            self.payload[at],
            self.payload[at + 1],
            self.payload[at + 2],
            self.payload[at + 3],
        ])
    }

    #[inline]
    pub(super) fn set_word(&mut self, index: usize, word: u32) {
        self.payload[index * 4..index * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// Where key, namespace and value of a heap slot begin.
    #[inline]
    pub(super) fn heap_offset(&self) -> usize {
        self.word(0) as usize
    }

    /// The lengths of a heap slot's key and namespace.
    #[inline]
    pub(super) fn heap_identity_bytes(&self) -> (usize, usize) {
        (
            (self.word(1) & HEAP_LENGTH_MASK) as usize,
            (self.word(2) & HEAP_LENGTH_MASK) as usize,
        )
    }

    /// The bytes of the value that lie in the heap.
    #[inline]
    pub(super) fn heap_value_bytes(&self) -> usize {
        if self.has(OBJECT | TOMBSTONE) {
            0
        } else {
            self.word(3) as usize
        }
    }

    /// All that the slot has in the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let (key, namespace) = self.heap_identity_bytes();
        key + namespace + self.heap_value_bytes()
    }

    /// The bytes that a tombstone says it hides, as an estimate.
    pub(super) fn hidden_bytes(&self) -> u32 {
        if self.has(IN_HEAP) || self.inline_identity_bytes() <= INLINE_BESIDE_WORD_MAX {
            self.word(3)
        } else {
            0
        }
    }
}

/// What is looked for: a key with its namespace, in the forms that slots hold it in.
#[derive(Debug)]
pub(super) struct Needle<'a> {
    /// Key and namespace, one after the other.
    pub(super) bytes: &'a [u8],
    pub(super) key_bytes: usize,
    /// The home and further bits, mixed from the hashes of key and namespace.
    mixed: u64,
    /// The inline form.
    inline: Inline,
}

/// The needle of a key of eight bytes without namespace: the most frequent kind, for which a
/// look-up is so short that the processor runs several of them at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eight {
    low: u64,
    pub(super) mixed: u64,
}

impl Eight {
    /// The bits of the meta word that are equal in all live inline slots of one such key.
    const META_MASK: u32 = u32::from_le_bytes([0x0f, 0xff, 0xff, 0]);

    #[inline]
    pub(super) fn of(key: &StateKey) -> Option<Self> {
        let eight = <&[u8; 8]>::try_from(key.key_and_namespace()).ok()?;
        (key.key().len() == 8).then(|| Self {
            low: u64::from_le_bytes(*eight),
            mixed: mix(key.hash()),
        })
    }

    /// Whether a slot holds this key live and with its value inline.
    #[inline]
    pub(super) fn is_at(self, slot: &Slot) -> bool {
        let meta = 8 | ((self.mixed >> 56) as u32) << 8 | u32::from(OCCUPIED) << 16;
        (slot.meta & Self::META_MASK == meta)
            & (u128::from_le_bytes(slot.payload) as u64 == self.low)
    }
}

/// A needle as an inline slot holds it.
#[derive(Clone, Copy, Debug)]
struct Inline {
    /// The payload's words, as far as the masks choose.
    low: u64,
    high: u64,
    low_mask: u64,
    high_mask: u64,
    /// The masked meta word; that of no slot if the needle is too long.
    meta: u32,
}

impl Inline {
    /// The form of a needle that fits into no slot.
    const NONE: Self = Self {
        low: 0,
        high: 0,
        low_mask: 0,
        high_mask: 0,
        meta: u32::MAX,
    };
}

impl<'a> Needle<'a> {
    #[inline]
    pub(super) fn new(key: &'a StateKey) -> Self {
        Self::of_parts(key.hash(), key.key_and_namespace(), key.key().len())
    }

    #[inline]
    fn of_parts(hash: u64, bytes: &'a [u8], key_bytes: usize) -> Self {
        if let Ok(eight) = <&[u8; 8]>::try_from(bytes)
            && key_bytes == 8
        {
            let mixed = mix(hash);
            let inline = Inline {
                low: u64::from_le_bytes(*eight),
                high: 0,
                low_mask: u64::MAX,
                high_mask: 0,
                meta: 8 | ((mixed >> 56) as u32) << 8 | u32::from(OCCUPIED) << 16,
            };
            return Self {
                bytes,
                key_bytes,
                mixed,
                inline,
            };
        }
        Self::of_any(hash, bytes, key_bytes)
    }

    #[inline(never)]
    fn of_any(hash: u64, bytes: &'a [u8], key_bytes: usize) -> Self {
        let is_namespaced = bytes.len() > key_bytes;
        let (mixed, inline_bytes, flags) = if is_namespaced {
            let mixed = mix(hash ^ xxh3_64(&bytes[key_bytes..]));
            (mixed, bytes.len() + 1, OCCUPIED | NAMESPACED)
        } else {
            (mix(hash), bytes.len(), OCCUPIED)
        };
        let mut inline = Inline::NONE;
        if inline_bytes <= INLINE_BYTES_MAX {
            let mut padded = [0; PAYLOAD_BYTES];
            let start = usize::from(is_namespaced);
            padded[0] = (bytes.len() - key_bytes) as u8;
            padded[start..start + bytes.len()].copy_from_slice(bytes);
            let words = u128::from_le_bytes(padded);
            let mask: u128 = (1 << (8 * inline_bytes)) - 1;
            inline = Inline {
                low: words as u64,
                high: (words >> 64) as u64,
                low_mask: mask as u64,
                high_mask: (mask >> 64) as u64,
                meta: u32::from_le_bytes([inline_bytes as u8, (mixed >> 56) as u8, flags, 0]),
            };
        }
        Self {
            bytes,
            key_bytes,
            mixed,
            inline,
        }
    }

    /// The home of a key's slot.
    #[inline]
    pub(super) fn home_of(key: &'a StateKey) -> u8 {
        if key.namespace().is_empty() {
            return (mix(key.hash()) >> 56) as u8;
        }
        Self::new(key).home()
    }

    /// Bits of hash apart from the home; never 0.
    #[inline]
    pub(super) fn tag(&self) -> u8 {
        tag_of(self.mixed)
    }

    #[inline]
    pub(super) fn home(&self) -> u8 {
        (self.mixed >> 56) as u8
    }

    /// The length of the inline form, if there is one.
    #[inline]
    pub(super) fn inline_bytes(&self) -> Option<usize> {
        (self.inline.meta != u32::MAX).then_some((self.inline.meta & 0x0f) as usize)
    }

    /// Whether `slot` holds this identity inline, without a branch.
    #[inline]
    pub(super) fn is_inline_at(&self, slot: &Slot) -> bool {
        let words = u128::from_le_bytes(slot.payload);
        let Inline {
            low,
            high,
            low_mask,
            high_mask,
            meta,
        } = self.inline;
        (slot.meta & IDENTITY_MASK == meta)
            && (words as u64 & low_mask == low)
            && ((words >> 64) as u64 & high_mask == high)
    }

    /// Whether `slot` may hold this identity in the heap; see [`Needle::is_in_heap_at`].
    #[inline]
    pub(super) fn is_likely_in_heap_at(&self, slot: &Slot) -> bool {
        slot.has(IN_HEAP) && slot.home() == self.home()
    }

    /// Whether a slot with [`IN_HEAP`] holds this identity; `heap` is its page's.
    pub(super) fn is_in_heap_at(&self, slot: &Slot, heap: &[u8]) -> bool {
        let [second, third] = self.heap_words();
        let wanted = u128::from(second) << 32 | u128::from(third) << 64;
        u128::from_le_bytes(slot.payload) & HEAP_IDENTITY_MASK == wanted
            && heap[slot.heap_offset()..].starts_with(self.bytes)
    }

    fn heap_words(&self) -> [u32; 2] {
        let namespace_bytes = self.bytes.len() - self.key_bytes;
        [
            self.key_bytes as u32 | (self.mixed >> 24) as u32 & !HEAP_LENGTH_MASK,
            namespace_bytes as u32 | (self.mixed >> 9) as u32 & !HEAP_LENGTH_MASK,
        ]
    }

    /// An occupied slot with this identity inline and no value yet.
    pub(super) fn inline_slot(&self) -> Slot {
        debug_assert!(self.inline_bytes().is_some());
        let words = u128::from(self.inline.high) << 64 | u128::from(self.inline.low);
        Slot {
            payload: words.to_le_bytes(),
            stamp: 0,
            meta: self.inline.meta,
        }
    }

    /// An occupied slot whose identity lies in the heap at `offset`, and no value yet.
    pub(super) fn heap_slot(&self, offset: u32) -> Slot {
        let [second, third] = self.heap_words();
        let mut slot = Slot {
            meta: u32::from_le_bytes([0, self.home(), OCCUPIED | IN_HEAP, 0]),
            ..Slot::EMPTY
        };
        slot.set_word(0, offset);
        slot.set_word(1, second);
        slot.set_word(2, third);
        slot
    }
}

/// Spreads a hash over the top byte: the top bits of the hash choose the page, so all entries of a
/// page agree in them.
#[inline]
fn mix(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Bits of a mixed hash apart from the home; never 0.
#[inline]
pub(super) fn tag_of(mixed: u64) -> u8 {
    (mixed >> 48) as u8 | 0x80
}
