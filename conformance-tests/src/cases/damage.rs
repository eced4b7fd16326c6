//! Objects that are missing or damaged.

use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use object_store::path::Path;

use crate::backend::BackendUnderTest;
use crate::cases::snapshots::write_much;
use crate::contents::Contents;
use crate::job::Job;
use crate::snapshot::Snapshot;

/// A chain of snapshots with objects of its own in each, and what the last one holds.
fn chain(backend: &dyn BackendUnderTest) -> (Snapshot<'_>, Contents) {
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    job.incremental();
    write_much(&mut job, &mut expected, 2);
    for i in 0..50u8 {
        let key = job.key([1, i]);
        job.clear_value(&key);
        expected.values.remove(&(vec![1, i], vec![]));
    }
    job.incremental();
    write_much(&mut job, &mut expected, 3);
    (job.incremental(), expected)
}

/// The objects that `snapshot` refers to.
fn objects_of(snapshot: &Snapshot<'_>) -> Vec<Path> {
    let segments = snapshot.parts.iter().flat_map(|part| &part.segments);
    let objects = segments.filter_map(|s| s.meta.location.object());
    let objects: Vec<Path> = objects.map(|name| name.to_string().into()).collect();
    assert!(
        !objects.is_empty(),
        "state above the inline limit lies in objects"
    );
    objects
}

fn read(snapshot: &Snapshot<'_>) -> Result<Contents> {
    snapshot.try_restore(1)?.try_contents()
}

/// An error that says what is damaged.
fn assert_names(error: &Error, object: &Path, kinds: &[ErrorKind]) {
    assert!(kinds.contains(&error.kind()), "{error}");
    let unique = object
        .as_ref()
        .rsplit('-')
        .next()
        .expect("a name has parts");
    assert!(
        error.to_string().contains(unique),
        "an error names the object {object}: {error}"
    );
}

/// X3: a missing object is an error that names it, never a fresh start.
pub fn x3_a_missing_object_is_named(backend: &dyn BackendUnderTest) {
    let (snapshot, expected) = chain(backend);
    let medium = &snapshot.spec.medium;
    for object in objects_of(&snapshot) {
        let bytes = medium.read(&object);
        medium.delete(&object);
        let error = read(&snapshot).expect_err("an object is missing");
        assert_names(&error, &object, &[ErrorKind::NotFound, ErrorKind::Corrupt]);
        medium.overwrite(&object, bytes);
    }
    assert_eq!(read(&snapshot).expect("all is there again"), expected);
}

/// X3: an object that was cut short is an error that names it.
pub fn x3_a_cut_object_is_named(backend: &dyn BackendUnderTest) {
    let (snapshot, expected) = chain(backend);
    let medium = &snapshot.spec.medium;
    for object in objects_of(&snapshot) {
        let bytes = medium.read(&object);
        for left in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            medium.overwrite(&object, bytes.slice(..left));
            let error = read(&snapshot).expect_err("an object is cut short");
            assert_names(&error, &object, &[ErrorKind::Corrupt]);
        }
        medium.overwrite(&object, bytes);
    }
    assert_eq!(read(&snapshot).expect("all is there again"), expected);
}

/// X3: a flipped bit is an error that names the object, or lies where no read looks; no read
/// gives wrong data.
pub fn x3_a_flipped_bit_gives_no_wrong_data(backend: &dyn BackendUnderTest) {
    const PLACES: usize = 40;
    let (snapshot, expected) = chain(backend);
    let medium = &snapshot.spec.medium;
    let (mut found, mut tried) = (0, 0);
    for object in objects_of(&snapshot) {
        let bytes = medium.read(&object);
        for place in 0..PLACES {
            let mut damaged = bytes.to_vec();
            let index = place * (bytes.len() - 1) / (PLACES - 1);
            damaged[index] ^= 1 << (place % 8);
            medium.overwrite(&object, Bytes::from(damaged));
            tried += 1;
            match read(&snapshot) {
                Ok(contents) => assert!(contents == expected, "byte {index} of {object}"),
                Err(error) => {
                    found += 1;
                    let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported];
                    assert_names(&error, &object, &kinds);
                }
            }
        }
        medium.overwrite(&object, bytes);
    }
    assert!(
        2 * found > tried,
        "{found} of {tried} flipped bits were noticed"
    );
}

/// X3: an object in another's place is an error that names it.
pub fn x3_a_swapped_object_is_named(backend: &dyn BackendUnderTest) {
    let (snapshot, _) = chain(backend);
    let medium = &snapshot.spec.medium;
    let objects = objects_of(&snapshot);
    let Some((first, last)) = objects.first().zip(objects.last()).filter(|(a, b)| a != b) else {
        panic!("a chain of three large changes has more than one object");
    };
    let last_bytes = medium.read(last);
    medium.overwrite(first, last_bytes);
    let error = read(&snapshot).expect_err("an object is another");
    // It may be larger than the one that it replaced.
    let kinds = [ErrorKind::Corrupt, ErrorKind::Mismatch, ErrorKind::Limit];
    assert_names(&error, first, &kinds);
}
