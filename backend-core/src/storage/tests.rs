//! Memory, local directories, and what lies in them.

use futures::executor::block_on;

use super::*;
use crate::ids::Epoch;
use crate::names::Folder;

const ONE: ObjectName = ObjectName::Epoch(Epoch(1));
const TWO: ObjectName = ObjectName::Epoch(Epoch(2));

fn exercise(storage: &Storage) {
    let create = |name, bytes: &'static str| block_on(storage.create(name, bytes.into()));
    assert!(
        block_on(storage.list(Folder::Epochs))
            .expect("listed")
            .is_empty()
    );
    assert_eq!(create(&TWO, "two").expect("answers"), Created::Yes);
    assert_eq!(create(&ONE, "first").expect("answers"), Created::Yes);
    assert_eq!(create(&ONE, "other").expect("answers"), Created::Exists);
    let get = block_on(storage.get(&ONE, 5)).expect("answers");
    assert_eq!(get.as_deref(), Some(&b"first"[..]));
    let small = block_on(storage.get(&ONE, 4)).expect_err("too large");
    assert_eq!(small.kind(), ErrorKind::Limit);
    let listed = block_on(storage.list(Folder::Epochs)).expect("listed");
    let names: Vec<_> = listed.iter().map(|o| (o.name, o.bytes)).collect();
    assert_eq!(names, [(ONE, 5), (TWO, 3)]);
    let range = block_on(storage.get_range(&ONE, 1..3)).expect("inside");
    assert_eq!(range, "ir");
    assert!(
        block_on(storage.get_range(&ONE, 5..5))
            .expect("nothing")
            .is_empty()
    );
    let beyond = block_on(storage.get_range(&ONE, 3..9)).expect_err("cut short");
    assert_eq!(beyond.kind(), ErrorKind::Corrupt);
    block_on(storage.delete(&ONE)).expect("deleted");
    block_on(storage.delete(&ONE)).expect("gone already");
    assert_eq!(block_on(storage.size(&ONE)).expect("answers"), None);
    assert_eq!(storage.requests().deletes, 2);
}

#[test]
fn memory_and_local_directories_behave_alike() {
    exercise(&Storage::memory());
    let directory = tempfile::tempdir().expect("a directory");
    let nested = directory.path().join("a/b");
    exercise(&Storage::local(&nested).expect("created"));
    let folder = Storage::memory();
    exercise(&Storage::new(folder.store, "jobs/words"));
}

#[test]
fn a_directory_that_is_opened_twice_is_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, two] = ["a", "b/../a"].map(|path| {
        std::fs::create_dir_all(directory.path().join("b")).expect("created");
        Storage::local(&directory.path().join(path)).expect("opened")
    });
    assert!(one.is_same(&two) && one.is_same(&one.clone()));
    assert!(!one.is_same(&Storage::local(directory.path()).expect("opened")));
    assert!(!Storage::memory().is_same(&Storage::memory()));
}

#[test]
fn a_folders_marker_is_passed_over() {
    let storage = Storage::new(Storage::memory().store, "jobs/words");
    let meta = |location: &str, size| object_store::ObjectMeta {
        location: Path::parse(location).expect("a path"),
        last_modified: std::time::UNIX_EPOCH.into(),
        size,
        e_tag: None,
        version: None,
    };
    let shown = |location, size| storage.listed(Folder::Pins, &meta(location, size));
    assert_eq!(shown("jobs/words/pins", 0), None);
    assert_eq!(shown("jobs/words/pins/.nfs0001", 9), None);
    assert!(matches!(
        shown("jobs/words/pins/0", 0),
        Some(Listed::Stranger(..))
    ));
    assert!(matches!(
        shown("jobs/words/pins", 1),
        Some(Listed::Stranger(..))
    ));
}

#[test]
fn a_put_that_died_half_way_leaves_no_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::local(directory.path()).expect("opened");
    block_on(storage.create(&ONE, "one".into())).expect("created");
    let staged = directory.path().join(format!("{TWO}#1"));
    std::fs::write(&staged, "half").expect("written");
    assert_eq!(
        block_on(storage.list(Folder::Epochs))
            .expect("listed")
            .len(),
        1
    );
    assert_eq!(
        block_on(storage.create(&TWO, "two".into())).expect("answers"),
        Created::Yes
    );
}

#[test]
fn a_file_is_no_directory_and_a_stranger_is_not_passed_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "x").expect("written");
    let error = Storage::local(&file).expect_err("a file");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.fact("directory").is_some());
    let storage = Storage::local(directory.path()).expect("opened");
    block_on(storage.create(&ONE, "one".into())).expect("created");
    std::fs::write(directory.path().join("epochs/stray"), "x").expect("written");
    let error = block_on(storage.list(Folder::Epochs)).expect_err("a stranger");
    assert_eq!(error.fact("object"), Some("epochs/stray"));
}

#[test]
fn f5_an_object_that_is_there_is_never_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    for storage in [
        Storage::memory(),
        Storage::local(directory.path()).expect("opened"),
    ] {
        block_on(storage.create(&ONE, "first".into())).expect("created");
        for other in ["", "first and more", "other"] {
            let again = block_on(storage.create(&ONE, other.into()));
            assert_eq!(again.expect("answers"), Created::Exists);
            let stored = block_on(storage.get(&ONE, 99)).expect("answers");
            assert_eq!(stored.as_deref(), Some(&b"first"[..]));
        }
    }
}
