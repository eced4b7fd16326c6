//! One accumulator a key, into which inputs of another type are folded.

use std::fmt;

use crate::codec::{Codec, Native};
use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::StateId;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::handle::options::StateOptions;
use crate::handle::sources::distinct_sources;
use crate::handle::value::ValueState;
use crate::key::StateKey;

/// How inputs become an accumulator, and an accumulator an output.
///
/// ```
/// use backend_core::Aggregate;
///
/// /// The mean of what is added; the accumulator is the sum and the count.
/// struct Mean;
///
/// impl Aggregate for Mean {
///     type Input = u64;
///     type Accumulator = (u64, u64);
///     type Output = u64;
///
///     fn create(&self) -> (u64, u64) {
///         (0, 0)
///     }
///
///     fn add(&self, (sum, count): (u64, u64), input: u64) -> (u64, u64) {
///         (sum + input, count + 1)
///     }
///
///     fn merge(&self, a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
///         (a.0 + b.0, a.1 + b.1)
///     }
///
///     fn output(&self, (sum, count): (u64, u64)) -> u64 {
///         sum / count
///     }
/// }
/// ```
pub trait Aggregate: Sync {
    /// What is added.
    type Input: Send;
    /// What is stored.
    type Accumulator: Send;
    /// What is read.
    type Output;

    /// The accumulator before the first input.
    fn create(&self) -> Self::Accumulator;

    /// The accumulator with one more input. It is given by value, so that an implementation may
    /// change it in place or make a new one.
    fn add(&self, accumulator: Self::Accumulator, input: Self::Input) -> Self::Accumulator;

    /// The accumulator of the inputs of both, `earlier` first.
    fn merge(&self, earlier: Self::Accumulator, later: Self::Accumulator) -> Self::Accumulator;

    /// What an accumulator stands for.
    fn output(&self, accumulator: Self::Accumulator) -> Self::Output;
}

/// One accumulator a key, into which `A` folds what is added.
///
/// The accumulator is stored as a [`ValueState`]'s value is. `A` itself is not stored.
pub struct AggregatingState<A: Aggregate, C = Native> {
    accumulators: ValueState<A::Accumulator, C>,
    aggregate: A,
}

impl<A: Aggregate, C: Codec<A::Accumulator>> AggregatingState<A, C> {
    /// Makes the state `name` known to `store`, or finds it again.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register(store: &mut dyn KeyedStore, name: &str, aggregate: A) -> Result<Self> {
        Self::register_with(store, name, &StateOptions::default(), aggregate)
    }

    /// [`AggregatingState::register`] with options.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register_with(
        store: &mut dyn KeyedStore,
        name: &str,
        options: &StateOptions,
        aggregate: A,
    ) -> Result<Self> {
        Ok(Self {
            accumulators: ValueState::register_with(store, name, options)?,
            aggregate,
        })
    }

    /// The state's id in the store that registered it.
    pub fn id(&self) -> StateId {
        self.accumulators.id()
    }

    /// The state as one of values, which are the accumulators.
    pub fn as_values(&self) -> ValueState<A::Accumulator, C> {
        self.accumulators
    }

    /// `key`, encoded and hashed; see [`ValueState::key`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if its bytes are more than [`crate::limits::KEY_BYTES_MAX`].
    #[inline]
    pub fn key<Q: crate::KeyCodec + ?Sized>(&self, key: &Q) -> Result<StateKey> {
        self.accumulators.key(key)
    }

    /// The output for what was added so far; `None` if nothing was.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    #[inline]
    pub fn get<'a>(
        &'a self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, Option<A::Output>> {
        self.accumulators
            .get(store, key)
            .and_then(|found| Ok(found.map(|accumulator| self.aggregate.output(accumulator))))
    }

    /// Folds `input` into the accumulator of `key`, with one look-up. Dropped before it is ready,
    /// it has changed nothing.
    ///
    /// # Errors
    /// Those of [`ValueState::update`]; then the accumulator is as it was.
    #[inline]
    pub fn add<'a>(
        &'a self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        input: A::Input,
    ) -> Fetch<'a, Pressure> {
        self.accumulators.update(store, key, move |old| {
            let accumulator = old.unwrap_or_else(|| self.aggregate.create());
            Some(self.aggregate.add(accumulator, input))
        })
    }

    /// Removes the accumulator of `key`.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn clear(&self, store: &mut dyn KeyedStore, key: &StateKey) -> Result<Pressure> {
        self.accumulators.clear(store, key)
    }

    /// Merges the accumulators of `sources` into that of `target`, in this order, and removes
    /// them: `target` and `sources` are namespaces of one key, for example of session windows
    /// that have met. One that stands twice, or is the target, counts once. Dropped before it is
    /// ready, it has changed nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if a source is of another key; those of the store and of
    /// the codec: then everything is as it was.
    pub fn merge<'a>(
        &'a self,
        store: &'a mut dyn KeyedStore,
        target: &'a StateKey,
        sources: &'a [StateKey],
    ) -> Fetch<'a, Pressure> {
        Fetch::eager(async move {
            let sources = distinct_sources(target, sources)?;
            let mut merged = self.accumulators.get(store, target).await?;
            let mut is_changed = false;
            for source in &sources {
                if let Some(later) = self.accumulators.get(store, source).await? {
                    merged = Some(match merged {
                        Some(earlier) => self.aggregate.merge(earlier, later),
                        None => later,
                    });
                    is_changed = true;
                }
            }
            let mut pressure = Pressure::None;
            if let Some(merged) = merged.filter(|_| is_changed) {
                pressure = self.accumulators.put(store, target, &merged)?;
                for source in sources {
                    pressure = pressure.max(self.accumulators.clear(store, source)?);
                }
            }
            Ok(pressure)
        })
    }
}

impl<A: Aggregate + Clone, C> Clone for AggregatingState<A, C> {
    fn clone(&self) -> Self {
        Self {
            accumulators: self.accumulators,
            aggregate: self.aggregate.clone(),
        }
    }
}

impl<A: Aggregate, C> fmt::Debug for AggregatingState<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AggregatingState")
            .field(&self.accumulators)
            .finish()
    }
}
