//! A block of a segment: columns, or stored bytes that are none.

use crate::cursor::Cursor;

const COMPRESSION_ZSTD: u8 = 1;
/// Raw bytes of a block that is taken apart at most; more is left as it is stored.
const RAW_BYTES_MAX: usize = 1 << 20;

/// A block.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// The columns; their sizes, the number of entries in the index and the first key follow.
    Columns {
        /// Compression, dictionary and the reserved bytes of the stored block.
        stored: Vec<u8>,
        /// Flags, schema and reserved bytes; entries; width; expiry base.
        fields: Vec<u8>,
        shared: Vec<u8>,
        rests: Vec<u8>,
        suffixes: Vec<u8>,
        /// The columns that have no size of their own.
        others: Vec<u8>,
    },
    /// What the index says and what is stored.
    Opaque {
        first_key: Vec<u8>,
        entries: Vec<u8>,
        stored: Vec<u8>,
    },
}

impl Block {
    /// The block of `entries` entries from `first_key` on that is stored as `stored`.
    pub(super) fn take_apart(first_key: &[u8], entries: u32, stored: &[u8]) -> Self {
        let opaque = || Self::Opaque {
            first_key: first_key.to_vec(),
            entries: entries.to_le_bytes().to_vec(),
            stored: stored.to_vec(),
        };
        let Some(columns) = columns(stored) else {
            return opaque();
        };
        // Only what is assembled to the same block has been understood.
        let (key, count, again) = columns.assemble();
        let is_raw = stored[0] != COMPRESSION_ZSTD;
        if key == first_key && count == entries && (again == stored || !is_raw) {
            columns
        } else {
            opaque()
        }
    }

    pub(super) fn loosen(&mut self) {
        let (first_key, entries, stored) = self.assemble();
        *self = Self::Opaque {
            first_key,
            entries: entries.to_le_bytes().to_vec(),
            stored,
        };
    }

    pub(super) fn pieces(&mut self) -> Vec<&mut Vec<u8>> {
        match self {
            Self::Columns {
                stored,
                fields,
                shared,
                rests,
                suffixes,
                others,
            } => vec![stored, fields, shared, rests, suffixes, others],
            Self::Opaque {
                first_key,
                entries,
                stored,
            } => vec![first_key, entries, stored],
        }
    }

    /// First key, number of entries and stored bytes.
    pub(super) fn assemble(&self) -> (Vec<u8>, u32, Vec<u8>) {
        match self {
            Self::Opaque {
                first_key,
                entries,
                stored,
            } => {
                let entries = Cursor::new(entries).u32().unwrap_or(0);
                (first_key.clone(), entries, stored.clone())
            }
            Self::Columns {
                stored,
                fields,
                shared,
                rests,
                suffixes,
                others,
            } => {
                let mut head = fields.clone();
                head.resize(20, 0);
                let mut raw = head[..8].to_vec();
                for column in [shared, rests, suffixes] {
                    raw.extend((column.len() as u32).to_le_bytes());
                }
                raw.extend(&head[8..]);
                for column in [shared, rests, suffixes, others] {
                    raw.extend(column);
                }
                let mut bytes = stored.clone();
                bytes.resize(4, 0);
                bytes.extend((raw.len() as u32).to_le_bytes());
                let compressed = (bytes[0] == COMPRESSION_ZSTD)
                    .then(|| zstd::bulk::compress(&raw, 1).ok())
                    .flatten();
                bytes.extend(compressed.unwrap_or(raw));
                let entries = Cursor::new(&head[4..]).u32().unwrap_or(0);
                (first_key(rests, suffixes), entries, bytes)
            }
        }
    }
}

fn columns(stored: &[u8]) -> Option<Block> {
    let mut fields = Cursor::new(stored);
    let (head, raw_bytes) = (fields.take(4)?, fields.u32()? as usize);
    let raw = match head[0] {
        COMPRESSION_ZSTD if raw_bytes <= RAW_BYTES_MAX => {
            zstd::bulk::decompress(fields.rest(), raw_bytes).ok()?
        }
        _ => fields.rest().to_vec(),
    };
    let mut raw = Cursor::new(&raw);
    let mut fields = raw.take(8)?.to_vec();
    let sizes = [raw.u32()?, raw.u32()?, raw.u32()?];
    fields.extend(raw.take(12)?);
    Some(Block::Columns {
        stored: head.to_vec(),
        fields,
        shared: raw.take(sizes[0] as usize)?.to_vec(),
        rests: raw.take(sizes[1] as usize)?.to_vec(),
        suffixes: raw.take(sizes[2] as usize)?.to_vec(),
        others: raw.rest().to_vec(),
    })
}

/// The first entry's key, which shares nothing with one before it.
fn first_key(rests: &[u8], suffixes: &[u8]) -> Vec<u8> {
    let mut length = 0;
    for (index, byte) in rests.iter().enumerate().take(4) {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            break;
        }
    }
    suffixes[..length.min(suffixes.len())].to_vec()
}
