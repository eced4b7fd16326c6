use std::collections::BTreeSet;

use super::{answer, drive, key, stores};
use crate::error::ErrorKind;
use crate::handle::{KeyEncoder, MapState, StateOptions, ValueState};

#[test]
fn a_namespace_lists_exactly_its_own_keys() {
    for mut store in stores() {
        let slow = store.slow;
        let options = StateOptions::new().with_namespace::<u8>();
        let state = ValueState::<u64>::register_with(&mut store, "s", &options).expect("registers");
        let name = |space: u8, i: u32| format!("{space}-{i}");
        for space in [1, 2] {
            for i in 0..1_500 {
                let key = key(&name(space, i));
                let key = state.namespaced(&key, &space).expect("short");
                state.put(&mut store, &key, &1).expect("writes");
            }
        }
        for space in [1, 2] {
            let stream = state
                .list_keys_in::<String, u8>(&mut store, &space)
                .expect("opens");
            let keys = answer(slow, stream.collect()).expect("reads");
            assert_eq!(keys.len(), 1_500);
            let keys: BTreeSet<_> = keys.into_iter().collect();
            assert_eq!(keys, (0..1_500).map(|i| (name(space, i), space)).collect());
        }
        let stream = state.list_keys::<String>(&mut store).expect("opens");
        assert_eq!(stream.collect().wait().expect("reads"), []);
    }
}

#[test]
fn the_same_keys_in_two_namespaces_are_listed_once_each() {
    for mut store in stores() {
        let options = StateOptions::new().with_namespace::<String>();
        let map = MapState::<u8, u8>::register_with(&mut store, "m", &options).expect("registers");
        let mut expected = BTreeSet::new();
        for (name, space) in [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")] {
            let key = map.namespaced(&key(name), space).expect("short");
            map.put_all(&mut store, &key, [(1, 1), (2, 2)])
                .expect("writes");
            expected.insert((name.to_owned(), space.to_owned()));
        }
        let stream = map
            .list_keys_and_namespaces::<String, String>(&mut store)
            .expect("opens");
        let listed = stream.collect().wait().expect("reads");
        assert_eq!(listed.len(), expected.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn a_map_lists_each_key_once_and_may_clear_what_it_is_shown() {
    for mut store in stores() {
        let map = MapState::<u8, u8>::register(&mut store, "m").expect("registers");
        let names: Vec<_> = (0..100).map(|i| format!("{i:03}")).collect();
        for name in &names {
            map.put_all(&mut store, &key(name), [(1, 1), (2, 2)])
                .expect("writes");
        }
        let mut listed = Vec::new();
        drive(async {
            let mut stream = map.list_keys::<String>(&mut store).expect("opens");
            while let Some((name, ())) = stream.next().await.expect("reads") {
                map.clear(&mut store, &key(&name)).expect("clears");
                listed.push(name);
            }
        });
        assert_eq!(listed, names);
        let stream = map.list_keys::<String>(&mut store).expect("opens");
        assert_eq!(stream.collect().wait().expect("reads"), []);
    }
}

#[test]
fn keys_of_another_type_are_refused() {
    for mut store in stores() {
        let state = ValueState::<u64>::register(&mut store, "s").expect("registers");
        let error = state
            .list_keys::<u64>(&mut store)
            .expect_err("keys are text");
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert_eq!(error.fact("expected"), Some("utf8"));
        let error = KeyEncoder::<u64>::new(&store).expect_err("keys are text");
        assert_eq!(error.fact("got"), Some("u64"));
        let encoder = KeyEncoder::<String>::new(&store).expect("keys are text");
        assert_eq!(
            encoder.key("k").expect("short"),
            state.key("k").expect("short")
        );
    }
}
