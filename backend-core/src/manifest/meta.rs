//! The meta and operators sections of a manifest.

use crate::descriptor::{CodecId, SchemaVersion, StateDescriptor, StateKind, TimeToLive};
use crate::error::Result;
use crate::hash::HashId;
use crate::ids::{Digest, Epoch, JobId, OperatorId, SnapshotId, UniqueId};
use crate::limits::{ENGINE_BYTES_MAX, STATES_MAX};
use crate::manifest::limits::SCHEMA_VERSIONS_MAX;
use crate::manifest::model::{
    ManifestMeta, OperatorMeta, Parent, Position, SnapshotKind, StateMeta,
};
use crate::wire::{Reader, Writer};

/// The fewest bytes of an operator, a state and a schema version.
const OPERATOR_BYTES_MIN: usize = 21;
const STATE_BYTES_MIN: usize = 20;
const VERSION_BYTES: usize = 4;

/// Bits of a time to live.
const REFRESH_ON_READ: u8 = 1;
const RETURNS_EXPIRED: u8 = 2;
const COVERS_OLD: u8 = 4;

pub(super) fn write_meta(meta: &ManifestMeta) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.name(meta.job.as_str())?;
    write_position(&mut out, meta.position);
    out.u128(meta.unique.0);
    out.option(meta.parent.as_ref(), |out, parent| {
        write_position(out, parent.position);
        out.u128(parent.unique.0);
        out.raw(&parent.digest.0);
        Ok(())
    })?;
    out.option(meta.base, |out, base| {
        out.u64(base.0);
        Ok(())
    })?;
    out.u64(meta.created_ms);
    out.u64(meta.ttl_clock_ms);
    out.u8(meta.kind.to_wire());
    out.blob(&meta.engine)?;
    Ok(out.finish())
}

pub(super) fn read_meta(input: &mut Reader<'_>) -> Result<ManifestMeta> {
    let job = JobId::new(input.name()?).map_err(|_| input.corrupt("a job has no name"))?;
    let meta = ManifestMeta {
        job,
        position: read_position(input)?,
        unique: UniqueId(input.u128()?),
        parent: input.option(|input| {
            Ok(Parent {
                position: read_position(input)?,
                unique: UniqueId(input.u128()?),
                digest: Digest(input.digest()?),
            })
        })?,
        base: input.option(|input| Ok(SnapshotId(input.u64()?)))?,
        created_ms: input.u64()?,
        ttl_clock_ms: input.u64()?,
        kind: SnapshotKind::from_wire(input.u8()?)
            .ok_or_else(|| input.corrupt("an unknown kind of snapshot"))?,
        engine: input.bytes(ENGINE_BYTES_MAX)?,
    };
    input.end()?;
    Ok(meta)
}

pub(super) fn write_position(out: &mut Writer, position: Position) {
    out.u64(position.epoch.0);
    out.u64(position.id.0);
}

pub(super) fn read_position(input: &mut Reader<'_>) -> Result<Position> {
    Ok(Position::new(Epoch(input.u64()?), SnapshotId(input.u64()?)))
}

pub(super) fn write_operators(operators: &[OperatorMeta]) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.count(operators.len())?;
    for operator in operators {
        out.name(operator.id.as_str())?;
        out.u32(operator.parallelism);
        out.name(operator.key_codec.as_str())?;
        out.u32(operator.hash.0);
        out.count(operator.states.len())?;
        for state in &operator.states {
            write_state(&mut out, state)?;
        }
    }
    Ok(out.finish())
}

pub(super) fn read_operators(input: &mut Reader<'_>) -> Result<Vec<OperatorMeta>> {
    let operators = input.list(OPERATOR_BYTES_MIN, |input| {
        Ok(OperatorMeta {
            id: OperatorId::new(input.name()?)
                .map_err(|_| input.corrupt("an operator has no id"))?,
            parallelism: input.u32()?,
            key_codec: CodecId::new(input.name()?),
            hash: HashId(input.u32()?),
            states: read_states(input)?,
        })
    })?;
    input.end()?;
    Ok(operators)
}

fn read_states(input: &mut Reader<'_>) -> Result<Vec<StateMeta>> {
    let states = input.list(STATE_BYTES_MIN, read_state)?;
    if states.len() > STATES_MAX {
        return Err(input
            .corrupt("an operator has too many states")
            .with("got", states.len()));
    }
    Ok(states)
}

fn write_state(out: &mut Writer, state: &StateMeta) -> Result<()> {
    let descriptor = &state.descriptor;
    out.name(&descriptor.name)?;
    out.u8(descriptor.kind.to_wire());
    out.name(descriptor.value_codec.as_str())?;
    out.option(descriptor.sub_key_codec.as_ref(), |out, codec| {
        out.name(codec.as_str())
    })?;
    out.option(descriptor.namespace_codec.as_ref(), |out, codec| {
        out.name(codec.as_str())
    })?;
    out.u32(descriptor.schema.0);
    out.option(descriptor.ttl, |out, ttl| {
        out.u64(ttl.ttl_ms);
        let refresh = if ttl.refresh_on_read {
            REFRESH_ON_READ
        } else {
            0
        };
        let expired = if ttl.returns_expired {
            RETURNS_EXPIRED
        } else {
            0
        };
        let old = if ttl.covers_old { COVERS_OLD } else { 0 };
        out.u8(refresh | expired | old);
        out.u64(ttl.refresh_ms_min);
        Ok(())
    })?;
    out.count(state.versions.len())?;
    for version in &state.versions {
        out.u32(version.0);
    }
    Ok(())
}

fn read_state(input: &mut Reader<'_>) -> Result<StateMeta> {
    let name = input.name()?.to_owned();
    let kind = StateKind::from_wire(input.u8()?)
        .ok_or_else(|| input.corrupt("an unknown kind of state"))?;
    let mut descriptor = StateDescriptor::value(name, CodecId::new(input.name()?));
    descriptor.kind = kind;
    descriptor.sub_key_codec = input.option(|input| Ok(CodecId::new(input.name()?)))?;
    descriptor.namespace_codec = input.option(|input| Ok(CodecId::new(input.name()?)))?;
    descriptor.schema = SchemaVersion(input.u32()?);
    descriptor.ttl = input.option(read_ttl)?;
    descriptor
        .validate()
        .map_err(|_| input.corrupt("a state has no name"))?;
    let versions = input.list(VERSION_BYTES, |input| Ok(SchemaVersion(input.u32()?)))?;
    if versions.is_empty() || versions.len() > SCHEMA_VERSIONS_MAX {
        return Err(input
            .corrupt("a state has no schema version or too many")
            .with("got", versions.len()));
    }
    if !versions.is_sorted_by(|a, b| a < b) {
        return Err(input.corrupt("schema versions do not ascend"));
    }
    Ok(StateMeta {
        descriptor,
        versions,
    })
}

fn read_ttl(input: &mut Reader<'_>) -> Result<TimeToLive> {
    let mut ttl = TimeToLive::after_write_ms(input.u64()?)
        .map_err(|_| input.corrupt("a time to live is 0"))?;
    let bits = input.u8()?;
    if bits & !(REFRESH_ON_READ | RETURNS_EXPIRED | COVERS_OLD) != 0 {
        return Err(input.corrupt("reserved bits of a time to live are set"));
    }
    ttl.refresh_on_read = bits & REFRESH_ON_READ != 0;
    ttl.returns_expired = bits & RETURNS_EXPIRED != 0;
    ttl.covers_old = bits & COVERS_OLD != 0;
    ttl.refresh_ms_min = input.u64()?;
    Ok(ttl)
}
