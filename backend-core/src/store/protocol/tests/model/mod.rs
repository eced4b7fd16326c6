//! The protocol, model-checked: its machines are driven through every order of steps within
//! bounds, over a store that answers late, or not at all.
//!
//! Claims, adoptions, commits, ids, references, retention and sweeps are decided by the machines
//! themselves. What has no machine is done here in the words of the design: pins, and the deletion
//! of condemn records that say nothing new. `STATELINE_MODEL=large` takes larger bounds.

mod bounds;
mod collect;
mod lead;
mod machine;
mod objects;
mod quiet;
mod read;
mod sealed;
mod truth;
mod variants;
mod whole;
mod world;
