use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use proptest::prelude::*;

use super::{TestStore, answer, drive, key, stores};
use crate::error::ErrorKind;
use crate::handle::MapState;
use crate::limits::SUB_KEY_BYTES_MAX;

#[test]
fn a_map_puts_gets_contains_removes_and_takes() {
    for mut store in stores() {
        let slow = store.slow;
        let map = MapState::<String, u64>::register(&mut store, "m").expect("registers");
        let key = key("k");
        assert_eq!(
            answer(slow, map.get(&mut store, &key, "a")).expect("reads"),
            None
        );
        map.put(&mut store, &key, "a", &1).expect("writes");
        let more = BTreeMap::from([("b".to_owned(), 2), ("c".to_owned(), 3)]);
        map.put_all(&mut store, &key, &more).expect("writes");
        assert_eq!(
            answer(slow, map.get(&mut store, &key, "b")).expect("reads"),
            Some(2)
        );
        assert!(answer(slow, map.contains(&mut store, &key, "c")).expect("reads"));
        map.remove(&mut store, &key, "c").expect("removes");
        assert!(!answer(slow, map.contains(&mut store, &key, "c")).expect("reads"));
        assert_eq!(
            answer(slow, map.take(&mut store, &key, "b")).expect("takes"),
            Some(2)
        );
        assert_eq!(
            answer(slow, map.take(&mut store, &key, "b")).expect("takes"),
            None
        );
        map.put_all(&mut store, &key, more).expect("writes");

        let keys = answer(slow, map.keys(&mut store, &key)).expect("reads");
        let values = answer(slow, map.values(&mut store, &key)).expect("reads");
        let entries = answer(slow, map.entries(&mut store, &key)).expect("reads");
        assert_eq!(keys, ["a", "b", "c"]);
        assert_eq!(values, [1, 2, 3]);
        assert!(entries.into_iter().eq(keys.into_iter().zip(values)));
    }
}

#[test]
fn literals_need_no_types() {
    let mut store = TestStore::new();
    let map = MapState::<u64, i32>::register(&mut store, "m").expect("registers");
    let key = key("k");
    map.put(&mut store, &key, &5, &-1).expect("writes");
    map.put_all(&mut store, &key, [(6, 1), (7, 2)])
        .expect("writes");
    assert_eq!(
        map.get(&mut store, &key, &5).wait().expect("reads"),
        Some(-1)
    );
    let mut cursor = map.range(&mut store, &key, 6..);
    assert_eq!(cursor.next().wait().expect("reads"), Some((6, 1)));
}

#[test]
fn an_empty_or_cleared_map_has_no_entries() {
    for mut store in stores() {
        let map = MapState::<u8, ()>::register(&mut store, "m").expect("registers");
        let key = key("k");
        assert_eq!(map.entries(&mut store, &key).wait().expect("reads"), []);
        map.put(&mut store, &key, &1, &()).expect("writes");
        map.clear(&mut store, &key).expect("clears");
        assert_eq!(
            map.cursor(&mut store, &key).next().wait().expect("reads"),
            None
        );
    }
}

#[test]
fn a_map_is_empty_only_after_the_last_of_1024_removes() {
    for mut store in stores() {
        let map = MapState::<u32, u32>::register(&mut store, "m").expect("registers");
        let key = key("k");
        let is_empty = |store: &mut TestStore| map.is_empty(store, &key).wait().expect("reads");
        assert!(is_empty(&mut store));
        for i in 0..1_024 {
            map.put(&mut store, &key, &i, &i).expect("writes");
            assert!(!is_empty(&mut store));
        }
        for i in 0..1_024 {
            assert!(!is_empty(&mut store));
            map.remove(&mut store, &key, &i).expect("removes");
        }
        assert!(is_empty(&mut store));
    }
}

#[test]
fn what_a_cursor_removes_and_sets_is_visible_to_later_reads() {
    for mut store in stores() {
        let map = MapState::<u32, u32>::register(&mut store, "m").expect("registers");
        let key = key("k");
        map.put_all(&mut store, &key, (0..4).map(|i| (i, i)))
            .expect("writes");
        drive(async {
            let mut cursor = map.cursor(&mut store, &key);
            while let Some((user_key, value)) = cursor.next().await.expect("reads") {
                if user_key % 2 == 0 {
                    cursor.remove().expect("removes");
                } else {
                    cursor.set(&(value + 100)).expect("sets");
                    cursor.set(&(value + 10)).expect("sets again");
                }
            }
        });
        let entries = map.entries(&mut store, &key).wait().expect("reads");
        assert_eq!(entries, [(1, 11), (3, 13)]);
    }
}

