//! Names of objects: what is formatted parses back, and nothing else parses.

use backend_core::names::{ObjectName, PartsName, SegmentName};
use backend_core::{Epoch, JobId, OperatorId, SnapshotId, TaskIndex, UniqueId};

use crate::cursor::Cursor;
use crate::memory::bounded;

const NAME_BYTES_MAX: usize = 1 << 10;

pub(super) fn check(bytes: &[u8]) -> bool {
    check_made(&mut Cursor::new(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let fits = !text.is_empty() && text.len() <= NAME_BYTES_MAX;
    assert_eq!(JobId::new(text).is_ok(), fits);
    assert_eq!(OperatorId::new(text).is_ok(), fits);
    // A refusal quotes the text, escaped: at most ten bytes for each.
    let parsed = bounded("a name", 32 * bytes.len(), || text.parse::<ObjectName>());
    assert_eq!(parsed.is_ok(), is_name(text), "{text:?}");
    match parsed {
        Ok(name) => {
            assert_eq!(name.to_string(), text);
            true
        }
        Err(_) => false,
    }
}

/// `docs/format.md`, 'Objects of a job'.
fn is_name(text: &str) -> bool {
    let Some((folder, name)) = text.split_once('/') else {
        return false;
    };
    let kinds: &[fn(&str) -> bool] = match folder {
        "epochs" => &[is_counted],
        "snapshots" | "claimed" => &[is_counted, is_counted],
        "collect" => &[is_counted, is_u64],
        "parts" => &[is_counted, is_counted, is_unique],
        "segments" => &[is_counted, is_counted, is_u32, is_u32, is_unique],
        "pins" | "probe" => &[is_unique],
        _ => return false,
    };
    let fields: Vec<&str> = name.split('-').collect();
    fields.len() == kinds.len() && fields.iter().zip(kinds).all(|(field, kind)| kind(field))
}

/// An epoch or a snapshot, which has a next one.
fn is_counted(field: &str) -> bool {
    is_u64(field) && field != "18446744073709551615"
}

fn is_u64(field: &str) -> bool {
    is_number(field, 20) && *field <= *"18446744073709551615"
}

fn is_u32(field: &str) -> bool {
    is_number(field, 10) && *field <= *"4294967295"
}

fn is_number(field: &str, digits: usize) -> bool {
    field.len() == digits && field.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_unique(field: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    field.len() == 32 && field.bytes().all(is_hex)
}

/// A name of any numbers parses back, and sorts as its numbers do.
fn check_made(input: &mut Cursor<'_>) {
    let (Some(a), Some(b)) = (make(input), make(input)) else {
        return;
    };
    for name in [a, b] {
        let text = name.to_string();
        assert!(is_name(&text), "{text}");
        assert_eq!(text.parse::<ObjectName>().expect("a name parses"), name);
    }
    if std::mem::discriminant(&a) == std::mem::discriminant(&b) {
        assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()), "{a} and {b}");
    }
}

fn make(input: &mut Cursor<'_>) -> Option<ObjectName> {
    let kind = input.u8()?;
    let mut counted = || Some(input.u64()?.min(u64::MAX - 1));
    let (epoch, snapshot) = (Epoch(counted()?), SnapshotId(counted()?));
    let unique = UniqueId(input.u128()?);
    Some(match kind % 8 {
        0 => ObjectName::Epoch(epoch),
        1 => ObjectName::Manifest(epoch, snapshot),
        2 => ObjectName::Parts(PartsName {
            epoch,
            snapshot,
            unique,
        }),
        3 => ObjectName::Segment(SegmentName {
            epoch,
            snapshot,
            task: TaskIndex(input.u32()?),
            index: input.u32()?,
            unique,
        }),
        4 => ObjectName::Collect(epoch, snapshot.0),
        5 => ObjectName::Pin(unique),
        6 => ObjectName::Claimed(epoch, snapshot),
        _ => ObjectName::Probe(unique),
    })
}
