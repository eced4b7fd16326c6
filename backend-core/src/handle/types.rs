//! Types that are named and not held.

use std::marker::PhantomData;

/// The types of a handle or cursor that holds none of their values, so that it is `Send` and
/// `Copy` whatever they are.
pub(super) type Types<T> = PhantomData<fn() -> T>;
