//! The states of a store, each with its table.

use backend_core::descriptor::StateUid;
use backend_core::entry::Entry;
use backend_core::limits::STATES_MAX;
use backend_core::table::{Table, TimerTable};
use backend_core::ttl::{Switch, reseal};
use backend_core::{
    Error, ErrorKind, Generation, Result, StateDescriptor, StateId, StateKey, StateKind, TaskScope,
};

/// One state and its entries.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) descriptor: StateDescriptor,
    /// Empty if they are timers.
    pub(crate) table: Table,
    pub(crate) timers: Option<Box<TimerTable>>,
    /// Whether somebody has registered it since it was restored.
    is_claimed: bool,
}

impl State {
    pub(crate) fn entry_count(&self) -> u64 {
        match &self.timers {
            Some(timers) => timers.len(),
            None => self.table.entry_count(),
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let timers = self.timers.as_ref().map(|timers| timers.memory_bytes());
        self.table.memory_bytes() + timers.unwrap_or(0)
    }

    /// Applies an entry that was restored.
    pub(crate) fn load(&mut self, entry: &Entry<'_>, stamp: Generation) -> Result<()> {
        match &mut self.timers {
            Some(timers) => timers.load(entry, stamp),
            None => self.table.load(entry, stamp),
        }
    }
}

/// All states of a store: a [`StateId`] is the index.
#[derive(Debug, Default)]
pub(crate) struct States(Vec<State>);

impl States {
    /// Finds the state that `wanted` describes, or makes it. Says what had to become of what was
    /// restored, which is of generation `restored`, or older.
    pub(crate) fn register(
        &mut self,
        wanted: &StateDescriptor,
        scope: &TaskScope,
        now_ms: u64,
        restored: Generation,
    ) -> Result<(StateId, Switch)> {
        let Some(index) = self.find(wanted)? else {
            return Ok((self.add(wanted, scope, true)?, Switch::Nothing));
        };
        let state = &mut self.0[index];
        let switch = Switch::between(&state.descriptor, wanted, now_ms);
        if switch != Switch::Nothing {
            if state.is_claimed {
                return Err(Error::new(
                    ErrorKind::Mismatch,
                    "a time to live is switched on or off at the first registration after a restore",
                )
                .with("state", &wanted.name));
            }
            let table = Table::new(wanted.kind, scope.range, scope.hasher);
            let frozen = std::mem::replace(&mut state.table, table).freeze();
            reseal(frozen, wanted.uid(), switch, restored, &mut state.table)?;
        }
        state.descriptor.ttl = wanted.ttl;
        state.is_claimed = true;
        Ok((StateId(index as u32), switch))
    }

    /// Finds the state that was stored as `stored`, or makes it. If only some of the tasks that are
    /// restored knew a time to live, it has one.
    pub(crate) fn restore(&mut self, stored: &StateDescriptor, scope: &TaskScope) -> Result<()> {
        match self.find(stored)? {
            None => self.add(stored, scope, false).map(drop),
            Some(index) => {
                let found = &mut self.0[index].descriptor;
                found.ttl = stored.ttl.or(found.ttl);
                Ok(())
            }
        }
    }

    fn find(&mut self, wanted: &StateDescriptor) -> Result<Option<usize>> {
        wanted.validate()?;
        let uid = wanted.uid();
        let index = self.0.iter().position(|state| {
            // Timers and another kind of one name have different uids.
            state.descriptor.uid() == uid || state.descriptor.name == wanted.name
        });
        if let Some(index) = index {
            let found = &self.0[index].descriptor;
            if found.name != wanted.name {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "two states' names have one uid; rename the new one",
                )
                .with("state", &wanted.name)
                .with("collides_with", &found.name));
            }
            found.check_compatible(wanted)?;
        }
        Ok(index)
    }

    fn add(
        &mut self,
        wanted: &StateDescriptor,
        scope: &TaskScope,
        is_claimed: bool,
    ) -> Result<StateId> {
        if self.0.len() >= STATES_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "an operator has too many states")
                    .with("states_max", STATES_MAX)
                    .with("state", &wanted.name),
            );
        }
        self.0.push(State {
            descriptor: wanted.clone(),
            table: Table::new(wanted.kind, scope.range, scope.hasher),
            timers: (wanted.kind == StateKind::Timers)
                .then(|| Box::new(TimerTable::new(scope.range, scope.hasher))),
            is_claimed,
        });
        Ok(StateId((self.0.len() - 1) as u32))
    }

    /// The state with `uid`.
    pub(crate) fn by_uid(&mut self, uid: StateUid) -> Option<&mut State> {
        self.0
            .iter_mut()
            .find(|state| state.descriptor.uid() == uid)
    }

    /// The table of a state of `kind`, for `key`.
    #[inline]
    pub(crate) fn table(
        &mut self,
        id: StateId,
        kind: StateKind,
        key: &StateKey,
        scope: &TaskScope,
    ) -> Result<&mut Table> {
        let state = self.state(id)?;
        if state.descriptor.kind != kind {
            return Err(wrong_kind(&state.descriptor, kind));
        }
        if !scope.range.contains(key.hash()) {
            return Err(wrong_range(key, scope));
        }
        Ok(&mut state.table)
    }

    /// The timers of a state.
    #[inline]
    pub(crate) fn timers(&mut self, id: StateId) -> Result<&mut TimerTable> {
        let State {
            descriptor, timers, ..
        } = self.state(id)?;
        match timers {
            Some(timers) => Ok(timers),
            None => Err(wrong_kind(descriptor, StateKind::Timers)),
        }
    }

    /// The state behind `id`.
    #[inline]
    pub(crate) fn state(&mut self, id: StateId) -> Result<&mut State> {
        let count = self.0.len();
        self.0.get_mut(id.0 as usize).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "a state id of another store")
                .with("states", count)
                .with("got", id.0)
        })
    }

    /// All states.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &State> {
        self.0.iter()
    }

    /// All states.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut State> {
        self.0.iter_mut()
    }
}

#[cold]
pub(crate) fn wrong_kind(descriptor: &StateDescriptor, asked: StateKind) -> Error {
    Error::new(ErrorKind::Mismatch, "the call is for another kind of state")
        .with("state", &descriptor.name)
        .expected_got(descriptor.kind, asked)
}

pub(crate) fn check_owner(key: &StateKey, scope: &TaskScope) -> Result<()> {
    if scope.range.contains(key.hash()) {
        return Ok(());
    }
    Err(wrong_range(key, scope))
}

#[cold]
pub(crate) fn wrong_range(key: &StateKey, scope: &TaskScope) -> Error {
    Error::new(ErrorKind::Invalid, "the key belongs to another task")
        .with("key", format_args!("{key:?}"))
        .with("hash", format_args!("{:016x}", key.hash()))
        .with("operator", &scope.operator)
        .with("task", scope.task)
        .with("range", scope.range)
}
