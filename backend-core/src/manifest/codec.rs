//! Manifests to bytes and back, whole or by parts.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::Digest;
use crate::limits::ENGINE_BYTES_MAX;
use crate::manifest::check::check_structure;
use crate::manifest::frame::{
    Footer, HEADER_BYTES, INDEX_ENTRY_BYTES, IndexEntry, MANIFEST_END_BYTES, Span, read_header,
    write_header, write_index,
};
use crate::manifest::limits::{EXPANSION_BYTES_FREE, EXPANSION_FACTOR_MAX, MANIFEST_BYTES_MAX};
use crate::manifest::meta::{read_meta, read_operators, write_meta, write_operators};
use crate::manifest::model::{Manifest, ManifestMeta, ManifestPart, OperatorMeta};
use crate::manifest::part::{PartReader, expanded_bytes, index_states, write_part};
use crate::names::ObjectName;
use crate::wire::Reader;

/// A manifest as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedManifest {
    /// The whole object.
    pub bytes: Bytes,
    /// The snapshot's identity.
    pub digest: Digest,
}

impl Manifest {
    /// The manifest as it is stored. Equal manifests give equal bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if its parts do not fit together, [`ErrorKind::Limit`] for what
    /// is too long.
    pub fn encode(&self) -> Result<EncodedManifest> {
        check_structure(&self.operators, &self.parts, ErrorKind::Invalid)?;
        if self.meta.engine.len() > ENGINE_BYTES_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "a job's engine bytes are too many")
                    .with("bytes_max", ENGINE_BYTES_MAX)
                    .with("got", self.meta.engine.len()),
            );
        }
        let mut object = write_header();
        let meta = append(&mut object, &write_meta(&self.meta)?);
        let operators = append(&mut object, &write_operators(&self.operators)?);
        let index = self.append_parts(&mut object)?;
        let parts = index.len() as u32;
        let index = append(&mut object, &write_index(&index));
        let footer = Footer::new(meta, operators, index, parts);
        object.extend(footer.write());
        self.check_sizes(object.len() as u64)?;
        Ok(EncodedManifest {
            bytes: object.into(),
            digest: footer.digest,
        })
    }

    fn append_parts(&self, object: &mut Vec<u8>) -> Result<Vec<IndexEntry>> {
        let mut index = Vec::with_capacity(self.parts.len());
        let mut parts = self.parts.iter().peekable();
        for (i, operator) in self.operators.iter().enumerate() {
            let places = index_states(operator);
            while let Some(part) = parts.next_if(|p| p.task.operator == operator.id) {
                let bytes = write_part(i as u32, operator, &places, part)?;
                index.push(IndexEntry {
                    operator: i as u32,
                    task: part.task.task,
                    range: part.task.range,
                    span: append(object, &bytes),
                });
            }
        }
        Ok(index)
    }

    fn check_sizes(&self, object_bytes: u64) -> Result<()> {
        let states = self.parts.iter().flat_map(|p| &p.task.states);
        let expansion: u64 = states.map(expanded_bytes).sum();
        let limits = [
            ("a manifest is too large", object_bytes, MANIFEST_BYTES_MAX),
            (
                "the tasks know too many states with long names",
                expansion,
                expansion_bytes_max(object_bytes),
            ),
        ];
        for (message, got, bytes_max) in limits {
            if got > bytes_max {
                return Err(Error::new(ErrorKind::Limit, message)
                    .with("bytes_max", bytes_max)
                    .with("got", got));
            }
        }
        Ok(())
    }

    /// Reads a whole manifest, which was stored as `object`, and its identity.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for damage and [`ErrorKind::Unsupported`] for an unknown version,
    /// both with the object, the section and the offset; [`ErrorKind::Mismatch`] if it says that
    /// it is another snapshot than `object`.
    pub fn decode(object: ObjectName, bytes: &[u8]) -> Result<(Self, Digest)> {
        decode(object, bytes).map_err(|e| e.with("object", object))
    }
}

