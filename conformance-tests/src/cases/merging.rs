//! Folded values, and namespaces that are merged.

use backend_core::{
    Aggregate, AggregatingState, KeyedStore, ListState, MapState, ReducingState, SnapshotMode,
    StateKey, StateOptions,
};

use crate::backend::BackendUnderTest;
use crate::job::Job;

/// Which of target and sources hold something, for the five layouts of a merge.
const LAYOUTS: [(bool, [bool; 3]); 5] = [
    (true, [true, true, true]),
    (true, [false, true, false]),
    (false, [false, false, false]),
    (true, [false, false, false]),
    (false, [false, true, false]),
];

fn namespaces(key: &StateKey) -> (StateKey, [StateKey; 3]) {
    let namespaced = |name: &str| key.namespaced(name).expect("it is short");
    let sources = [namespaced("a"), namespaced("b"), namespaced("c")];
    (namespaced("target"), sources)
}

/// What stands in a layout: the target's number is 1, the sources' are 2, 3 and 4.
fn numbers((target, sources): (bool, [bool; 3])) -> impl Iterator<Item = (usize, u64)> {
    let all = [target, sources[0], sources[1], sources[2]];
    let held = (0..4).filter(move |place| all[*place]);
    held.map(|place| (place, place as u64 + 1))
}

fn options() -> StateOptions {
    StateOptions::new().with_namespace::<String>()
}

/// P17: lists of namespaces are merged into one, each element once.
pub fn p17_lists_of_namespaces_are_merged(backend: &dyn BackendUnderTest) {
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        let mut job = Job::new(backend);
        let key = job.key(format!("k{number}"));
        let (target, sources) = namespaces(&key);
        let store = &mut *job.only().store;
        let lists =
            ListState::<u64>::register_with(store, "merged", &options()).expect("registers");
        let places = [&target, &sources[0], &sources[1], &sources[2]];
        let mut expected = Vec::new();
        for (place, value) in numbers(layout) {
            lists
                .add_all(store, places[place], [value, value, 9])
                .expect("adds");
            expected.extend([value, value, 9]);
        }
        lists
            .merge(store, &target, &sources)
            .wait()
            .expect("merges");
        assert_eq!(lists.get(store, &target).wait().expect("reads"), expected);
        for source in &sources {
            assert!(lists.is_empty(store, source).wait().expect("reads"));
        }
        lists.clear(store, &target).expect("clears");
        let left = store.entry_count(lists.id()).wait().expect("counts");
        assert_eq!(left, 0, "layout {number}");
    }
}

/// P17 for maps: a later source wins, and a restore sees what was merged.
pub fn p17_maps_of_namespaces_are_merged(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let (target, sources) = namespaces(&key);
    let register = |store: &mut dyn KeyedStore| {
        MapState::<u32, u64>::register_with(store, "merged", &options()).expect("registers")
    };
    let store = &mut *job.only().store;
    let maps = register(store);
    for (place, value) in [(&target, 1), (&sources[0], 2), (&sources[2], 3)] {
        for user_key in [value as u32, 7] {
            maps.put(store, place, &user_key, &value).expect("puts");
        }
    }
    // One that stands twice, and the target itself, count once.
    let listed = [
        sources[0].clone(),
        target.clone(),
        sources[2].clone(),
        sources[0].clone(),
    ];
    maps.merge(store, &target, &listed).wait().expect("merges");
    let expected = [(1, 1), (2, 2), (3, 3), (7, 3)];
    assert_eq!(
        maps.entries(store, &target).wait().expect("reads"),
        expected
    );
    assert!(maps.is_empty(store, &sources[0]).wait().expect("reads"));
    let other = store_key(&maps, "another");
    let refused = maps.merge(store, &target, &[other]).wait();
    refused.expect_err("another key may belong to another task");

    let mut restored = job.incremental().restore(1);
    let store = &mut *restored.only().store;
    let maps = register(store);
    assert_eq!(
        maps.entries(store, &target).wait().expect("reads"),
        expected
    );
    assert!(maps.is_empty(store, &sources[2]).wait().expect("reads"));
}

fn store_key(maps: &MapState<u32, u64>, key: &str) -> StateKey {
    maps.key(key).expect("it is short")
}

/// P18: empty is absent; what is added is folded in order; cleared starts afresh.
pub fn p18_a_reduced_value_is_folded_in_order(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let join = |a: String, b: String| a + &b;
    let store = &mut *job.only().store;
    let joined = ReducingState::<String, _>::register(store, "joined", join).expect("registers");
    let get = |store: &mut dyn KeyedStore| joined.get(store, &key).wait().expect("reads");
    let add = |store: &mut dyn KeyedStore, value: &str| {
        joined
            .add(store, &key, value.to_owned())
            .wait()
            .expect("adds");
    };
    assert_eq!(get(store), None);
    for value in ["a", "b", "c"] {
        add(store, value);
    }
    assert_eq!(get(store).as_deref(), Some("abc"));
    joined.clear(store, &key).expect("clears");
    assert_eq!(get(store), None);
    add(store, "d");
    assert_eq!(get(store).as_deref(), Some("d"));

    let mut restored = job.snapshot(SnapshotMode::Full).restore(1);
    let store = &mut *restored.only().store;
    let joined = ReducingState::<String, _>::register(store, "joined", join).expect("registers");
    joined
        .add(store, &key, "e".to_owned())
        .wait()
        .expect("adds");
    let found = joined.get(store, &key).wait().expect("reads");
    assert_eq!(found.as_deref(), Some("de"));
}

