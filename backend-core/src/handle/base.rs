//! What all handles have in common.

/// Implements `Copy`, `Debug`, and the operations on keys for a handle with the fields `state`,
/// `hasher` and `types`.
macro_rules! impl_handle {
    ($handle:ident<$($param:ident),+>) => {
        // Derived, these would ask the same of the types of the values.
        impl<$($param),+> Clone for $handle<$($param),+> {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($param),+> Copy for $handle<$($param),+> {}

        impl<$($param),+> std::fmt::Debug for $handle<$($param),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($handle)).field(&self.state).finish()
            }
        }

        impl<$($param),+> $handle<$($param),+> {
            fn of_state(store: &dyn $crate::KeyedStore, state: $crate::StateId) -> Self {
                Self {
                    state,
                    hasher: store.scope().hasher,
                    types: std::marker::PhantomData,
                }
            }

            /// The state's id in the store that registered it.
            #[inline]
            pub fn id(&self) -> $crate::StateId {
                self.state
            }

            /// `key`, encoded and hashed. It serves every state of the store.
            ///
            /// The type must be the one that the task's key codec names. Nothing checks it here,
            /// and a literal such as `&7` may be of another one; [`crate::KeyEncoder`] checks it.
            ///
            /// # Errors
            /// [`crate::ErrorKind::Limit`] if its bytes are more than
            /// [`crate::limits::KEY_BYTES_MAX`].
            #[inline]
            pub fn key<Q: $crate::KeyCodec + ?Sized>(
                &self,
                key: &Q,
            ) -> $crate::Result<$crate::StateKey> {
                $crate::StateKey::encode(&self.hasher, key)
            }

            /// `key` in a namespace, for example a window's start.
            ///
            /// The type must be the one that the state was registered with.
            ///
            /// # Errors
            /// [`crate::ErrorKind::Limit`] if the namespace's bytes are more than
            /// [`crate::limits::NAMESPACE_BYTES_MAX`].
            #[inline]
            pub fn namespaced<N: $crate::KeyCodec + ?Sized>(
                &self,
                key: &$crate::StateKey,
                namespace: &N,
            ) -> $crate::Result<$crate::StateKey> {
                key.namespaced(namespace)
            }

            /// The keys without a namespace that have an entry in this state, each once, in no
            /// particular order, as they are now.
            ///
            /// # Errors
            /// [`crate::ErrorKind::Mismatch`] if the task's keys are not of type `Q`.
            pub fn list_keys<Q: $crate::KeyCodec>(
                &self,
                store: &mut dyn $crate::KeyedStore,
            ) -> $crate::Result<$crate::KeyStream<Q>> {
                $crate::KeyStream::open(store, self.state, Some(&[]))
            }

            /// The keys that have an entry in `namespace` of this state; see `list_keys`.
            ///
            /// # Errors
            /// [`crate::ErrorKind::Mismatch`] if the task's keys are not of type `Q`.
            pub fn list_keys_in<Q: $crate::KeyCodec, N: $crate::KeyCodec>(
                &self,
                store: &mut dyn $crate::KeyedStore,
                namespace: &N,
            ) -> $crate::Result<$crate::KeyStream<Q, N>> {
                namespace.with_encoded(|bytes| {
                    $crate::KeyStream::open(store, self.state, Some(bytes))
                })
            }

            /// The keys that have an entry in this state, once for each of their namespaces; see
            /// `list_keys`.
            ///
            /// # Errors
            /// [`crate::ErrorKind::Mismatch`] if the task's keys are not of type `Q`.
            pub fn list_keys_and_namespaces<Q: $crate::KeyCodec, N: $crate::KeyCodec>(
                &self,
                store: &mut dyn $crate::KeyedStore,
            ) -> $crate::Result<$crate::KeyStream<Q, N>> {
                $crate::KeyStream::open(store, self.state, None)
            }
        }
    };
}

pub(super) use impl_handle;