fn append(object: &mut Vec<u8>, section: &[u8]) -> Span {
    let span = Span::of(object.len() as u64, section);
    object.extend_from_slice(section);
    span
}

fn expansion_bytes_max(object_bytes: u64) -> u64 {
    object_bytes * EXPANSION_FACTOR_MAX + EXPANSION_BYTES_FREE
}

fn decode(object: ObjectName, bytes: &[u8]) -> Result<(Manifest, Digest)> {
    let object_bytes = bytes.len() as u64;
    read_header(&bytes[..bytes.len().min(HEADER_BYTES as usize)])?;
    let end = &bytes[bytes.len().saturating_sub(MANIFEST_END_BYTES as usize)..];
    let footer = Footer::decode(end, object_bytes)?;
    let slice = |span: &Span| &bytes[span.offset as usize..(span.offset + span.bytes) as usize];
    let meta = footer.decode_meta(object, slice(&footer.meta))?;
    let operators = footer.decode_operators(slice(&footer.operators))?;
    let index = footer.decode_index(slice(&footer.index))?;
    let mut reader = PartReader::default();
    let mut parts = Vec::with_capacity(index.len());
    for entry in &index {
        parts.push(read_part(
            &mut reader,
            entry,
            slice(&entry.span),
            &operators,
            expansion_bytes_max(object_bytes),
        )?);
    }
    check_structure(&operators, &parts, ErrorKind::Corrupt).map_err(|e| {
        e.with("section", "parts")
            .with("offset", footer.index.offset)
    })?;
    let manifest = Manifest {
        meta,
        operators,
        parts,
    };
    Ok((manifest, footer.digest))
}

impl Footer {
    /// Reads the meta section of a manifest that was stored as `object`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], with section and offset; [`ErrorKind::Mismatch`] if it says that
    /// it is another snapshot than `object`.
    pub fn decode_meta(&self, object: ObjectName, bytes: &[u8]) -> Result<ManifestMeta> {
        self.meta.verify("meta", bytes)?;
        let meta = read_meta(&mut Reader::new("meta", bytes, self.meta.offset))?;
        if meta.position.object() != object {
            return Err(Error::new(
                ErrorKind::Mismatch,
                "a manifest lies under another snapshot's name",
            )
            .with("section", "meta")
            .with("offset", self.meta.offset)
            .expected_got(object, meta.position.object()));
        }
        Ok(meta)
    }

    /// Reads the operators section.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], with section and offset.
    pub fn decode_operators(&self, bytes: &[u8]) -> Result<Vec<OperatorMeta>> {
        self.operators.verify("operators", bytes)?;
        read_operators(&mut Reader::new("operators", bytes, self.operators.offset))
    }

    /// Reads one part, which `entry` of the index describes.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], with section and offset.
    pub fn decode_part(
        &self,
        entry: &IndexEntry,
        operators: &[OperatorMeta],
        bytes: &[u8],
    ) -> Result<ManifestPart> {
        let object_bytes = self.index.offset + self.index.bytes + MANIFEST_END_BYTES;
        read_part(
            &mut PartReader::default(),
            entry,
            bytes,
            operators,
            expansion_bytes_max(object_bytes),
        )
    }
}

fn read_part(
    reader: &mut PartReader,
    entry: &IndexEntry,
    bytes: &[u8],
    operators: &[OperatorMeta],
    expansion_bytes_max: u64,
) -> Result<ManifestPart> {
    entry.span.verify("part", bytes)?;
    let mut input = Reader::new("part", bytes, entry.span.offset);
    let part = reader.read(&mut input, operators, expansion_bytes_max)?;
    let operator = operators.get(entry.operator as usize).map(|o| &o.id);
    let agrees = operator == Some(&part.task.operator)
        && part.task.task == entry.task
        && part.task.range == entry.range;
    if agrees {
        Ok(part)
    } else {
        Err(input.corrupt("a part is another task's than the index says"))
    }
}

const _: () = assert!(
    INDEX_ENTRY_BYTES > 64,
    "an index entry takes more bytes than what a reader keeps of it"
);
