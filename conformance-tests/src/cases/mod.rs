//! The cases: plain functions that panic if a backend does not behave.
//!
//! A name begins with the id of the behaviour that it tests; `contract_` stands for what the
//! documentation of [`backend_core::KeyedStore`] promises besides. The list of all of them is
//! [`crate::CASES`].

pub mod damage;
pub mod expiry;
pub mod expiry_model;
pub mod expiry_sweeps;
pub mod failures;
pub mod identity;
pub mod increments;
pub mod keys;
pub mod limits;
pub mod lists;
pub mod maps;
pub mod merging;
pub mod model;
pub mod orders;
pub mod rescale;
pub mod snapshots;
pub mod timers;
pub mod values;
