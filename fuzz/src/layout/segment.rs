//! A segment: regions of blocks, with indexes, footer and tail derived from them.

use crate::cursor::Cursor;
use crate::dice::Dice;
use crate::layout::block::Block;
use crate::layout::{Layout, rearrange};

const HEADER_BYTES: usize = 48;
const TAIL_BYTES: usize = 24;
/// The bytes of the footer before its regions.
const FIELDS_BYTES: usize = 51;
const MAGIC: &[u8; 8] = b"STLNSEG\0";

/// A segment.
#[derive(Debug)]
pub(crate) enum Segment {
    /// Header, the footer's fields before its regions, and the regions.
    Regions {
        header: Vec<u8>,
        fields: Vec<u8>,
        regions: Vec<Region>,
    },
    /// All before the footer, and the footer.
    Opaque { body: Vec<u8>, footer: Vec<u8> },
}

/// A region.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    content: Content,
    filter: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Content {
    Blocks(Vec<Block>),
    Opaque {
        first_key: Vec<u8>,
        blocks: Vec<u8>,
        index: Vec<u8>,
    },
}

impl Layout for Segment {
    fn take_apart(bytes: &[u8]) -> Option<Self> {
        let tail = bytes.len().checked_sub(TAIL_BYTES)?;
        let footer = Cursor::new(&bytes[tail..]).u64()? as usize;
        let (body, footer) = bytes[..tail].split_at_checked(footer)?;
        Some(regions(body, footer).unwrap_or_else(|| Self::Opaque {
            body: body.to_vec(),
            footer: footer.to_vec(),
        }))
    }

    fn loosen(&mut self, dice: &mut Dice) {
        let Self::Regions { regions, .. } = self else {
            return;
        };
        if regions.is_empty() || dice.once_in(8) {
            let (body, footer) = self.body_and_footer();
            *self = Self::Opaque { body, footer };
            return;
        }
        let index = dice.below(regions.len());
        if let Content::Blocks(blocks) = &mut regions[index].content
            && !blocks.is_empty()
            && !dice.once_in(3)
        {
            let block = dice.below(blocks.len());
            blocks[block].loosen();
            return;
        }
        let mut before = vec![0; HEADER_BYTES];
        for region in &regions[..index] {
            region.append(&mut before, &mut Vec::new());
        }
        regions[index].loosen(before.len());
    }

    fn rearrange(&mut self, dice: &mut Dice) {
        let Self::Regions { regions, .. } = self else {
            return;
        };
        let index = dice.below(regions.len());
        match regions.get_mut(index).map(|region| &mut region.content) {
            Some(Content::Blocks(blocks)) if !dice.once_in(3) => rearrange(blocks, dice),
            _ => rearrange(regions, dice),
        }
    }

    fn pieces(&mut self) -> Vec<&mut Vec<u8>> {
        match self {
            Self::Opaque { body, footer } => vec![body, footer],
            Self::Regions {
                header,
                fields,
                regions,
            } => {
                let mut pieces = vec![header, fields];
                for region in regions {
                    pieces.push(&mut region.filter);
                    match &mut region.content {
                        Content::Blocks(blocks) => {
                            pieces.extend(blocks.iter_mut().flat_map(Block::pieces));
                        }
                        Content::Opaque {
                            first_key,
                            blocks,
                            index,
                        } => pieces.extend([first_key, blocks, index]),
                    }
                }
                pieces
            }
        }
    }

    fn assemble(&self) -> Vec<u8> {
        let (mut bytes, footer) = self.body_and_footer();
        let offset = bytes.len() as u64;
        bytes.extend(&footer);
        bytes.extend(offset.to_le_bytes());
        bytes.extend((footer.len() as u32).to_le_bytes());
        bytes.extend(crc32fast::hash(&footer).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }
}

impl Segment {
    fn body_and_footer(&self) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::Opaque { body, footer } => (body.clone(), footer.clone()),
            Self::Regions {
                header,
                fields,
                regions,
            } => {
                let (mut body, mut footer) = (header.clone(), fields.clone());
                footer.extend((regions.len() as u32).to_le_bytes());
                for region in regions {
                    region.append(&mut body, &mut footer);
                }
                (body, footer)
            }
        }
    }
}