/// P19: reduced values of namespaces are merged, in every layout.
pub fn p19_reduced_values_of_namespaces_are_merged(backend: &dyn BackendUnderTest) {
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        let mut job = Job::new(backend);
        let key = job.key(format!("k{number}"));
        let (target, sources) = namespaces(&key);
        let store = &mut *job.only().store;
        let digits = |a: u64, b: u64| a * 10 + b;
        let state = ReducingState::<u64, _>::register_with(store, "merged", &options(), digits);
        let state = state.expect("registers");
        let places = [&target, &sources[0], &sources[1], &sources[2]];
        for (place, value) in numbers(layout) {
            state.add(store, places[place], value).wait().expect("adds");
        }
        state
            .merge(store, &target, &sources)
            .wait()
            .expect("merges");
        let expected = numbers(layout).map(|(_, value)| value).reduce(digits);
        assert_eq!(state.get(store, &target).wait().expect("reads"), expected);
        state.clear(store, &target).expect("clears");
        let left = store.entry_count(state.id()).wait().expect("counts");
        assert_eq!(left, 0, "layout {number}");
    }
}

/// The sum and the count of what is added; `in_place` says whether the accumulator is changed or
/// made anew.
struct Mean {
    in_place: bool,
}

impl Aggregate for Mean {
    type Input = u64;
    type Accumulator = (u64, u64);
    type Output = (u64, u64);

    fn create(&self) -> (u64, u64) {
        (0, 0)
    }

    fn add(&self, mut accumulator: (u64, u64), input: u64) -> (u64, u64) {
        if self.in_place {
            accumulator.0 += input;
            accumulator.1 += 1;
            return accumulator;
        }
        (accumulator.0 + input, accumulator.1 + 1)
    }

    fn merge(&self, earlier: (u64, u64), later: (u64, u64)) -> (u64, u64) {
        (earlier.0 + later.0, earlier.1 + later.1)
    }

    fn output(&self, accumulator: (u64, u64)) -> (u64, u64) {
        accumulator
    }
}

/// P20: accumulators are not shared, and it is all the same how they are changed.
pub fn p20_accumulators_are_kept_apart(backend: &dyn BackendUnderTest) {
    for in_place in [true, false] {
        let mut job = Job::new(backend);
        let (one, two) = (job.key("one"), job.key("two"));
        let store = &mut *job.only().store;
        let mean = AggregatingState::<Mean>::register(store, "mean", Mean { in_place });
        let mean = mean.expect("registers");
        assert_eq!(mean.get(store, &one).wait().expect("reads"), None);
        for (key, input) in [(&one, 3), (&two, 100), (&one, 5)] {
            mean.add(store, key, input).wait().expect("adds");
        }
        assert_eq!(mean.get(store, &one).wait().expect("reads"), Some((8, 2)));
        assert_eq!(mean.get(store, &two).wait().expect("reads"), Some((100, 1)));
        mean.clear(store, &one).expect("clears");
        assert_eq!(mean.get(store, &one).wait().expect("reads"), None);
    }
}

/// P21: accumulators of namespaces are merged, in every layout and both styles.
pub fn p21_accumulators_of_namespaces_are_merged(backend: &dyn BackendUnderTest) {
    for (number, layout) in LAYOUTS.into_iter().enumerate() {
        let mut job = Job::new(backend);
        let key = job.key(format!("k{number}"));
        let (target, sources) = namespaces(&key);
        let store = &mut *job.only().store;
        let in_place = number % 2 == 0;
        let mean =
            AggregatingState::<Mean>::register_with(store, "merged", &options(), Mean { in_place });
        let mean = mean.expect("registers");
        let places = [&target, &sources[0], &sources[1], &sources[2]];
        for (place, value) in numbers(layout) {
            mean.add(store, places[place], value).wait().expect("adds");
        }
        mean.merge(store, &target, &sources).wait().expect("merges");
        let sum: u64 = numbers(layout).map(|(_, value)| value).sum();
        let count = numbers(layout).count() as u64;
        let expected = (count > 0).then_some((sum, count));
        assert_eq!(mean.get(store, &target).wait().expect("reads"), expected);
        mean.clear(store, &target).expect("clears");
        let left = store.entry_count(mean.id()).wait().expect("counts");
        assert_eq!(left, 0, "layout {number}");
    }
}
