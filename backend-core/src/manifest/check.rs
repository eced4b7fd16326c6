//! What must hold between the parts of a manifest: checked before the write and after the read.

use std::collections::HashSet;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::OperatorId;
use crate::manifest::limits::{INLINE_BYTES_MAX, INLINE_TASK_BYTES_MAX};
use crate::manifest::model::{ManifestPart, OperatorMeta, StateMeta};
use crate::range::HashRange;
use crate::segment::SegmentLocation;

/// Checks that every operator has one part for each of its tasks, that their ranges cover the
/// hash space once, that no state stands twice, and that inline segments keep to their limits.
///
/// # Errors
/// An error of kind `kind`; [`ErrorKind::Limit`] for inline segments.
pub(crate) fn check_structure(
    operators: &[OperatorMeta],
    parts: &[ManifestPart],
    kind: ErrorKind,
) -> Result<()> {
    let mut ids = HashSet::new();
    let mut rest = parts;
    for operator in operators {
        if !ids.insert(&operator.id) {
            return Err(Error::new(kind, "an operator stands twice").with("operator", &operator.id));
        }
        check_states(operator, kind)?;
        let count = rest
            .iter()
            .take_while(|p| p.task.operator == operator.id)
            .count();
        let (own, others) = rest.split_at(count);
        rest = others;
        check_operator(operator, own, kind)?;
    }
    if let Some(part) = rest.first() {
        return Err(
            Error::new(kind, "a part is not in the order of the operators")
                .with("operator", &part.task.operator)
                .with("task", part.task.task),
        );
    }
    check_inline(parts)
}

/// A part refers to a state by its place, so equal ones would have several forms.
fn check_states(operator: &OperatorMeta, kind: ErrorKind) -> Result<()> {
    let mut seen = HashSet::new();
    for StateMeta { descriptor, .. } in &operator.states {
        if !seen.insert((&descriptor.name, descriptor.ttl)) {
            return Err(
                Error::new(kind, "a state stands twice under one time to live")
                    .with("operator", &operator.id)
                    .with("state", &descriptor.name),
            );
        }
    }
    Ok(())
}

fn check_operator(operator: &OperatorMeta, parts: &[ManifestPart], kind: ErrorKind) -> Result<()> {
    if parts.is_empty() || parts.len() != operator.parallelism as usize {
        return Err(Error::new(kind, "an operator has not one part a task")
            .with("operator", &operator.id)
            .expected_got(
                format_args!("{} parts", operator.parallelism),
                format_args!("{} parts", parts.len()),
            ));
    }
    for (i, part) in parts.iter().enumerate() {
        let task = &part.task;
        let fails = |message| {
            Error::new(kind, message)
                .with("operator", &operator.id)
                .with("task", task.task)
        };
        if task.task.0 as usize != i {
            return Err(fails("a task has no part or more than one").expected_got(i, task.task));
        }
        if task.hash != operator.hash || task.key_codec != operator.key_codec {
            return Err(fails("a task's keys are hashed or encoded in another way"));
        }
        if task.generation_max.0 == u32::MAX {
            return Err(fails("a task's generation is the last of all"));
        }
        for segment in &task.segments {
            if !task.range.covers(segment.clip) {
                return Err(fails("a segment is clipped to more than its task's range")
                    .expected_got(task.range, segment.clip));
            }
            if segment.meta.generations.1 > task.generation_max {
                return Err(fails("a segment is younger than its task")
                    .expected_got(task.generation_max, segment.meta.generations.1));
            }
        }
    }
    check_ranges(
        &operator.id,
        parts.iter().map(|p| p.task.range).collect(),
        kind,
    )
}

fn check_ranges(operator: &OperatorId, mut ranges: Vec<HashRange>, kind: ErrorKind) -> Result<()> {
    let fails = |message, expected: u64, got: u64| {
        Error::new(kind, message)
            .with("operator", operator)
            .expected_got(
                format_args!("{expected:#018x}"),
                format_args!("{got:#018x}"),
            )
    };
    ranges.sort_unstable();
    let mut next = Some(0);
    for range in ranges {
        match next {
            Some(first) if first == range.first() => next = range.last().checked_add(1),
            Some(first) if first < range.first() => {
                return Err(fails("no task owns some hashes", first, range.first()));
            }
            first => {
                let first = first.unwrap_or(u64::MAX);
                return Err(fails("two tasks own the same hashes", first, range.first()));
            }
        }
    }
    next.map_or(Ok(()), |first| {
        Err(fails("no task owns some hashes", u64::MAX, first))
    })
}

fn check_inline(parts: &[ManifestPart]) -> Result<()> {
    let mut all = 0;
    for part in parts {
        let bytes = inline_bytes(part);
        all += bytes;
        if bytes > INLINE_TASK_BYTES_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "a task has too many inline bytes")
                    .with("operator", &part.task.operator)
                    .with("task", part.task.task)
                    .with("bytes_max", INLINE_TASK_BYTES_MAX)
                    .with("got", bytes),
            );
        }
    }
    if all > INLINE_BYTES_MAX {
        return Err(
            Error::new(ErrorKind::Limit, "a manifest has too many inline bytes")
                .with("bytes_max", INLINE_BYTES_MAX)
                .with("got", all),
        );
    }
    Ok(())
}

/// The bytes of a part's inline segments.
pub(crate) fn inline_bytes(part: &ManifestPart) -> u64 {
    part.locations()
        .map(|location| match location {
            SegmentLocation::Inline(bytes) => bytes.len() as u64,
            SegmentLocation::Object(_) | SegmentLocation::Packed { .. } => 0,
        })
        .sum()
}
