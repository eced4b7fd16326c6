use serde::{Deserialize, Serialize};

use super::{TestStore, answer, drive, key, stores};
use crate::codec::Postcard;
use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::{SchemaVersion, StateKind, TimeToLive};
use crate::error::{ErrorKind, Result};
use crate::handle::{StateOptions, ValueState};
use crate::value::ValueBatch;

/// The usage that the design page shows, in a future that can move between threads.
async fn count(store: &mut Box<dyn KeyedStore>, user: &str) -> Result<u64> {
    let visits = ValueState::<u64>::register(&mut **store, "visits")?;
    let key = visits.key(user)?;
    let n = visits.get(&mut **store, &key).await?.unwrap_or(0);
    visits.put(&mut **store, &key, &(n + 1))?;
    Ok(n + 1)
}

#[test]
fn the_design_pages_example_counts() {
    for store in stores() {
        let mut store: Box<dyn KeyedStore> = Box::new(store);
        assert_eq!(drive(count(&mut store, "ann")).expect("counts"), 1);
        assert_eq!(drive(count(&mut store, "bob")).expect("counts"), 1);
        assert_eq!(drive(count(&mut store, "ann")).expect("counts"), 2);
    }
}

#[test]
fn a_handle_is_copy_and_send_whatever_its_value() {
    fn assert_copy_send<T: Copy + Send + Sync + 'static>() {}
    assert_copy_send::<ValueState<std::rc::Rc<String>, Postcard>>();
}

#[test]
fn a_value_goes_from_default_to_written_to_default() {
    for mut store in stores() {
        let slow = store.slow;
        let state = ValueState::<String>::register(&mut store, "s").expect("registers");
        let key = key("k");
        let or = |store: &mut TestStore| {
            answer(slow, state.get_or(store, &key, "default".into())).expect("reads")
        };
        assert_eq!(or(&mut store), "default");
        state.put(&mut store, &key, &"v".into()).expect("writes");
        assert_eq!(or(&mut store), "v");
        let bytes = answer(slow, state.get_bytes(&mut store, &key)).expect("reads");
        assert_eq!(bytes.as_deref(), Some(&b"v"[..]));
        drop(bytes);
        state.clear(&mut store, &key).expect("clears");
        assert_eq!(or(&mut store), "default");
        let value = answer(slow, state.get(&mut store, &key)).expect("reads");
        assert_eq!(value, None);
    }
}

#[test]
fn namespaces_of_a_key_are_apart() {
    for mut store in stores() {
        let options = StateOptions::new().with_namespace::<u64>();
        let state = ValueState::<u8>::register_with(&mut store, "s", &options).expect("registers");
        let key = key("k");
        let window = state.namespaced(&key, &5u64).expect("short");
        assert_eq!(window.hash(), key.hash());
        state.put(&mut store, &window, &1).expect("writes");
        assert_eq!(state.get(&mut store, &key).wait().expect("reads"), None);
        assert_eq!(
            state.get(&mut store, &window).wait().expect("reads"),
            Some(1)
        );
    }
}

#[test]
fn an_update_edits_once_and_prefetches_only_what_is_not_at_hand() {
    for mut store in stores() {
        let slow = store.slow;
        let state = ValueState::<u64>::register(&mut store, "s").expect("registers");
        let key = key("k");
        let mut seen = Vec::new();
        let add = |seen: &mut Vec<Option<u64>>, old: Option<u64>| {
            seen.push(old);
            Some(old.unwrap_or(0) + 1)
        };
        let fetch = state.update(&mut store, &key, |old| add(&mut seen, old));
        assert_eq!(answer(slow, fetch).expect("updates"), Pressure::Soon);
        let fetch = state.update(&mut store, &key, |old| add(&mut seen, old));
        fetch.wait().expect("updates");
        assert_eq!(seen, [None, Some(1)]);
        assert_eq!(store.prefetches, usize::from(slow));

        state
            .update(&mut store, &key, |_| None)
            .wait()
            .expect("clears");
        assert_eq!(state.get(&mut store, &key).wait().expect("reads"), None);
        // The store asserts that nothing is cleared which is not there.
        state
            .update(&mut store, &key, |_| None)
            .wait()
            .expect("keeps");
    }
}

#[test]
fn a_dropped_update_changes_nothing() {
    let mut store = TestStore::slow();
    let state = ValueState::<u64>::register(&mut store, "s").expect("registers");
    let key = key("k");
    drop(state.update(&mut store, &key, |_| panic!("an edit that nobody awaited")));
    assert_eq!(state.get(&mut store, &key).wait().expect("reads"), None);
}

