//! The tasks of a job: their stores in memory, written to and read whole.

use backend_core::{
    KeyCodec, KeyHasher, KeyedStore, ListState, MapState, OperatorId, Result, Snapshot,
    StateBackend, TaskScope, ValueState, owner_of,
};
use backend_memory::MemoryBackend;

use crate::contents::Contents;
use crate::numbers::Numbers;

const KEYS: usize = 40;

/// One task.
pub(crate) struct Task {
    /// Its store.
    pub(crate) store: Box<dyn KeyedStore>,
    values: ValueState<u64>,
    lists: ListState<u64>,
    maps: MapState<u32, u64>,
}

/// The operator of all tasks.
pub(crate) fn operator() -> OperatorId {
    OperatorId::new("count").expect("it is a name")
}

/// Opens `parallelism` tasks with what `from` holds.
///
/// # Errors
/// Those of the store and of the backend.
pub(crate) async fn restore(
    backend: &MemoryBackend,
    from: &Snapshot,
    parallelism: u32,
) -> Result<Vec<Task>> {
    let plan = from.restore_plan_or_new(&operator(), parallelism)?;
    let mut plan = plan.unwrap_or_default().into_iter();
    let mut tasks = Vec::new();
    for task in 0..parallelism {
        let scope = TaskScope::new(operator(), task, parallelism, u32::id());
        let mut store = backend.open(scope, plan.next()).await?;
        tasks.push(Task {
            values: ValueState::register(&mut *store, "values")?,
            lists: ListState::register(&mut *store, "lists")?,
            maps: MapState::register(&mut *store, "maps")?,
            store,
        });
    }
    Ok(tasks)
}

/// One random write, to a task and to `expected`.
///
/// # Errors
/// Those of the store, which are none for what is written here.
pub(crate) fn write(
    tasks: &mut [Task],
    numbers: &mut Numbers,
    expected: &mut Contents,
) -> Result<()> {
    let key = numbers.below(KEYS) as u32;
    let hash = KeyHasher::XXH3_64.hash(&key.to_be_bytes());
    let owner = owner_of(hash, tasks.len() as u32) as usize;
    let Task {
        store,
        values,
        lists,
        maps,
    } = &mut tasks[owner];
    let store = &mut **store;
    let state_key = values.key(&key)?;
    let value = numbers.below(1_000) as u64;
    let sub_key = numbers.below(5) as u32;
    match numbers.below(16) {
        0..5 => {
            values.put(store, &state_key, &value)?;
            expected.values.insert(key, value);
        }
        5 => {
            values.clear(store, &state_key)?;
            expected.values.remove(&key);
        }
        6..9 => {
            lists.add(store, &state_key, &value)?;
            expected.lists.entry(key).or_default().push(value);
        }
        9 => {
            lists.clear(store, &state_key)?;
            expected.lists.remove(&key);
        }
        10..14 => {
            maps.put(store, &state_key, &sub_key, &value)?;
            expected.maps.entry(key).or_default().insert(sub_key, value);
        }
        14 => {
            maps.remove(store, &state_key, &sub_key)?;
            if let Some(map) = expected.maps.get_mut(&key) {
                map.remove(&sub_key);
            }
            expected.maps.retain(|_, map| !map.is_empty());
        }
        _ => {
            maps.clear(store, &state_key)?;
            expected.maps.remove(&key);
        }
    }
    Ok(())
}

/// All that the tasks hold.
///
/// # Errors
/// Those of the store, which are none in memory.
pub(crate) fn contents(tasks: &mut [Task]) -> Result<Contents> {
    let mut found = Contents::default();
    for task in tasks {
        let Task {
            store,
            values,
            lists,
            maps,
        } = task;
        let store = &mut **store;
        for (key, ()) in values.list_keys::<u32>(store)?.collect().wait()? {
            let state_key = values.key(&key)?;
            let value = values.get(store, &state_key).wait()?;
            found.values.extend(value.map(|value| (key, value)));
        }
        for (key, ()) in lists.list_keys::<u32>(store)?.collect().wait()? {
            let state_key = lists.key(&key)?;
            found
                .lists
                .insert(key, lists.get(store, &state_key).wait()?);
        }
        for (key, ()) in maps.list_keys::<u32>(store)?.collect().wait()? {
            let state_key = maps.key(&key)?;
            let entries = maps.entries(store, &state_key).wait()?;
            found.maps.insert(key, entries.into_iter().collect());
        }
    }
    Ok(found)
}
