//! backend-memory
