//! What a state is registered with besides its name and types.

use crate::codec::KeyCodec;
use crate::descriptor::{CodecId, SchemaVersion, StateDescriptor, TimeToLive};

/// What a state is registered with besides its name and types. The default is schema version 0,
/// no namespaces, no time to live.
///
/// ```
/// use backend_core::{SchemaVersion, StateOptions};
/// let options = StateOptions::new()
///     .with_schema(SchemaVersion(2))
///     .with_namespace::<u64>()
///     .with_type_name("Order");
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateOptions {
    schema: SchemaVersion,
    namespace_codec: Option<CodecId>,
    type_name: Option<String>,
    ttl: Option<TimeToLive>,
}

impl StateOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version of the value schema that new writes have.
    pub fn with_schema(mut self, schema: SchemaVersion) -> Self {
        self.schema = schema;
        self
    }

    /// Says that keys stand in namespaces of type `N`.
    pub fn with_namespace<N: KeyCodec>(mut self) -> Self {
        self.namespace_codec = Some(N::id());
        self
    }

    /// Sets when entries expire.
    pub fn with_ttl(mut self, ttl: TimeToLive) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Appends the values' type, by a name that lasts, to the stored codec id, as in
    /// `postcard:Order`. A codec that has one id for many types cannot otherwise tell that a
    /// state is registered with another type than it was stored with.
    pub fn with_type_name(mut self, name: impl Into<String>) -> Self {
        self.type_name = Some(name.into());
        self
    }

    /// `descriptor` with these options.
    pub(crate) fn apply(&self, mut descriptor: StateDescriptor) -> StateDescriptor {
        descriptor.schema = self.schema;
        descriptor.namespace_codec.clone_from(&self.namespace_codec);
        descriptor.ttl = self.ttl;
        if let Some(name) = &self.type_name {
            descriptor.value_codec = CodecId::new(format!("{}:{name}", descriptor.value_codec));
        }
        descriptor
    }
}
