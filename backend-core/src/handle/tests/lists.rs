use super::{TestStore, answer, drive, key, stores};
use crate::error::ErrorKind;
use crate::handle::ListState;
use crate::limits::VALUE_BYTES_MAX;

#[test]
fn a_fresh_list_is_absent() {
    for mut store in stores() {
        let slow = store.slow;
        let list = ListState::<u64>::register(&mut store, "l").expect("registers");
        let key = key("k");
        assert!(answer(slow, list.is_empty(&mut store, &key)).expect("reads"));
        assert_eq!(
            answer(slow, list.get(&mut store, &key)).expect("reads"),
            [0u64; 0]
        );
        list.add_all(&mut store, &key, [0u64; 0])
            .expect("appends nothing");
        assert!(list.is_empty(&mut store, &key).wait().expect("reads"));
    }
}

#[test]
fn a_list_keeps_order_and_duplicates_and_reads_the_same_twice() {
    for mut store in stores() {
        let list = ListState::<String>::register(&mut store, "l").expect("registers");
        let key = key("k");
        let [a, b] = ["a".to_owned(), "b".to_owned()];
        for element in [&a, &b] {
            list.add(&mut store, &key, element).expect("appends");
        }
        list.add_all(&mut store, &key, [&a]).expect("appends");
        for _ in 0..2 {
            let elements = list.get(&mut store, &key).wait().expect("reads");
            assert_eq!(elements, ["a", "b", "a"]);
        }
        list.add_all(&mut store, &key, Vec::<String>::new())
            .expect("appends nothing");
        assert_eq!(list.get(&mut store, &key).wait().expect("reads").len(), 3);
    }
}

#[test]
fn an_update_replaces_and_an_empty_one_clears() {
    for mut store in stores() {
        let list = ListState::<u32>::register(&mut store, "l").expect("registers");
        let key = key("k");
        list.add(&mut store, &key, &9).expect("appends");
        list.update(&mut store, &key, [1, 2]).expect("replaces");
        assert_eq!(list.get(&mut store, &key).wait().expect("reads"), [1, 2]);
        list.update(&mut store, &key, Vec::<u32>::new())
            .expect("clears");
        assert!(list.is_empty(&mut store, &key).wait().expect("reads"));
        list.add(&mut store, &key, &3).expect("appends");
        list.clear(&mut store, &key).expect("clears");
        assert!(list.is_empty(&mut store, &key).wait().expect("reads"));
    }
}

#[test]
fn a_long_list_streams_in_order_and_a_dropped_step_skips_nothing() {
    for mut store in stores() {
        let slow = store.slow;
        let list = ListState::<u32>::register(&mut store, "l").expect("registers");
        let key = key("k");
        list.add_all(&mut store, &key, 0..5_000).expect("appends");
        let mut seen = Vec::new();
        drive(async {
            let mut cursor = list.cursor(&mut store, &key);
            loop {
                let dropped = cursor.next();
                if dropped.is_ready() {
                    let Some(element) = dropped.await.expect("reads") else {
                        break;
                    };
                    seen.push(element);
                    continue;
                }
                drop(dropped);
                match cursor.next().await.expect("reads") {
                    Some(element) => seen.push(element),
                    None => break,
                }
            }
            assert_eq!(
                cursor.next().await.expect("reads"),
                None,
                "the end stays the end"
            );
        });
        assert!(seen.into_iter().eq(0..5_000));
        // 32, then 1,024 at a time, each asked for twice if it was dropped once.
        assert_eq!(store.scans, if slow { 12 } else { 6 });
    }
}

#[test]
fn an_element_over_the_limit_leaves_the_list_as_it_was() {
    let mut store = TestStore::new();
    let list = ListState::<Vec<u8>>::register(&mut store, "l").expect("registers");
    let key = key("k");
    list.add(&mut store, &key, &vec![7]).expect("appends");
    let elements = [vec![1], vec![0; VALUE_BYTES_MAX + 1]];
    for result in [
        list.add_all(&mut store, &key, &elements),
        list.update(&mut store, &key, &elements),
    ] {
        let error = result.expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(error.fact("index"), Some("1"));
    }
    assert_eq!(list.get(&mut store, &key).wait().expect("reads"), [[7]]);
}
