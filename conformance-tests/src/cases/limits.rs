//! The largest and the least.

use backend_core::limits::{
    KEY_BYTES_MAX, NAMESPACE_BYTES_MAX, SUB_KEY_BYTES_MAX, VALUE_BYTES_MAX,
};
use backend_core::{Error, ErrorKind, Pressure, Result, StateKey};

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, noise};
use crate::job::Job;

fn assert_limit(result: Result<Pressure>, bytes_max: usize) {
    let error: Error = result.expect_err("it is above the limit");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let named = error.fact("bytes_max").map(str::to_owned);
    assert_eq!(named, Some(bytes_max.to_string()), "{error}");
}

/// X11: values, list elements and map values of the largest size are written, read and restored.
pub fn x11_the_largest_values_work(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let large = noise(11, VALUE_BYTES_MAX);
    job.put(&key, &large);
    job.append(&key, &large);
    job.map_put(&key, "sub", &large);
    let mut restored = job.incremental().restore(1);
    for job in [&mut job, &mut restored] {
        assert!(job.get(&key).as_ref() == Some(&large), "the value is whole");
        assert!(job.list(&key) == [&large[..]], "the element is whole");
        assert!(
            job.map_get(&key, "sub").as_ref() == Some(&large),
            "the map value is whole"
        );
    }
}

/// X11: what is too large is refused at the write with the limit named, and nothing has changed.
pub fn x11_too_large_is_refused_with_the_limit_named(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let mut expected = Contents::default();
    job.put(&key, "v");
    expected.put(&key, b"v");
    job.append(&key, "e");
    expected.append(&key, b"e");
    job.map_put(&key, "sub", "m");
    expected.map_put(&key, b"sub", b"m");
    let too_large = vec![0; VALUE_BYTES_MAX + 1];
    let too_long = vec![0; SUB_KEY_BYTES_MAX + 1];
    let task = job.only();
    let store = &mut task.store;
    assert_limit(store.put(task.value, &key, &too_large), VALUE_BYTES_MAX);
    assert_limit(
        store.list_append(task.list, &key, &too_large),
        VALUE_BYTES_MAX,
    );
    assert_limit(
        store.map_put(task.map, &key, b"sub", &too_large),
        VALUE_BYTES_MAX,
    );
    assert_limit(
        store.map_put(task.map, &key, &too_long, b"v"),
        SUB_KEY_BYTES_MAX,
    );
    let updated = store.try_update(task.value, &key, &mut |_, edit| edit.put(&too_large));
    if let Some(updated) = updated {
        assert_limit(updated, VALUE_BYTES_MAX);
    }
    assert_eq!(job.contents(), expected);
    assert_eq!(job.incremental().contents(1), expected);

    let hasher = job.spec.hasher;
    let refused = StateKey::new(&hasher, &vec![0; KEY_BYTES_MAX + 1]).map(|_| Pressure::None);
    assert_limit(refused, KEY_BYTES_MAX);
    let refused = key.in_namespace(&vec![0; NAMESPACE_BYTES_MAX + 1]);
    assert_limit(refused.map(|_| Pressure::None), NAMESPACE_BYTES_MAX);
}

/// X11: empty and longest keys, namespaces, sub-keys and values are kept apart and restored.
pub fn x11_empty_and_longest_keys_work(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let longest = vec![b'x'; KEY_BYTES_MAX];
    let almost = &longest[1..];
    let mut expected = Contents::default();
    for key in [&b""[..], b"\0", almost, &longest] {
        for namespace in [&b""[..], b"\0", &longest[..NAMESPACE_BYTES_MAX]] {
            let key = job.key_in(key, namespace);
            for (i, sub_key) in (0u8..).zip([&b""[..], b"\0", &longest[..SUB_KEY_BYTES_MAX]]) {
                job.map_put(&key, sub_key, [i]);
                expected.map_put(&key, sub_key, &[i]);
            }
            job.map_put(&key, "empty", "");
            expected.map_put(&key, b"empty", b"");
            job.put(&key, "");
            expected.put(&key, b"");
            job.append(&key, "");
            job.append(&key, "");
            expected.append(&key, b"");
            expected.append(&key, b"");
        }
    }
    assert_eq!(job.contents(), expected);
    let empty = job.key("");
    let snapshot = job.incremental();
    assert_eq!(snapshot.contents(2), expected);
    let mut restored = snapshot.restore(1);
    assert_eq!(
        restored.get(&empty),
        Some(Vec::new()),
        "an empty value is a value"
    );
    restored.map_remove(&empty, "");
    expected.map_remove(&empty, b"");
    assert_eq!(restored.incremental().contents(1), expected);
}