#[test]
fn a_cursor_on_no_entry_refuses_to_change_one() {
    let mut store = TestStore::new();
    let map = MapState::<u32, u32>::register(&mut store, "m").expect("registers");
    let key = key("k");
    map.put(&mut store, &key, &1, &1).expect("writes");
    let mut cursor = map.cursor(&mut store, &key);
    let refused = |result: crate::Result<_>| result.expect_err("no entry").kind();
    assert_eq!(refused(cursor.remove()), ErrorKind::Invalid);
    assert_eq!(cursor.next().wait().expect("reads"), Some((1, 1)));
    cursor.remove().expect("removes");
    assert_eq!(refused(cursor.remove()), ErrorKind::Invalid);
    assert_eq!(refused(cursor.set(&2)), ErrorKind::Invalid);
    assert_eq!(cursor.next().wait().expect("reads"), None);
    assert_eq!(refused(cursor.set(&2)), ErrorKind::Invalid);
    assert!(map.is_empty(&mut store, &key).wait().expect("reads"));
}

#[test]
fn keys_that_share_a_prefix_do_not_see_each_others_entries() {
    for mut store in stores() {
        let map = MapState::<String, u8>::register(&mut store, "m").expect("registers");
        let keys = [key("1"), key("11")];
        map.put(&mut store, &keys[0], "1", &1).expect("writes");
        map.put(&mut store, &keys[1], "", &2).expect("writes");
        assert_eq!(
            map.entries(&mut store, &keys[0]).wait().expect("reads"),
            [("1".into(), 1)]
        );
        assert_eq!(
            map.entries(&mut store, &keys[1]).wait().expect("reads"),
            [(String::new(), 2)]
        );
    }
}

#[test]
fn a_range_holds_its_bounds_and_a_void_one_nothing() {
    for mut store in stores() {
        let map = MapState::<i16, i16>::register(&mut store, "m").expect("registers");
        let key = key("k");
        map.put_all(&mut store, &key, (-300..300).map(|i| (i, i)))
            .expect("writes");
        let mut read = |start, end| {
            let mut cursor = map.range::<i16, _>(&mut store, &key, (start, end));
            let mut seen = Vec::new();
            while let Some((user_key, _)) = cursor.next().wait().expect("reads") {
                seen.push(user_key);
            }
            seen
        };
        assert_eq!(read(Included(-2), Excluded(1)), [-2, -1, 0]);
        assert_eq!(read(Excluded(-2), Included(1)), [-1, 0, 1]);
        assert_eq!(read(Excluded(297), Unbounded), [298, 299]);
        assert_eq!(read(Unbounded, Excluded(200)).len(), 500);
        assert_eq!(read(Included(7), Included(7)), [7]);
        for (start, end) in [
            (Included(7), Excluded(7)),
            (Excluded(7), Included(7)),
            (Excluded(7), Excluded(7)),
            (Included(8), Included(-8)),
        ] {
            assert_eq!(read(start, end), [0i16; 0]);
        }
    }
}

#[test]
fn a_user_key_over_the_limit_is_refused() {
    let mut store = TestStore::new();
    let map = MapState::<Vec<u8>, ()>::register(&mut store, "m").expect("registers");
    let key = key("k");
    let long = vec![1; SUB_KEY_BYTES_MAX + 1];
    let errors = [
        map.put(&mut store, &key, &long, &()).map(|_| ()),
        map.remove(&mut store, &key, &long).map(|_| ()),
        map.get(&mut store, &key, &long).wait().map(|_| ()),
        map.take(&mut store, &key, &long).wait().map(|_| ()),
        map.contains(&mut store, &key, &long).wait().map(|_| ()),
    ];
    for error in errors {
        assert_eq!(error.expect_err("too long").kind(), ErrorKind::Limit);
    }
    map.put(&mut store, &key, &long[1..].to_vec(), &())
        .expect("as long as may be");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// 4,096 entries, and at each a removal, a new value or nothing: every entry is visited once,
    /// in order, and what is left is what a model holds.
    #[test]
    fn a_cursor_visits_every_entry_once_whatever_it_changes(
        choices in prop::collection::vec(0u8..4, 4_096),
        slow: bool,
    ) {
        let mut store = if slow { TestStore::slow() } else { TestStore::new() };
        let map = MapState::<u32, u32>::register(&mut store, "m").expect("registers");
        let key = key("k");
        let mut model: BTreeMap<u32, u32> = (0..4_096).map(|i| (i, i)).collect();
        map.put_all(&mut store, &key, &model).expect("writes");
        drive(async {
            let mut cursor = map.cursor(&mut store, &key);
            for (expected, choice) in (0..4_096).zip(choices) {
                let entry = cursor.next().await.expect("reads");
                assert_eq!(entry, Some((expected, expected)));
                match choice {
                    0 => {
                        cursor.remove().expect("removes");
                        assert!(cursor.remove().is_err());
                        model.remove(&expected);
                    }
                    1 => {
                        cursor.set(&choice.into()).expect("sets");
                        model.insert(expected, choice.into());
                    }
                    _ => {}
                }
            }
            assert_eq!(cursor.next().await.expect("reads"), None);
        });
        let left = map.entries(&mut store, &key).wait().expect("reads");
        prop_assert!(left.into_iter().eq(model));
    }
}
