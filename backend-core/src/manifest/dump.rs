//! A manifest as text, for people and for golden files.

use std::fmt;

use crate::manifest::model::{Manifest, ManifestPart, OperatorMeta};
use crate::segment::{SegmentLocation, SegmentRef};

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meta = &self.meta;
        writeln!(f, "snapshot {} of job {}", meta.position, meta.job)?;
        writeln!(f, "  unique {}", meta.unique)?;
        match &meta.parent {
            Some(p) => writeln!(
                f,
                "  parent {} unique {} digest {}",
                p.position, p.unique, p.digest
            )?,
            None => writeln!(f, "  parent none")?,
        }
        match meta.base {
            Some(base) => writeln!(f, "  base {base}")?,
            None => writeln!(f, "  base none")?,
        }
        writeln!(f, "  created {} ms", meta.created_ms)?;
        writeln!(f, "  time-to-live clock {} ms", meta.ttl_clock_ms)?;
        writeln!(f, "  kind {}", meta.kind)?;
        writeln!(f, "  engine {}", meta.engine.escape_ascii())?;
        self.operators.iter().try_for_each(|o| operator(f, o))?;
        self.parts.iter().try_for_each(|p| part(f, p))
    }
}

fn operator(f: &mut fmt::Formatter<'_>, operator: &OperatorMeta) -> fmt::Result {
    writeln!(
        f,
        "operator {} parallelism {} keys {} hash {}",
        operator.id, operator.parallelism, operator.key_codec, operator.hash
    )?;
    for state in &operator.states {
        let d = &state.descriptor;
        write!(f, "  state {} {} of {}", d.name, d.kind, d.value_codec)?;
        if let Some(codec) = &d.sub_key_codec {
            write!(f, ", user keys {codec}")?;
        }
        if let Some(codec) = &d.namespace_codec {
            write!(f, ", namespaces {codec}")?;
        }
        write!(f, ", schema {} of", d.schema.0)?;
        for version in &state.versions {
            write!(f, " {}", version.0)?;
        }
        if let Some(ttl) = &d.ttl {
            write!(
                f,
                ", lives {} ms (read refreshes: {}, by {} ms or more, returns expired: {}, covers old: {})",
                ttl.ttl_ms,
                ttl.refresh_on_read,
                ttl.refresh_ms_min,
                ttl.returns_expired,
                ttl.covers_old
            )?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn part(f: &mut fmt::Formatter<'_>, part: &ManifestPart) -> fmt::Result {
    let task = &part.task;
    writeln!(
        f,
        "part {} task {} range {} generation {}",
        task.operator, task.task, task.range, task.generation_max
    )?;
    for state in &task.states {
        writeln!(f, "  knows {}", state.name)?;
    }
    task.segments.iter().try_for_each(|s| segment(f, s))?;
    for channel in &part.channels {
        let (gate, index) = channel.channel;
        write!(f, "  channel {:?} {gate}.{index} ", channel.side)?;
        location(f, &channel.blob.location)?;
        writeln!(f, " bytes {}", channel.blob.bytes)?;
    }
    for state in &part.operator_states {
        write!(
            f,
            "  operator state {} {:?} ",
            state.name, state.redistribution
        )?;
        location(f, &state.blob.location)?;
        writeln!(f, " bytes {}", state.blob.bytes)?;
    }
    writeln!(f, "  engine {}", task.engine.escape_ascii())
}

fn segment(f: &mut fmt::Formatter<'_>, segment: &SegmentRef) -> fmt::Result {
    let meta = &segment.meta;
    write!(f, "  segment ")?;
    location(f, &meta.location)?;
    writeln!(f, " bytes {} digest {}", meta.bytes, meta.digest)?;
    writeln!(
        f,
        "    clip {} tier {} run {}",
        segment.clip, segment.tier.0, segment.run
    )?;
    writeln!(
        f,
        "    puts {} deletes {} prefix deletes {} shadowed bytes {}",
        meta.puts, meta.deletes, meta.delete_prefixes, meta.shadowed_bytes
    )?;
    write!(
        f,
        "    generations {}..={} shards {}..={} expires ",
        meta.generations.0, meta.generations.1, meta.shards.0, meta.shards.1
    )?;
    match meta.expires_ms_min {
        Some(expires) => writeln!(f, "from {expires} ms")?,
        None => writeln!(f, "never")?,
    }
    for region in &meta.regions {
        writeln!(
            f,
            "    region {} at {} index {} filter {} crc {:#010x}",
            region.first_key.escape_ascii(),
            region.offset,
            region.index_bytes,
            region.filter_bytes,
            region.crc
        )?;
    }
    Ok(())
}

fn location(f: &mut fmt::Formatter<'_>, location: &SegmentLocation) -> fmt::Result {
    match location {
        SegmentLocation::Object(_) | SegmentLocation::Packed { .. } => {
            if let Some(object) = location.object() {
                write!(f, "{object}")?;
            }
        }
        SegmentLocation::Inline(bytes) => write!(f, "inline {}", bytes.escape_ascii())?,
    }
    if let SegmentLocation::Packed { offset, .. } = location {
        write!(f, " at {offset}")?;
    }
    Ok(())
}