#[test]
fn a_prefetch_that_brings_nothing_is_retried_a_few_times() {
    let mut store = TestStore::slow();
    store.forgetful = true;
    let state = ValueState::<u64>::register(&mut store, "s").expect("registers");
    let keys = [key("a"), key("b")];
    let error = state.update(&mut store, &keys[0], |_| Some(1)).wait();
    assert_eq!(error.expect_err("gives up").kind(), ErrorKind::Transient);
    assert_eq!(store.prefetches, 4);
    let error = state.update_many(&mut store, &keys, |_, _| Some(1)).wait();
    assert_eq!(error.expect_err("gives up").fact("keys"), Some("2"));
}

#[test]
fn batches_read_and_update_in_the_order_of_their_keys() {
    for mut store in stores() {
        let slow = store.slow;
        let state = ValueState::<u64>::register(&mut store, "s").expect("registers");
        let keys = [key("a"), key("b"), key("a")];
        state.put(&mut store, &keys[1], &10).expect("writes");
        let fetch = state.update_many(&mut store, &keys, |index, old| {
            Some(old.unwrap_or(0) + 1 + index as u64)
        });
        assert_eq!(answer(slow, fetch).expect("updates"), Pressure::Soon);
        let mut batch = ValueBatch::new();
        let keys = [key("b"), key("none"), key("a")];
        answer(slow, state.get_many(&mut store, &keys, &mut batch)).expect("reads");
        let values: Result<Vec<_>> = state.values(&batch).collect();
        assert_eq!(values.expect("decodes"), [Some(12), None, Some(4)]);
    }
}

#[test]
fn an_update_of_bytes_that_do_not_decode_is_an_error_and_keeps_them() {
    for mut store in stores() {
        let state = ValueState::<u64>::register(&mut store, "s").expect("registers");
        let keys = [key("a"), key("b"), key("c")];
        store.put(state.id(), &keys[1], b"short").expect("writes");
        let error = state.update(&mut store, &keys[1], |_| Some(1)).wait();
        assert_eq!(error.expect_err("no u64").kind(), ErrorKind::Corrupt);
        let error = state.update_many(&mut store, &keys, |_, _| Some(1)).wait();
        assert_eq!(error.expect_err("no u64").fact("codec"), Some("u64"));
        let bytes = state.get_bytes(&mut store, &keys[1]).wait().expect("reads");
        assert_eq!(bytes.as_deref(), Some(&b"short"[..]));
        drop(bytes);
        assert_eq!(
            state.get(&mut store, &keys[0]).wait().expect("reads"),
            Some(1)
        );
        assert_eq!(state.get(&mut store, &keys[2]).wait().expect("reads"), None);
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    lines: Vec<(String, u32)>,
}

#[test]
fn a_descriptor_carries_types_and_options() {
    let mut store = TestStore::new();
    let options = StateOptions::new()
        .with_schema(SchemaVersion(3))
        .with_namespace::<(u64, String)>()
        .with_ttl(TimeToLive::after_write_ms(50).expect("above 0"))
        .with_type_name("Order");
    let state = ValueState::<Order, Postcard>::register_with(&mut store, "orders", &options)
        .expect("registers");
    let descriptor = &store.states()[0];
    assert_eq!(descriptor.kind, StateKind::Value);
    assert_eq!(descriptor.value_codec.as_str(), "postcard:Order");
    assert_eq!(descriptor.schema, SchemaVersion(3));
    assert_eq!(descriptor.ttl.expect("a ttl").ttl_ms, 50);
    let namespace = descriptor.namespace_codec.as_ref().expect("a namespace");
    assert_eq!(namespace.as_str(), "(u64,utf8)");

    let order = Order {
        lines: vec![("tea".into(), 2)],
    };
    state.put(&mut store, &key("k"), &order).expect("writes");
    assert_eq!(
        state.get(&mut store, &key("k")).wait().expect("reads"),
        Some(order)
    );

    let error = ValueState::<u64>::register(&mut store, "orders").expect_err("another type");
    assert_eq!(error.fact("field"), Some("value codec"));
    let other = StateOptions::new()
        .with_schema(SchemaVersion(3))
        .with_type_name("Invoice");
    let error = ValueState::<Order, Postcard>::register_with(&mut store, "orders", &other);
    assert_eq!(error.expect_err("another type").kind(), ErrorKind::Mismatch);
}