impl Region {
    /// Appends blocks, index and filter to `body`, and what the footer says of them to `footer`.
    fn append(&self, body: &mut Vec<u8>, footer: &mut Vec<u8>) {
        let (first_key, blocks, index) = self.content.assemble(body.len());
        body.extend(blocks);
        let offset = body.len();
        body.extend(&index);
        body.extend(&self.filter);
        put_blob(&first_key, footer);
        footer.extend((offset as u64).to_le_bytes());
        footer.extend((index.len() as u32).to_le_bytes());
        footer.extend((self.filter.len() as u32).to_le_bytes());
        footer.extend(crc32fast::hash(&body[offset..]).to_le_bytes());
    }

    fn loosen(&mut self, start: usize) {
        let (first_key, blocks, index) = self.content.assemble(start);
        self.content = Content::Opaque {
            first_key,
            blocks,
            index,
        };
    }
}

impl Content {
    /// First key, blocks and index of a region whose blocks begin at `start`.
    fn assemble(&self, start: usize) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let blocks = match self {
            Self::Opaque {
                first_key,
                blocks,
                index,
            } => return (first_key.clone(), blocks.clone(), index.clone()),
            Self::Blocks(blocks) => blocks,
        };
        let mut bytes = Vec::new();
        let mut index = (blocks.len() as u32).to_le_bytes().to_vec();
        let mut region_key = None;
        for block in blocks {
            let (first_key, entries, stored) = block.assemble();
            put_blob(&first_key, &mut index);
            index.extend(((start + bytes.len()) as u64).to_le_bytes());
            index.extend((stored.len() as u32).to_le_bytes());
            index.extend(entries.to_le_bytes());
            index.extend(crc32fast::hash(&stored).to_le_bytes());
            bytes.extend(stored);
            region_key.get_or_insert(first_key);
        }
        (region_key.unwrap_or_default(), bytes, index)
    }
}

fn put_blob(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn regions(body: &[u8], footer: &[u8]) -> Option<Segment> {
    let header = body.get(..HEADER_BYTES)?;
    let mut footer = Cursor::new(footer);
    let fields = footer.take(FIELDS_BYTES)?;
    let mut regions = Vec::new();
    let mut start = HEADER_BYTES;
    for _ in 0..footer.u32()? {
        let first_key = footer.blob()?;
        let offset = usize::try_from(footer.u64()?).ok()?;
        let (index_bytes, filter_bytes) = (footer.u32()? as usize, footer.u32()? as usize);
        let _checksum = footer.u32()?;
        let blocks = body.get(start..offset)?;
        let mut rest = Cursor::new(&body[offset..]);
        let (index, filter) = (rest.take(index_bytes)?, rest.take(filter_bytes)?);
        let content = region_blocks(blocks, start, index)
            .map(Content::Blocks)
            .filter(|content| content.assemble(start).0 == first_key)
            .unwrap_or_else(|| Content::Opaque {
                first_key: first_key.to_vec(),
                blocks: blocks.to_vec(),
                index: index.to_vec(),
            });
        regions.push(Region {
            content,
            filter: filter.to_vec(),
        });
        start = offset + index_bytes + filter_bytes;
    }
    (footer.is_empty() && start == body.len()).then(|| Segment::Regions {
        header: header.to_vec(),
        fields: fields.to_vec(),
        regions,
    })
}

fn region_blocks(bytes: &[u8], start: usize, index: &[u8]) -> Option<Vec<Block>> {
    let mut index = Cursor::new(index);
    let mut bytes = Cursor::new(bytes);
    let mut at = start as u64;
    let mut blocks = Vec::new();
    for _ in 0..index.u32()? {
        let first_key = index.blob()?;
        let (offset, stored_bytes, entries) = (index.u64()?, index.u32()?, index.u32()?);
        let _checksum = index.u32()?;
        if offset != at {
            return None;
        }
        let stored = bytes.take(stored_bytes as usize)?;
        blocks.push(Block::take_apart(first_key, entries, stored));
        at += u64::from(stored_bytes);
    }
    (index.is_empty() && bytes.is_empty()).then_some(blocks)
}
