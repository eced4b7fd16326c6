//! The three operators of the job, each over its own keyed state.

use std::collections::BTreeMap;

use stateline::prelude::*;
use stateline::{KeyHasher, Result};

use crate::demo::source::Flight;

/// Which operator a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// Distinct aircraft and flights of each day.
    Daily,
    /// Distinct aircraft of each day and carrier.
    CarrierDaily,
    /// Flights and miles of each aircraft.
    Aircraft,
}

impl Operator {
    pub(crate) const ALL: [Self; 3] = [Self::Daily, Self::CarrierDaily, Self::Aircraft];

    /// The operator's id, by which its state is found again.
    pub(crate) fn id(self) -> Result<OperatorId> {
        OperatorId::new(match self {
            Self::Daily => "daily",
            Self::CarrierDaily => "carrier-daily",
            Self::Aircraft => "aircraft",
        })
    }

    /// The scope of task `task` of `tasks`.
    pub(crate) fn scope(self, task: u32, tasks: u32) -> Result<TaskScope> {
        let key_codec = match self {
            Self::CarrierDaily => <(String, String)>::id(),
            Self::Daily | Self::Aircraft => String::id(),
        };
        Ok(TaskScope::new(self.id()?, task, tasks, key_codec))
    }

    /// The key under which the operator counts a flight; `None` if it does not count it.
    pub(crate) fn key(self, flight: &Flight) -> Result<Option<StateKey>> {
        let hasher = KeyHasher::XXH3_64;
        match self {
            Self::Daily => StateKey::encode(&hasher, &*flight.date).map(Some),
            _ if flight.aircraft.is_empty() => Ok(None),
            Self::CarrierDaily => {
                StateKey::encode(&hasher, &(&*flight.date, &*flight.carrier)).map(Some)
            }
            Self::Aircraft => StateKey::encode(&hasher, &*flight.aircraft).map(Some),
        }
    }
}

/// One operator's share of the job in one task: its store, and typed handles to its states.
pub(crate) struct OperatorTask {
    operator: Operator,
    pub(crate) store: Box<dyn KeyedStore>,
    /// The aircraft seen under a key.
    seen: MapState<String, ()>,
    /// How many they are.
    active: ValueState<u64>,
    /// Flights and miles.
    totals: ValueState<(u64, u64)>,
}

/// What the job counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    /// Day to active aircraft and flights.
    pub(crate) daily: BTreeMap<String, (u64, u64)>,
    /// Day and carrier to active aircraft.
    pub(crate) carrier_daily: BTreeMap<(String, String), u64>,
    /// Aircraft to flights and miles.
    pub(crate) aircraft: BTreeMap<String, (u64, u64)>,
}

impl Results {
    pub(crate) fn extend(&mut self, other: Self) {
        self.daily.extend(other.daily);
        self.carrier_daily.extend(other.carrier_daily);
        self.aircraft.extend(other.aircraft);
    }
}

impl OperatorTask {
    pub(crate) fn new(operator: Operator, mut store: Box<dyn KeyedStore>) -> Result<Self> {
        let seen = MapState::register(&mut *store, "seen")?;
        let active = ValueState::register(&mut *store, "active")?;
        let totals = ValueState::register(&mut *store, "totals")?;
        Ok(Self {
            operator,
            store,
            seen,
            active,
            totals,
        })
    }

    /// Counts one flight.
    pub(crate) fn process(&mut self, key: &StateKey, flight: &Flight) -> Result<()> {
        let store = &mut *self.store;
        if self.operator != Operator::CarrierDaily {
            let miles = flight.distance_mi;
            self.totals
                .update(store, key, move |old| {
                    let (flights, total) = old.unwrap_or((0, 0));
                    Some((flights + 1, total + miles))
                })
                .wait()?;
        }
        if self.operator != Operator::Aircraft
            && !flight.aircraft.is_empty()
            && !self.seen.contains(store, key, &flight.aircraft).wait()?
        {
            self.seen.put(store, key, &flight.aircraft, &())?;
            self.active
                .update(store, key, |old| Some(old.unwrap_or(0) + 1))
                .wait()?;
        }
        Ok(())
    }

    /// Reads all that this task has counted.
    pub(crate) fn results(&mut self) -> Result<Results> {
        let mut results = Results::default();
        let store = &mut *self.store;
        match self.operator {
            Operator::Daily => {
                for (day, ()) in self.totals.list_keys::<String>(store)?.collect().wait()? {
                    let key = self.totals.key(&day)?;
                    let (flights, _) = self.totals.get(store, &key).wait()?.unwrap_or((0, 0));
                    let active = self.active.get(store, &key).wait()?.unwrap_or(0);
                    results.daily.insert(day, (active, flights));
                }
            }
            Operator::CarrierDaily => {
                let keys = self
                    .active
                    .list_keys::<(String, String)>(store)?
                    .collect()
                    .wait()?;
                for (pair, ()) in keys {
                    let key = self.active.key(&pair)?;
                    let active = self.active.get(store, &key).wait()?.unwrap_or(0);
                    results.carrier_daily.insert(pair, active);
                }
            }
            Operator::Aircraft => {
                for (aircraft, ()) in self.totals.list_keys::<String>(store)?.collect().wait()? {
                    let key = self.totals.key(&aircraft)?;
                    let totals = self.totals.get(store, &key).wait()?.unwrap_or((0, 0));
                    results.aircraft.insert(aircraft, totals);
                }
            }
        }
        Ok(results)
    }
}
