//! Taking bytes off the front.

/// Bytes that are taken from front to back.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next `count` bytes; `None` if there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// A length of four bytes, then the bytes.
    pub(crate) fn blob(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.take(count as usize)
    }

    /// A byte, 0 behind the end.
    pub(crate) fn byte_or_zero(&mut self) -> u8 {
        self.u8().unwrap_or(0)
    }

    /// Up to `count` bytes, fewer at the end.
    pub(crate) fn up_to(&mut self, count: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        head
    }
}
