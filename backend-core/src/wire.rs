//! Little-endian fields in and out of bytes, every length bounded before it is believed.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::NAME_BYTES_MAX;

/// Appends fields to a section.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn u128(&mut self, value: u128) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A count or length of something that the caller holds in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if it does not fit 32 bits.
    pub(crate) fn count(&mut self, count: usize) -> Result<()> {
        let count = u32::try_from(count)
            .map_err(|_| Error::new(ErrorKind::Limit, "a list is too long").with("got", count))?;
        self.u32(count);
        Ok(())
    }

    /// A length of four bytes, then the bytes.
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> Result<()> {
        self.count(bytes.len())?;
        self.raw(bytes);
        Ok(())
    }

    /// A name: as a blob, at most [`NAME_BYTES_MAX`] bytes.
    pub(crate) fn name(&mut self, name: &str) -> Result<()> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::new(ErrorKind::Limit, "a name is too long")
                .with("bytes_max", NAME_BYTES_MAX)
                .with("got", name.len()));
        }
        self.blob(name.as_bytes())
    }

    /// A byte that says whether a value follows.
    pub(crate) fn option<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.u8(u8::from(value.is_some()));
        value.map_or(Ok(()), |value| write(self, value))
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Takes fields off a section. Errors name the section and the offset in the object.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    section: &'static str,
    bytes: &'a [u8],
    at: usize,
    start: u64,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which lie at `start` of their object.
    pub(crate) fn new(section: &'static str, bytes: &'a [u8], start: u64) -> Self {
        Self {
            section,
            bytes,
            at: 0,
            start,
        }
    }

    /// Damage at the field that was read last or comes next.
    pub(crate) fn corrupt(&self, message: &'static str) -> Error {
        Error::new(ErrorKind::Corrupt, message)
            .with("section", self.section)
            .with("offset", self.start + self.at as u64)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn raw(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.remaining() {
            return Err(self.corrupt("a section ends inside a field").expected_got(
                format_args!("{count} bytes"),
                format_args!("{} bytes", self.remaining()),
            ));
        }
        let bytes = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.raw(N)?.try_into().expect("raw gives what was asked"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub(crate) fn digest(&mut self) -> Result<[u8; 32]> {
        self.array()
    }

    /// A count of items that take at least `bytes_min` each: never more than what is left can
    /// hold.
    pub(crate) fn count(&mut self, bytes_min: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        if count > self.remaining() / bytes_min {
            return Err(self
                .corrupt("a list is longer than its section")
                .with("count", count));
        }
        Ok(count)
    }

    /// A list whose items take at least `bytes_min` each.
    pub(crate) fn list<T>(
        &mut self,
        bytes_min: usize,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.count(bytes_min)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A blob of at most `bytes_max` bytes.
    pub(crate) fn blob(&mut self, bytes_max: usize) -> Result<&'a [u8]> {
        let count = self.count(1)?;
        if count > bytes_max {
            return Err(self
                .corrupt("a field is longer than it can be")
                .with("bytes_max", bytes_max)
                .with("got", count));
        }
        self.raw(count)
    }

    pub(crate) fn bytes(&mut self, bytes_max: usize) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(self.blob(bytes_max)?))
    }

    pub(crate) fn name(&mut self) -> Result<&'a str> {
        let bytes = self.blob(NAME_BYTES_MAX)?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("a name is not UTF-8"))
    }

    /// A byte that is 0 or 1.
    pub(crate) fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.corrupt("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.flag()? {
            read(self).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The section has been read to its end.
    pub(crate) fn end(&self) -> Result<()> {
        if self.remaining() == 0 {
            Ok(())
        } else {
            Err(self
                .corrupt("bytes follow the last field of a section")
                .with("count", self.remaining()))
        }
    }
}
