//! A manifest: its sections, with index, footer and tail derived from them.

use crate::cursor::Cursor;
use crate::dice::Dice;
use crate::layout::{Layout, rearrange};

const HEADER_BYTES: usize = 32;
const FOOTER_BYTES: usize = 184;
const TAIL_BYTES: usize = 32;
const INDEX_ENTRY_BYTES: usize = 72;
/// Operator, task and range, with which a part begins and which its index entry repeats.
const PART_HEAD_BYTES: usize = 24;

/// The sections of a manifest.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The header without its checksum.
    header: Vec<u8>,
    meta: Vec<u8>,
    operators: Vec<u8>,
    parts: Vec<Vec<u8>>,
    /// The index, if it is not the one that follows from the parts.
    index: Option<Vec<u8>>,
}

impl Layout for Manifest {
    fn take_apart(bytes: &[u8]) -> Option<Self> {
        let footer = bytes.len().checked_sub(FOOTER_BYTES + TAIL_BYTES)?;
        let mut fields = Cursor::new(&bytes[footer..]);
        let mut section = || {
            let (offset, len) = (fields.u64()? as usize, fields.u64()? as usize);
            fields.take(32)?;
            let end = offset.checked_add(len)?;
            Some((bytes.get(offset..end)?.to_vec(), end))
        };
        let ((meta, _), (operators, parts_start), (index, _)) =
            (section()?, section()?, section()?);
        let mut manifest = Self {
            header: bytes[..HEADER_BYTES - 4].to_vec(),
            meta,
            operators,
            parts: Vec::new(),
            index: None,
        };
        let mut at = parts_start;
        for entry in index.chunks_exact(INDEX_ENTRY_BYTES) {
            let mut entry = Cursor::new(&entry[PART_HEAD_BYTES..]);
            let (offset, len) = (entry.u64()? as usize, entry.u64()? as usize);
            let end = at.checked_add(len).filter(|_| offset == at)?;
            manifest.parts.push(bytes.get(at..end)?.to_vec());
            at = end;
        }
        if manifest.derived_index() != index {
            manifest.index = Some(index);
        }
        Some(manifest)
    }

    fn loosen(&mut self, _dice: &mut Dice) {
        self.index = Some(self.derived_index());
    }

    fn rearrange(&mut self, dice: &mut Dice) {
        rearrange(&mut self.parts, dice);
    }

    fn pieces(&mut self) -> Vec<&mut Vec<u8>> {
        let sections = [&mut self.header, &mut self.meta, &mut self.operators];
        let parts = sections.into_iter().chain(&mut self.parts);
        parts.chain(&mut self.index).collect()
    }

    fn assemble(&self) -> Vec<u8> {
        let mut bytes = self.header.clone();
        bytes.resize(HEADER_BYTES - 4, 0);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let mut footer = Vec::new();
        let mut append = |bytes: &mut Vec<u8>, section: &[u8]| {
            footer.extend(span(bytes.len(), section));
            bytes.extend_from_slice(section);
        };
        append(&mut bytes, &self.meta);
        append(&mut bytes, &self.operators);
        self.parts.iter().for_each(|part| bytes.extend(part));
        let index = self.index.clone().unwrap_or_else(|| self.derived_index());
        append(&mut bytes, &index);
        footer.extend((index.len() / INDEX_ENTRY_BYTES).to_le_bytes());
        let rooted = [&bytes[..HEADER_BYTES], &footer].concat();
        footer.extend(blake3::hash(&rooted).as_bytes());
        bytes.extend(footer);
        let mut tail = Vec::new();
        tail.extend((FOOTER_BYTES as u32).to_le_bytes());
        tail.extend(1_u32.to_le_bytes());
        tail.extend(((bytes.len() + TAIL_BYTES) as u64).to_le_bytes());
        tail.extend(0_u32.to_le_bytes());
        tail.extend(crc32fast::hash(&tail).to_le_bytes());
        tail.extend(b"\nSLMANIE");
        bytes.extend(tail);
        bytes
    }
}

impl Manifest {
    fn derived_index(&self) -> Vec<u8> {
        let mut index = Vec::new();
        let mut at = HEADER_BYTES + self.meta.len() + self.operators.len();
        for part in &self.parts {
            let head = index.len() + PART_HEAD_BYTES;
            index.extend(part.iter().take(PART_HEAD_BYTES));
            index.resize(head, 0);
            index.extend(span(at, part));
            at += part.len();
        }
        index
    }
}

fn span(offset: usize, section: &[u8]) -> Vec<u8> {
    let mut span = (offset as u64).to_le_bytes().to_vec();
    span.extend((section.len() as u64).to_le_bytes());
    span.extend(blake3::hash(section).as_bytes());
    span
}
