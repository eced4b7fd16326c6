//! The suite on a backend that is plainly right.

use conformance_tests::{Flaw, conformance};

conformance!(None::<Flaw>);
